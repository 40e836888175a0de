"""The combination lock of the block-MDP literature (Du et al., 2019), and one that takes a memory of L."""

from collections.abc import Callable

import numpy as np

from mulv.core.errors import MulvError
from mulv.tabular.pomdp import POMDP
from mulv.tabular.zoo.kernels import Outcomes, kernel

BAD = 2  # after the two good states, 0 and 1


def lock(H: int = 10, L: int = 3, actions: int = 4, *, emissions: int = 1, seed: int = 0) -> POMDP:
    """H decisions, of which each but the last must be the one right digit of `actions`, or all is lost.

    At stages h = 0, L, 2L, … one of two good states is drawn and shown. Until the next such stage the two
    look alike; the digit depends on which it is only at the last stage before that, L − 1 steps after it was
    shown. So a window of L observations decodes the state and one of L − 1 does not. With L = 1 it is the
    combination lock proper, a block MDP. The bad state shows itself at once, and cannot be left. The last
    decision pays one in a good state and a tenth in the bad one, so that a reward depends on what is seen,
    and what is easy to find is not worth keeping. Each thing to see is one of `emissions` symbols at random.
    """
    if not 1 <= L <= H or actions < 2 or emissions < 1:
        raise MulvError(
            f"a lock needs 1 <= L <= H, two actions and an emission; got H={H}, L={L}, actions={actions}, "
            f"emissions={emissions}"
        )
    digits = right_digits(H, L, actions, seed)
    end = 3 * H

    def dial(a: int) -> Callable[[int], Outcomes]:
        def dialled(s: int) -> Outcomes:
            h, which = divmod(s, 3)
            if s == end or h == H - 1:
                return [(end, 1.0)]
            if which == BAD or a != digits[h, which]:
                return [(3 * (h + 1) + BAD, 1.0)]
            drawn = [(0, 0.5), (1, 0.5)] if (h + 1) % L == 0 else [(which, 1.0)]
            return [(3 * (h + 1) + good, p) for good, p in drawn]

        return dialled

    def seen(s: int) -> int:
        """A state's look: the second good state's is the first's, but where it is shown."""
        return s - 1 if s % 3 == 1 and (s // 3) % L else s

    looks = sorted({seen(s) for s in range(end + 1)})
    emit = kernel(
        end + 1,
        len(looks) * emissions,
        lambda s: [(looks.index(seen(s)) * emissions + i, 1 / emissions) for i in range(emissions)],
    )
    pays = np.zeros(end + 1)
    pays[3 * (H - 1) : end] = 1.0, 1.0, 0.1
    start = np.zeros(end + 1)
    start[:2] = 0.5
    states = (*(f"{which}{h}" for h in range(H) for which in ("left", "right", "bad")), "end")
    return POMDP(
        transition=tuple(kernel(end + 1, end + 1, dial(a)) for a in range(actions)),
        observation=(emit,) * actions,
        reward=np.tile(pays, (actions, 1)),
        start=start,
        discount=1.0,
        initial_observation=emit,
        horizon=H,
        state_names=states,
        observation_names=tuple(
            f"see-{states[look]}" + (f"-{i}" if emissions > 1 else "")
            for look in looks
            for i in range(emissions)
        ),
    )


def right_digits(H: int, L: int, actions: int, seed: int) -> np.ndarray:
    """(H, 2): the digit of either good state at each stage; they differ only just before a draw."""
    digits = np.random.default_rng(seed).permuted(np.tile(np.arange(actions), (H, 1)), axis=1)[:, :2]
    alike = np.arange(1, H + 1) % L != 0
    digits[alike, 1] = digits[alike, 0]
    return digits
