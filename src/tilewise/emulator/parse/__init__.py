"""CUDA C++ from tokens to one tree: entities, functions, statements, expressions, types as written."""
