"""What an agent's latent knows of what its task hides: a linear probe from one to the other.

It is fitted on half of an evaluation's episodes and tested on the others.
"""

from dataclasses import dataclass, field

import numpy as np

EVERY = 5  # decisions between rows: neighbours say the same
RIDGE = 1e-3


@dataclass(frozen=True)
class Probe:
    """Hidden values of the tested episodes, and what the probe makes of the latent there."""

    hidden: np.ndarray  # row, hidden entry
    predicted: np.ndarray
    r2: np.ndarray  # a hidden entry; 1 is perfect, 0 is the mean
    r2_obs: np.ndarray  # the same from the present observation alone, without memory

    def summary(self) -> dict[str, float]:
        return {
            "probe/hidden_r2": float(self.r2.mean()),
            "probe/hidden_r2_worst": float(self.r2.min()),
            "probe/hidden_r2_without_memory": float(self.r2_obs.mean()),
        }


@dataclass
class ProbeData:
    """Rows gathered while episodes run."""

    latents: list[np.ndarray] = field(default_factory=list)
    obs: list[np.ndarray] = field(default_factory=list)
    hidden: list[np.ndarray] = field(default_factory=list)
    envs: list[np.ndarray] = field(default_factory=list)

    def add(self, latents: np.ndarray, obs: np.ndarray, hidden: np.ndarray, envs: np.ndarray) -> None:
        """The rows of some envs at one step."""
        self.latents.append(latents[envs])
        self.obs.append(obs[envs])
        self.hidden.append(hidden[envs])
        self.envs.append(envs)

    def fit(self) -> Probe | None:
        """The probe, or None where there are too few episodes or rows to fit and test one."""
        if not self.envs:
            return None
        latents, obs, hidden, envs = (
            np.concatenate(column).astype(np.float64)
            for column in (self.latents, self.obs, self.hidden, self.envs)
        )
        fitted = envs % 2 == 0
        if min(fitted.sum(), (~fitted).sum()) < 2:
            return None
        predicted, r2 = linear_probe(latents[fitted], hidden[fitted], latents[~fitted], hidden[~fitted])
        _, r2_obs = linear_probe(obs[fitted], hidden[fitted], obs[~fitted], hidden[~fitted])
        return Probe(hidden[~fitted], predicted, r2, r2_obs)


def linear_probe(
    x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ridge regression of y on x: predictions on the test rows, and R² of each column there."""
    centre, scale = x.mean(0), x.std(0) + 1e-8
    x, x_test = (x - centre) / scale, (x_test - centre) / scale
    gram = x.T @ x / len(x) + RIDGE * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, x.T @ (y - y.mean(0)) / len(x))
    predicted = x_test @ weights + y.mean(0)
    spread = np.square(y_test - y_test.mean(0)).sum(0) + 1e-12
    return predicted, 1 - np.square(y_test - predicted).sum(0) / spread
