"""Measures how well windows of each length, and a GRU, predict what a task hides."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import numpy as np

from mulv.core.errors import MulvError
from mulv.run import seeding
from mulv.run.diagnostics.decodability.collect import Sequences
from mulv.run.diagnostics.decodability.regression import Tick, fit_recurrent, fit_windows
from mulv.run.diagnostics.decodability.scores import Score, score
from mulv.run.diagnostics.decodability.windows import held_out, scales, window_inputs
from mulv.run.seeding import Stream

WINDOWS = (1, 2, 3, 5, 8, 16, 32)
UPDATES = 2000  # for each network on windows
GRU_SHARE = 0.3  # the GRU gets this share of updates, because each is on several whole sequences
NO_SPREAD = 1e-6  # entries with a smaller standard deviation, relative to the mean, count as constant


@dataclass(frozen=True)
class Measurement:
    """Scores of all window lengths and of the GRU, on the same test rows."""

    names: tuple[str, ...]  # hidden entries that vary
    constant: tuple[str, ...]  # hidden entries that do not vary, so that there is nothing to decode
    windows: dict[int, Score]
    gru: Score | None
    fitted_rows: int
    tested_rows: int
    tested_episodes: int


def updates_of(windows: Sequence[int], updates: int, gru: bool) -> int:
    """The total number of updates in `measure`."""
    return len(windows) * updates + gru * _gru_updates(updates)


def measure(
    sequences: Sequences,
    names: Sequence[str],
    *,
    windows: Sequence[int] = WINDOWS,
    updates: int = UPDATES,
    gru: bool = True,
    seed: int = 0,
    tick: Tick = lambda updates: None,
) -> Measurement:
    """R² of every hidden entry and of r_{h-1} from x_h, for windows of each length and for a GRU.

    All are fitted on the same sequences and tested on the others, at every position but an episode's first.
    A window does not reach back beyond its episode's first observation.
    """
    if not windows or min(windows) < 1:
        raise MulvError("windows have at least 1 observation each; give one length or more")
    test = held_out(sequences)
    fit = Sequences(*(column[~test] for column in sequences))
    rest = Sequences(*(column[test] for column in sequences))
    rows, rows_test = fit.step > 0, rest.step > 0
    if not rows.any() or not rows_test.any():
        raise MulvError("every episode ends with its first decision: there is no window of two observations")
    y, y_test, varies = _targets(fit, rows, rest, rows_test)
    hidden = int(varies[:-1].sum())
    if not hidden:
        raise MulvError("nothing that this task hides ever varies in the data; let other actions be taken")
    by, episode = scales(fit), rest.episode[rows_test]
    key = seeding.key(seed, Stream.INIT)

    def scored(predicted: np.ndarray) -> Score:
        return score(y_test[rows_test], predicted, episode, hidden, seeding.generator(seed, Stream.INSPECT))

    found = {}
    for L in sorted(set(windows)):
        x, x_test = window_inputs(fit, by, L)[rows], window_inputs(rest, by, L)[rows_test]
        found[L] = scored(
            fit_windows(x, y[rows], x_test, updates=updates, key=jax.random.fold_in(key, L), tick=tick)
        )
    recurrent = None
    if gru:
        x, x_test = window_inputs(fit, by, 2), window_inputs(rest, by, 2)
        predicted = fit_recurrent(
            x, ~rows, y, x_test, ~rows_test, updates=_gru_updates(updates), key=key, tick=tick
        )
        recurrent = scored(predicted[rows_test])
    return Measurement(
        names=tuple(name for name, does in zip(names, varies[:-1], strict=True) if does),
        constant=tuple(name for name, does in zip(names, varies[:-1], strict=True) if not does),
        windows=found,
        gru=recurrent,
        fitted_rows=int(rows.sum()),
        tested_rows=int(rows_test.sum()),
        tested_episodes=int(np.unique(episode).size),
    )


def _gru_updates(updates: int) -> int:
    return max(1, round(GRU_SHARE * updates))


def _targets(
    fit: Sequences, rows: np.ndarray, rest: Sequences, rows_test: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets for fitting and testing, and a mask of which of hidden entries and reward they are.

    Those that vary in both parts, scaled by mean and standard deviation of the fitted rows.
    """
    y, y_test = (
        np.concatenate([part.hidden, part.rewards[..., None]], axis=-1).astype(np.float64)
        for part in (fit, rest)
    )
    mean, spread = y[rows].mean(0), y[rows].std(0)
    least = NO_SPREAD * (1 + np.abs(mean))
    varies = (spread > least) & (y_test[rows_test].std(0) > least)
    y, y_test = (((part - mean) / np.where(varies, spread, 1))[..., varies] for part in (y, y_test))
    return y.astype(np.float32), y_test.astype(np.float32), varies
