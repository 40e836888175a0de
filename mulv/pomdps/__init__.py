"""The POMDPs of the theory room as Gymnasium environments."""
