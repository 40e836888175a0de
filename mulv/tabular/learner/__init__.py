"""Algorithms 1 and 2 of the paper in tables, what they are compared with, and their exact regret."""
