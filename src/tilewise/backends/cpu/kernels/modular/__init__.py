"""Products of few integers modulo p."""
