"""TensorBoard's event file, written by the thread that logs.

tensorboardX's own writer has a thread behind a queue; when a full disk ends that thread the queue is never
emptied, and the run waits forever instead of stopping.
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
    """Scalars, and vectors as histograms. With `purge_step`, TensorBoard hides what came from there on."""

    def __init__(self, directory: Path, purge_step: int | None = None):
        directory.mkdir(parents=True, exist_ok=True)
        self._writer = EventsWriter(str(directory / "events"))
        if purge_step is not None:
            self._writer.write_event(Event(step=purge_step, session_log=SessionLog(status=SessionLog.START)))

    def add(self, values: Mapping[str, float | list[float]], step: int) -> None:
        """Values by their names, readable by others when this returns."""
        for name, value in values.items():
            vector = isinstance(value, list)
            summary = histogram(name, np.asarray(value), BINS) if vector else scalar(name, value)
            self._writer.write_event(Event(wall_time=time.time(), step=step, summary=summary))
        self._writer._py_recordio_writer._writer.flush()  # not EventsWriter's: that one waits for the disk

    def close(self) -> None:
        """Finish writing."""
        self._writer._py_recordio_writer.close()
