"""What a host program meets while it runs: memory, console, C library and the CUDA runtime."""
