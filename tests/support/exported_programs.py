"""A function as `jax.export` writes and reads it."""

from __future__ import annotations

import importlib.util

import jax
from jax import export


def through_a_file(call, *operands, vjp_order=0):
    """The program written for three platforms and read again, with nothing in it that another process has not."""
    written = export.export(jax.jit(call), platforms=("cpu", "cuda", "tpu"))(*operands)
    assert "custom_call" not in str(written.mlir_module()), "a target or a callback"
    if importlib.util.find_spec("flatbuffers") is None:  # which JAX needs to write files
        return written
    return export.deserialize(written.serialize(vjp_order=vjp_order))
