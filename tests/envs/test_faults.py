"""Environments that break: named while they run, and tried out before anything is written."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import psutil
import pytest

from mulv.core.errors import EnvironmentFault, NonFiniteError
from mulv.envs import Lanes, preflight
from tests.envs.test_lanes import Counting, collect, episode_seed, lanes_of


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
    lanes = Lanes.of(Hanging, 1, episode_seed, workers=True, timeout=60.0)
    lanes.start()
    assert living_workers()
    lanes._timeout = 0.3
    with pytest.raises(EnvironmentFault, match=r"step, .*within 0.3 s"):
        lanes.step(np.zeros((1, 2), np.float32))
    lanes.close()
    assert multiprocessing.active_children() == []
    assert living_workers() == []


def test_a_worker_that_raises_is_the_cause_of_a_fault():
    lanes = Lanes.of(Raising, 1, episode_seed, workers=True)
    lanes.start()
    with pytest.raises(EnvironmentFault, match="ZeroDivisionError") as fault:
        lanes.step(np.zeros((1, 2), np.float32))
    lanes.close()
    assert isinstance(fault.value.__cause__, ZeroDivisionError)
    assert multiprocessing.active_children() == []


def test_workers_give_the_same_rows_as_this_process():
    outside = Lanes.of(Counting, 2, episode_seed, workers=True)
    inside, outside_rows = collect(Lanes.of(Counting, 2, episode_seed), 8), collect(outside, 8)
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
