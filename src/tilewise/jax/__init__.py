"""tilewise for JAX programs that are being traced: what `tw.matmul` uses inside jit, vmap and grad. It imports jax."""

from tilewise.jax.operator import matmul

__all__ = ["matmul"]
