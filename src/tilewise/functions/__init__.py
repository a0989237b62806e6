"""The public functions beside `matmul`, with gradients and tracing by PyTorch and JAX."""
