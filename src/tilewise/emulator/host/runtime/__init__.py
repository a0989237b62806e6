"""The runtime of a host program: memory, console, C library and the CUDA runtime."""
