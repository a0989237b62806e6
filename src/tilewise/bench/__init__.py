"""Benchmarks: suites of interleaved timings beside peers, the JSON document of a run, and its plots."""
