"""TensorBoard's event file, written in the calling thread.

tensorboardX's own writer uses a queue and a second thread. If a full disk ends that thread, the queue is
never emptied, and the run would hang instead of stopping with an error.
"""

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from tensorboardX.event_file_writer import EventsWriter
from tensorboardX.proto.event_pb2 import Event, SessionLog
from tensorboardX.summary import histogram, scalar

BINS = 30


class EventFile:
    """Writes scalars, and vectors as histograms. TensorBoard hides earlier events from `purge_step` on."""

    def __init__(self, directory: Path, purge_step: int | None = None):
        directory.mkdir(parents=True, exist_ok=True)
        self._writer = EventsWriter(str(directory / "events"))
        if purge_step is not None:
            self._writer.write_event(Event(step=purge_step, session_log=SessionLog(status=SessionLog.START)))

    def add(self, values: Mapping[str, float | list[float]], step: int) -> None:
        """Write values by name; other processes can read them when this returns."""
        for name, value in values.items():
            vector = isinstance(value, list)
            summary = histogram(name, np.asarray(value), BINS) if vector else scalar(name, value)
            self._writer.write_event(Event(wall_time=time.time(), step=step, summary=summary))
        self._writer._py_recordio_writer._writer.flush()  # EventsWriter.flush would wait for the disk

    def close(self) -> None:
        """Close the file."""
        self._writer._py_recordio_writer.close()
