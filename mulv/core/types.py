"""Conventions for axes and time indices, and the records that all packages exchange.

Time: `_h` is time h, `_h1` is h+1. The agent sees `o_h`, takes `a_h`, receives `r_h`, then sees `o_h1`.
Axes, a closed vocabulary: `batch time window steps obs act latent feature head`. Agents work on one example;
the caller's `vmap` adds the batch axis. For frames, `obs` stands for three axes of uint8.
"""

from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float, UInt8

Metrics = dict[str, Array]
PyTree = Any


class Window(NamedTuple):
    """x_h = (o_{h-L+1}, a_{h-L+1}, …, a_{h-1}, o_h): L observations and the L−1 actions between them.

    `mask` is False where the window starts before its episode does; those entries are zero.
    The action at position i lies between observations i and i+1, so it is real where `mask[i]` is.
    The reward at position i came with observation i; it is zero with an episode's first one. Rewards are no
    part of x_h in the paper: policies never read them, critics may (`critic_sees_rewards`).
    """

    obs: Float[Array, "*batch window obs"]
    actions: Float[Array, "*batch window-1 act"]
    mask: Bool[Array, "*batch window"]
    rewards: Float[Array, "*batch window"]


class Future(NamedTuple):
    """The `l` steps that follow x_h; entries past the episode's end are zero and masked out.

    Position i holds a_{h+i}, r_{h+i} and o_{h+i+1}: the action, and what it led to. `terminated` says whether
    the episode ended there, which is part of what is predicted.
    """

    actions: Float[Array, "*batch steps act"]
    rewards: Float[Array, "*batch steps"]
    obs: Float[Array, "*batch steps obs"]
    mask: Bool[Array, "*batch steps"]
    terminated: Bool[Array, "*batch steps"]


class Batch(NamedTuple):
    """A batch of transitions: the window, its n-step return, the window to bootstrap from, the future."""

    x_h: Window
    a_h: Float[Array, "*batch act"]
    reward: Float[Array, "*batch"]  # Σ_{i<k} γ^i r_{h+i}; k = n, or fewer where the episode or the data ends
    discount: Float[Array, "*batch"]  # γ^k, or 0 where the episode terminated within those k steps
    x_hn: Window  # x_{h+k}: the window to bootstrap from
    future: Future
    data_size: Float[Array, "*batch"]  # rows of the replay that this was drawn from: N of the bonus's Σ
    frames: UInt8[Array, "*frames 64 64 3"] | None = None  # o_h of some windows, if x_h has embeddings


class SequenceBatch(NamedTuple):
    """T consecutive steps of one environment, over which a recurrent state is unrolled.

    Like a row of the replay, position i holds o_h and what came before it: a_{h-1}, the action taken BEFORE
    o_h, and r_{h-1}. Both are zero where an episode begins. So the action taken at o_h, and its reward, are
    at position i+1.

    A sequence may start within an episode and cross its end. `first` marks where a new episode begins: the
    state is reset before o_h. `terminated` means that the value after o_h is zero. If the position before a
    `first` is not terminated, that episode was truncated, and a target must bootstrap there.
    """

    obs: Float[Array, "*batch time obs"]
    action: Float[Array, "*batch time act"]
    reward: Float[Array, "*batch time"]
    terminated: Bool[Array, "*batch time"]
    first: Bool[Array, "*batch time"]


AnyBatch = Batch | SequenceBatch  # what an agent's `batch_spec` asked for
