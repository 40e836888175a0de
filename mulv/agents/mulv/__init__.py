"""µLV-Rep: the paper's method."""
