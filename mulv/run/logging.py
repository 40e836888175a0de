"""Metrics as JSON lines and TensorBoard events; evaluations as JSON lines and SB3's npz."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mulv.data.files import written_aside
from mulv.run.diagnostics.reconstructions import write_png
from mulv.run.evaluation import Evaluation
from mulv.run.events import EventFile


class Logger:
    """Appends to a run's log files. A resumed run passes `offsets`, to drop lines after its checkpoint."""

    def __init__(self, directory: Path, offsets: Mapping[str, int] | None = None, clock: int = 0):
        self._directory = directory
        self._files = {}
        for name in ("metrics.jsonl", "evaluations.jsonl"):
            file = (directory / name).open("ab")
            file.truncate(offsets[name] if offsets else 0)
            self._files[name] = file
        self._events = EventFile(directory / "tensorboard", purge_step=clock + 1 if offsets else None)
        self.evaluations = read_evaluations(directory)
        if offsets:
            self._write_npz()

    @property
    def offsets(self) -> dict[str, int]:
        """The length of each file, after it was synced to disk."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        return {name: os.fstat(file.fileno()).st_size for name, file in self._files.items()}

    def metrics(self, counters: Mapping[str, int], values: Mapping[str, float | list[float]]) -> None:
        """Write one line of training metrics; vectors become histograms in TensorBoard."""
        self._append("metrics.jsonl", {**counters, **values})
        self._events.add(values, clock_of(counters))

    def evaluation(self, counters: Mapping[str, int], evaluation: Evaluation) -> None:
        """Write one evaluation, with the results of every episode."""
        record = {**counters, **evaluation.to_json()}
        self._append("evaluations.jsonl", record)
        self.evaluations.append(record)
        self._events.add(evaluation.summary(), clock_of(counters))
        self._write_npz()
        if evaluation.probe:
            self._replace_npz("probe.npz", asdict(evaluation.probe))

    def close(self) -> None:
        """Close all files."""
        self._events.close()
        for file in self._files.values():
            file.close()

    def _append(self, name: str, record: dict[str, Any]) -> None:
        self._files[name].write(json.dumps(record).encode() + b"\n")
        self._files[name].flush()

    def _write_npz(self) -> None:
        """Write all evaluations to evaluations.npz, in Stable-Baselines3's format."""
        if not self.evaluations:
            return
        columns = {
            "timesteps": [clock_of(e) for e in self.evaluations],
            "results": [e["returns"] for e in self.evaluations],
            "ep_lengths": [e["lengths"] for e in self.evaluations],
        }
        if all(e["successes"] is not None for e in self.evaluations):
            columns["successes"] = [e["successes"] for e in self.evaluations]
        self._replace_npz("evaluations.npz", columns)

    def latent_projection(self, columns: Mapping[str, np.ndarray]) -> None:
        """Write the newest latent projection, which replaces the one before."""
        self._replace_npz("latent_projection.npz", columns)

    def reconstructions(self, clock: int, picture: np.ndarray) -> None:
        """Write the picture of frames and their reconstructions, one file per evaluation."""
        folder = self._directory / "reconstructions"
        folder.mkdir(exist_ok=True)
        write_png(folder / f"{clock:010d}.png", picture)

    def _replace_npz(self, name: str, columns: Mapping[str, Any]) -> None:
        """Write arrays to one file, atomically."""
        arrays = {name: np.asarray(column) for name, column in columns.items()}
        with written_aside(self._directory / name) as aside, aside.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]


def clock_of(counters: Mapping[str, Any]) -> int:
    """`Counters.clock` of a logged line; lines of older versions have no `offline_updates`."""
    return int(counters["env_steps"] + counters.get("offline_updates", 0))


def read_evaluations(directory: Path) -> list[dict[str, Any]]:
    """A run's evaluations, oldest first."""
    path = directory / "evaluations.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
