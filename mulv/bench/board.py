"""What a person watching a sweep sees: a table that redraws itself, or plain lines where nobody watches."""

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
LINES_SECONDS = 60.0  # between lines of one run in a log file
RECENT_SECONDS = 60.0  # a rate is that of the last minute, because random first steps are fast


class Pace:
    """How far a run is, and how fast it goes."""

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
        """Steps a second, once there are two reports."""
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
    """The sweep so far. `before` counts runs that were finished when it began.

    There are so many `slots` at once, each with so many runs `together` that share its speed.
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
        self._rates: dict[str, float] = {}  # by method, as seen last
        self._drawn, self._next = 0, time.monotonic() + (0.0 if self._live else LINES_SECONDS)

    def progress(self, job: Job, message: Message) -> None:
        """A run says how far it is; its first word means that it has begun, or was taken up again."""
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
        """Redraw what runs, if it is time."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (REDRAW_SECONDS if self._live else LINES_SECONDS)
        lines = [self._row("running", job, pace.line()) for job, pace in self._paces.items()]
        if self._live:
            self._erase()
            columns = shutil.get_terminal_size().columns
            lines = [line[: columns - 1] for line in (*lines, self.summary())]  # a line that wraps is two
            self._drawn = len(lines)
        if lines:
            print("\n".join(lines), file=self._out, flush=True)

    def close(self) -> None:
        if self._live:
            self._erase()
        print(self.summary(), file=self._out, flush=True)

    def summary(self) -> str:
        """The whole sweep in a line."""
        failed = f", {self._failures} failed" if self._failures else ""
        left = f"; about {duration(self.seconds_left)} left" if self._open else ""
        return f"{self._ended} of {self._total} runs{failed}{left}"

    @property
    def seconds_left(self) -> float:
        """By the rates seen so far, or by estimates where a method has not run yet."""
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
        """Take the drawn lines back: up, and clear to the end of the screen."""
        if self._drawn:
            print(f"\x1b[{self._drawn}F\x1b[J", end="", file=self._out)
            self._drawn = 0


def duration(seconds: float) -> str:
    """Such as 45s, 12m30s, 3h05m."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
