"""Maths and types that all packages share: no I/O, no environments."""
