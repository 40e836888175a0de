"""Rendering of frames: GL contexts, cameras, and environments whose observations are frames."""
