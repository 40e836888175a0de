"""Diagnostics of a run: probes, reconstructions, latent projections, videos, true values."""
