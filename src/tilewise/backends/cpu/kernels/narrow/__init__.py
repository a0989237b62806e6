"""Conversion of a few numbers to a narrower dtype."""
