"""Drawing frames: GL contexts, cameras, and what an environment of frames shows."""
