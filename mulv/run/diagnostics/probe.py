"""How much an agent's latent tells of what its task hides: a nonlinear regression from latent to hidden.

It is fitted on half of an evaluation's episodes and tested on the others. For comparison, the same regression
is done from the agent's window (an upper bound for a latent computed from it), and from the present
observation alone (what is known without memory). `mulv memory` compares windows of all lengths on more data.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from scipy.linalg import solve

EVERY = 5  # decisions between rows, because successive rows are nearly equal
ROWS = 1500  # fitted at most
RIDGE, WIDTH = 1e-3, 2.0  # the kernel's width is relative to the median of squared distances


@dataclass(frozen=True)
class Probe:
    """Hidden values of the test episodes, their predictions from the latent, and R² of all regressions."""

    hidden: np.ndarray  # row, hidden entry
    predicted: np.ndarray
    r2: np.ndarray  # of each hidden entry, from the latent; 1 is perfect, 0 is predicting the mean
    r2_window: np.ndarray  # the same, from the window
    r2_obs: np.ndarray  # the same, from the present observation alone

    def summary(self) -> dict[str, float]:
        return {
            "probe/hidden_r2": float(self.r2.mean()),
            "probe/hidden_r2_worst": float(self.r2.min()),
            "probe/hidden_r2_of_window": float(self.r2_window.mean()),
            "probe/hidden_r2_without_memory": float(self.r2_obs.mean()),
        }


class RecentSteps:
    """The last observations of each environment and the actions between them, as inputs of the regression."""

    def __init__(self, window: int):
        self._window = window
        self._obs: deque[np.ndarray] = deque(maxlen=window)
        self._actions: deque[np.ndarray] = deque(maxlen=window)

    def add(self, obs: np.ndarray, action: np.ndarray) -> None:
        """Add the present observations and the actions taken at them."""
        self._obs.append(np.array(obs).reshape(len(obs), -1))
        self._actions.append(np.array(action))

    def inputs(self) -> np.ndarray:
        """The newest observation, and the changes and actions before it; zero before the first step."""
        obs, actions = list(self._obs), list(self._actions)[:-1]
        missing = self._window - len(obs)
        changes = [np.zeros_like(obs[0])] * missing + [b - a for a, b in pairwise(obs)]
        taken = [np.zeros_like(self._actions[0])] * missing + actions
        return np.concatenate([obs[-1], *changes, *taken], axis=1)


@dataclass
class ProbeData:
    """Rows for the regressions, collected during an evaluation."""

    latents: list[np.ndarray] = field(default_factory=list)
    windows: list[np.ndarray] = field(default_factory=list)
    obs: list[np.ndarray] = field(default_factory=list)
    hidden: list[np.ndarray] = field(default_factory=list)
    envs: list[np.ndarray] = field(default_factory=list)

    def add(
        self, latents: np.ndarray, windows: np.ndarray, obs: np.ndarray, hidden: np.ndarray, envs: np.ndarray
    ) -> None:
        """Add one step's rows of the environments with indices `envs`."""
        self.latents.append(latents[envs])
        self.windows.append(windows[envs])
        self.obs.append(obs[envs])
        self.hidden.append(hidden[envs])
        self.envs.append(envs)

    def fit(self) -> Probe | None:
        """Fit and test the regressions; None if there are too few episodes or rows."""
        if not self.envs:
            return None
        hidden, envs = (np.concatenate(column).astype(np.float64) for column in (self.hidden, self.envs))
        fitted = envs % 2 == 0
        if min(fitted.sum(), (~fitted).sum()) < 2:
            return None

        def from_inputs(column: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
            x = np.concatenate(column).astype(np.float64)
            return kernel_regression(x[fitted], hidden[fitted], x[~fitted], hidden[~fitted])

        predicted, r2 = from_inputs(self.latents)
        return Probe(hidden[~fitted], predicted, r2, from_inputs(self.windows)[1], from_inputs(self.obs)[1])


def kernel_regression(
    x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian kernel ridge regression of y on x: predictions on the test rows, and R² of each column there.

    It is as accurate as a network of two layers here, takes a tenth of a second, and needs no compilation.
    """
    centre, scale = x.mean(0), x.std(0) + 1e-8
    x, x_test = (x - centre) / scale, (x_test - centre) / scale
    kept = np.linspace(0, len(x) - 1, min(len(x), ROWS)).astype(np.intp)
    x, y = x[kept], y[kept]
    width = WIDTH * np.median(_squared_distances(x[::4], x[::4])) + 1e-8
    gram = np.exp(-_squared_distances(x, x) / width) + RIDGE * np.eye(len(x))
    weights = solve(gram, y - y.mean(0), assume_a="pos")
    predicted = np.exp(-_squared_distances(x_test, x) / width) @ weights + y.mean(0)
    spread = np.square(y_test - y_test.mean(0)).sum(0) + 1e-12
    return predicted, 1 - np.square(y_test - predicted).sum(0) / spread


def _squared_distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2 * a @ b.T, 0.0)
