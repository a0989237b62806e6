"""Closures and paths over idempotent semirings: shortest and widest paths, reachability."""
