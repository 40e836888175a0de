"""One training run: configuration, the loop, evaluation, logging, checkpoints."""
