"""Semantic analysis: types resolved, templates matched, constant expressions evaluated, classes laid out."""
