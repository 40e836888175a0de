"""The tiger behind one of two doors (Cassandra, Kaelbling and Littman, 1994)."""

import numpy as np

from mulv.tabular.pomdp import POMDP


def tiger(accuracy: float = 0.85) -> POMDP:
    """Listen, at a cost of one, or open a door: the tiger costs a hundred, the other door pays ten.

    After a door has been opened the tiger is put behind either one anew.
    """
    stay, anew = np.eye(2), np.full((2, 2), 0.5)
    hear = np.array([[accuracy, 1 - accuracy], [1 - accuracy, accuracy]])
    doors = ("tiger-left", "tiger-right")
    return POMDP(
        transition=(stay, anew, anew),
        observation=(hear, anew, anew),
        reward=np.array([[-1, -1], [-100, 10], [10, -100]]),
        start=np.full(2, 0.5),
        discount=0.95,
        state_names=doors,
        action_names=("listen", "open-left", "open-right"),
        observation_names=doors,
    )
