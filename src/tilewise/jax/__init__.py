"""tilewise inside jit, vmap and grad of JAX. It imports jax."""

from tilewise.jax.operator import matmul

__all__ = ["matmul"]
