"""Environments that break: named while they run, and tried out before anything is written."""

import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import psutil
import pytest

from mulv.core.errors import EnvironmentFault, NonFiniteError
from mulv.envs import VectorEnv, preflight
from tests.envs.test_vector_env import Counting, collect, episode_seed, lanes_of


class NaNObservation(Counting):
    def _obs(self):
        return super()._obs() if self.count == 0 else np.full(2, np.nan, np.float32)


class InfiniteReward(Counting):
    def step(self, action):
        obs, _, *rest = super().step(action)
        return obs, np.inf, *rest


class Raising(Counting):
    def step(self, action):
        raise ZeroDivisionError("the simulator diverged")


class Hanging(Counting):
    def step(self, action):
        time.sleep(30)
        return super().step(action)


class HangingReset(Counting):
    def reset(self, *, seed=None, options=None):
        time.sleep(30)
        return super().reset(seed=seed)


@pytest.mark.parametrize(("make", "what"), [(NaNObservation, "observation"), (InfiniteReward, "reward")])
def test_a_non_finite_number_is_named_with_its_lane(make, what):
    lanes = lanes_of(Counting, make)
    lanes.start()
    with pytest.raises(NonFiniteError, match=rf"non-finite {what} at step 1 .*lane 1"):
        lanes.step(np.zeros((2, 2), np.float32))


def test_an_environment_that_raises_is_the_cause_of_a_fault():
    lanes = lanes_of(Raising)
    lanes.start()
    with pytest.raises(EnvironmentFault, match="ZeroDivisionError: the simulator diverged") as fault:
        lanes.step(np.zeros((1, 2), np.float32))
    assert isinstance(fault.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(("make", "call"), [(Hanging, "step"), (HangingReset, "reset")])
def test_an_environment_that_hangs_here_is_interrupted(make, call):
    lanes = lanes_of(make, timeout=0.3)
    with pytest.raises(EnvironmentFault, match=rf"{call}, .*within 0.3 s"):
        collect(lanes, steps=1)


WAITING = """
from mulv.envs.deadline import deadline
with deadline(2.0, "the environment"):
    print("begun", flush=True)
    input()
print("answered", flush=True)
"""


def test_a_process_that_was_stopped_for_longer_than_the_limit_goes_on():
    waiting = subprocess.Popen(
        [sys.executable, "-c", WAITING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert waiting.stdout.readline() == "begun\n"
    waiting.send_signal(signal.SIGSTOP)
    time.sleep(3)
    waiting.send_signal(signal.SIGCONT)
    assert waiting.communicate("here\n", timeout=20)[0] == "answered\n"
    assert waiting.returncode == 0


def living_workers() -> list[psutil.Process]:
    children = psutil.Process(os.getpid()).children(recursive=True)
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def test_a_worker_that_hangs_is_given_up_and_leaves_no_process():
    lanes = VectorEnv.of(Hanging, 1, episode_seed, workers=True, timeout=60.0)
    lanes.start()
    assert living_workers()
    lanes._timeout = 0.3
    with pytest.raises(EnvironmentFault, match=r"step, .*within 0.3 s"):
        lanes.step(np.zeros((1, 2), np.float32))
    lanes.close()
    assert multiprocessing.active_children() == []
    assert living_workers() == []


def test_a_worker_that_raises_is_the_cause_of_a_fault():
    lanes = VectorEnv.of(Raising, 1, episode_seed, workers=True)
    lanes.start()
    with pytest.raises(EnvironmentFault, match="ZeroDivisionError") as fault:
        lanes.step(np.zeros((1, 2), np.float32))
    lanes.close()
    assert isinstance(fault.value.__cause__, ZeroDivisionError)
    assert multiprocessing.active_children() == []


def in_worker() -> bool:
    return multiprocessing.parent_process() is not None


class Killed(Counting):
    """Its second lane's process is killed in its third step, as if memory had run out."""

    def step(self, action):
        if in_worker() and self.seeds[0] >= 100 and self.count == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)

    @staticmethod
    def length(episode: int) -> int:
        return 10


class KilledReset(Counting):
    def reset(self, *, seed=None, options=None):
        os.kill(os.getpid(), signal.SIGSEGV)


class ExitingStep(Counting):
    def step(self, action):
        os._exit(3)


class KilledAtBirth(Counting):
    def __init__(self):
        super().__init__()
        if in_worker():
            os.kill(os.getpid(), signal.SIGKILL)


class KilledWhileOthersHang(Killed):
    """The second lane dies, the first does not answer."""

    def step(self, action):
        if self.seeds[0] < 100 and self.count == 2:
            time.sleep(30)
        return super().step(action)


class RaisingEOF(Counting):
    def step(self, action):
        raise EOFError("the file of wind speeds ended")


class Stopped(Counting):
    """Its process stops, so that it would not hear a polite request to end."""

    def step(self, action):
        os.kill(os.getpid(), signal.SIGSTOP)


def run_and_close(lanes: VectorEnv) -> None:
    """A few steps, and then the end, as runs do it."""
    try:
        lanes.start()
        for _ in range(5):
            lanes.step(np.zeros((lanes.num_envs, 2), np.float32))
    finally:
        lanes.close()


def fault_of_workers(make, num: int = 1, timeout: float = 60.0) -> EnvironmentFault:
    """What becomes of environments in worker processes."""
    lanes = VectorEnv.of(make, num, episode_seed, workers=True, timeout=timeout)
    with warnings.catch_warnings(record=True) as warned, pytest.raises(EnvironmentFault) as fault:
        run_and_close(lanes)
    assert not [w for w in warned if "did not close" in str(w.message)]
    assert multiprocessing.active_children() == []
    assert living_workers() == []
    assert "\n" not in str(fault.value)
    return fault.value


@pytest.mark.parametrize(
    ("make", "num", "line"),
    [
        (Killed, 2, r"worker process of lane 1 died \(signal SIGKILL\) in .* step, after 2 steps"),
        (KilledReset, 1, r"worker process of lane 0 died \(signal SIGSEGV\) in .* reset"),
        (ExitingStep, 1, r"worker process of lane 0 died \(exit code 3\) in .* step"),
    ],
)
def test_a_worker_process_that_dies_is_named_with_its_lane(make, num, line):
    fault = str(fault_of_workers(make, num))
    assert re.search(line, fault)
    assert "EOFError" not in fault


def test_a_death_is_named_where_another_worker_does_not_answer():
    fault = fault_of_workers(KilledWhileOthersHang, 2, timeout=2.0)
    assert "lane 1 died (signal SIGKILL)" in str(fault)


def test_a_worker_process_that_dies_when_it_makes_its_environment_is_named():
    with pytest.raises(EnvironmentFault, match=r"lane 0 died \(signal SIGKILL\) when it made"):
        VectorEnv.of(KilledAtBirth, 1, episode_seed, workers=True)
    assert multiprocessing.active_children() == []


def test_an_end_of_file_that_an_environment_raises_is_its_own():
    assert "EOFError: the file of wind speeds ended" in str(fault_of_workers(RaisingEOF))


def test_closing_ends_a_process_that_does_not_listen(monkeypatch):
    monkeypatch.setattr("mulv.envs.workers.CLOSE_SECONDS", 0.2)
    assert "did not answer within 0.3 s" in str(fault_of_workers(Stopped, timeout=0.3))


@pytest.mark.parametrize("close", [lambda env: 1 / 0, lambda env: time.sleep(30)], ids=["raises", "hangs"])
def test_a_close_that_fails_does_not_hide_the_fault_before_it(close):
    lanes = lanes_of(type("Clinging", (Raising,), {"close": close}), timeout=0.3)
    warned = pytest.warns(UserWarning, match="did not close: (ZeroDivision|EnvironmentFault)")
    with warned, pytest.raises(EnvironmentFault, match="the simulator diverged"):
        run_and_close(lanes)


def test_workers_give_the_same_rows_as_this_process():
    outside = VectorEnv.of(Counting, 2, episode_seed, workers=True)
    inside, outside_rows = collect(VectorEnv.of(Counting, 2, episode_seed), 8), collect(outside, 8)
    outside.close()
    for here, there in zip(inside, outside_rows, strict=True):
        for a, b in zip(here, there, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)


# ------------------------------------------------------------------------------------------------ preflight


class WrongShape(Counting):
    def _obs(self):
        return np.zeros(3, np.float32)


class WrongType(Counting):
    def _obs(self):
        return np.zeros(2, np.float64)


class FourTuple(Counting):
    def step(self, action):
        return super().step(action)[:4]


class RaisingReset(Counting):
    def reset(self, *, seed=None, options=None):
        raise RuntimeError("no such model")


class VectorReward(Counting):
    def step(self, action):
        obs, reward, *rest = super().step(action)
        return obs, np.full(2, reward), *rest


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (WrongShape, r"reset .*shape \(3,\)"),
        (WrongType, "reset .*float64"),
        (FourTuple, "step must return"),
        (RaisingReset, "RuntimeError: no such model"),
        (Raising, "ZeroDivisionError"),
        (VectorReward, r"reward .*\(2,\)"),
    ],
)
def test_preflight_names_what_is_broken(make, problem):
    with pytest.raises(EnvironmentFault, match=problem):
        preflight(make)


def test_preflight_closes_the_environment_it_tried():
    closed = []

    class Closing(Counting):
        def close(self):
            closed.append(True)

    preflight(Closing)
    assert closed == [True]
