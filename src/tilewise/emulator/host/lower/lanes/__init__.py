"""Kernels whose threads are compiled to run side by side: lanes of vectors instead of one thread after another."""
