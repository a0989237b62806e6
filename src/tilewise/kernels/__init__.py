"""CUDA C++, one idea a file; `render` puts the algebra above a kernel and makes one self-contained source text."""
