"""Vectorised kernels: a group of threads becomes the lanes of LLVM vectors."""
