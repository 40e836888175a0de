"""The errors a person can act on. The command prints them as one line."""


class MulvError(Exception):
    """Bad input or a failed run: the message says what is wrong and what to do."""


class NonFiniteError(MulvError):
    """A NaN or an infinity in an observation, reward, loss, gradient or parameter."""


class EnvironmentFault(MulvError):
    """The environment raised, hung, or broke its own declared spaces."""


class BusyError(MulvError):
    """Another process is writing there."""


class CheckpointError(MulvError):
    """A checkpoint is missing, damaged, or belongs to something else."""
