"""Exact finite POMDPs: the paper's definitions and claims in tables, in float64."""
