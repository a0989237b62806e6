"""Measured speed: suites of interleaved timings against peers, the document they make, and its plots."""
