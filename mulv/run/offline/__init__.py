"""Datasets: collected from runs, read into a replay, learned from."""
