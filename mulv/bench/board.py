"""The display of a sweep's progress: a table that redraws itself in a terminal, plain lines in a log."""

import shutil
import sys
import time
from collections import deque
from typing import IO

import numpy as np

from mulv.bench.estimate import steps_a_second
from mulv.bench.process import Message
from mulv.bench.suite import Job
from mulv.run.result import RunResult

REDRAW_SECONDS = 0.5
LINES_SECONDS = 60.0  # between lines about one run in a log file
RECENT_SECONDS = 60.0  # rates are over the last minute, because the random steps at the start are fast


class Pace:
    """The progress and speed of a run."""

    def __init__(self, job: Job):
        self.job, self.steps, self.ret = job, 0, np.nan
        self._recent: deque[tuple[float, int]] = deque()

    def update(self, steps: int, ret: float | None) -> None:
        now = time.monotonic()
        self.steps, self.ret = steps, np.nan if ret is None else ret
        self._recent.append((now, steps))
        while now - self._recent[0][0] > RECENT_SECONDS:
            self._recent.popleft()

    @property
    def rate(self) -> float | None:
        """Steps per second; None before the second report."""
        if len(self._recent) < 2:
            return None
        (start, first), (end, last) = self._recent[0], self._recent[-1]
        return (last - first) / max(end - start, 1e-9)

    def line(self) -> str:
        """The run as a row of the table."""
        rate, total = self.rate, self.job.steps
        speed = f"{rate:6.0f} steps/s" if rate else f"{'':14}"
        left = f"{duration((total - self.steps) / rate)} left" if rate else ""
        ret = "" if np.isnan(self.ret) else f"return {self.ret:.0f}"
        share = 100 * self.steps // total
        return f"{self.steps:>9,d} / {total:,d} {share:3d}% {speed}  {ret:14} {left}".rstrip()


class Board:
    """The display of a sweep. `before` is the number of runs that were finished when it began.

    `slots` processes run in parallel, each with `together` runs that share its speed.
    """

    def __init__(
        self, jobs: list[Job], before: int, slots: int, together: int = 1, stream: IO[str] | None = None
    ):
        self._out = stream or sys.stderr
        self._live = self._out.isatty()
        self._width = max((len(str(job)) for job in jobs), default=0)
        self._open, self._total, self._ended = dict.fromkeys(jobs), len(jobs) + before, before
        self._slots, self._together, self._failures = slots, together, 0
        self._paces: dict[Job, Pace] = {}
        self._rates: dict[str, float] = {}  # by method, the last one measured
        self._drawn, self._next = 0, time.monotonic() + (0.0 if self._live else LINES_SECONDS)

    def progress(self, job: Job, message: Message) -> None:
        """Show a run's progress message; the first one means that it has started or been resumed."""
        if job not in self._paces:
            taken_up = f", from {message['from']:,d} on" if message["from"] else ""
            self._say("begins", job, f"{job.steps:,d} steps{taken_up}")
        pace = self._paces.setdefault(job, Pace(job))
        pace.update(message["steps"], message["return"])
        if pace.rate:
            self._rates[job.method] = pace.rate

    def done(self, job: Job, result: RunResult) -> None:
        final = result["final_mean"]
        said = "not evaluated" if final is None else f"final return {final:.1f}"
        self._end(job, "done", f"{said}, {duration(result['wall_s'])}")

    def failed(self, job: Job, error: str, again: bool) -> None:
        if again:
            self._paces.pop(job, None)
            self._say("again", job, error)
        else:
            self._failures += 1
            self._end(job, "failed", error)

    def elsewhere(self, job: Job, error: str) -> None:
        self._end(job, "elsewhere", error)

    def refresh(self) -> None:
        """Redraw the running runs, if it is time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (REDRAW_SECONDS if self._live else LINES_SECONDS)
        lines = [self._row("running", job, pace.line()) for job, pace in self._paces.items()]
        if self._live:
            self._erase()
            columns = shutil.get_terminal_size().columns
            lines = [line[: columns - 1] for line in (*lines, self.summary())]  # must not wrap
            self._drawn = len(lines)
        if lines:
            print("\n".join(lines), file=self._out, flush=True)

    def close(self) -> None:
        if self._live:
            self._erase()
        print(self.summary(), file=self._out, flush=True)

    def summary(self) -> str:
        """The whole sweep in one line."""
        failed = f", {self._failures} failed" if self._failures else ""
        left = f"; about {duration(self.seconds_left)} left" if self._open else ""
        return f"{self._ended} of {self._total} runs{failed}{left}"

    @property
    def seconds_left(self) -> float:
        """Remaining seconds, by measured rates, or by estimates for methods that have not run yet."""
        work = sum(
            (job.steps - (self._paces[job].steps if job in self._paces else 0))
            / self._rates.get(job.method, steps_a_second(job) / self._together)
            for job in self._open
        )
        return work / max(1, min(self._slots * self._together, len(self._open)))

    def _end(self, job: Job, what: str, said: str) -> None:
        self._paces.pop(job, None)
        del self._open[job]
        self._ended += what == "done"
        self._say(what, job, said)

    def _say(self, what: str, job: Job, said: str) -> None:
        if self._live:
            self._erase()
            self._next = 0.0
        print(self._row(what, job, said), file=self._out, flush=True)

    def _row(self, what: str, job: Job, said: str) -> str:
        first, *more = said.splitlines() or [""]
        return f"{what:9} {job!s:{self._width}}  {first}{' …' if more else ''}"

    def _erase(self) -> None:
        """Erase the drawn lines: move the cursor up and clear to the end of the screen."""
        if self._drawn:
            print(f"\x1b[{self._drawn}F\x1b[J", end="", file=self._out)
            self._drawn = 0


def duration(seconds: float) -> str:
    """A duration as text, such as 45s, 12m30s, 3h05m."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
