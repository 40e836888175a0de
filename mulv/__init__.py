"""Reinforcement learning where the agent does not see the state."""
