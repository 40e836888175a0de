"""Equinox modules: one example at a time, batched by the caller's vmap."""
