"""CUDA C++ as text to a syntax tree: source, lexer, preprocessor, parser, and C's types."""
