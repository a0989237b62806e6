"""The public functions beside `matmul`, which PyTorch and JAX may follow."""
