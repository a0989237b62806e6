"""Products of structured values: tuples of arrays, field by field, or NumPy's structured arrays."""
