"""Neural networks as Equinox modules, for one example; the caller's vmap adds the batch."""
