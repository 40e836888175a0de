"""What lets a person see a run work: probes, reconstructions, films."""
