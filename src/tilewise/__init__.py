"""Tiled matrix multiplication without cliffs: every shape, every algebra, every size, and nothing hidden.

    import tilewise as tw

    P = tw.matmul(M, N)                          # NumPy, CuPy, PyTorch, JAX in; the same kind out
    D = tw.matmul(W, W, semiring="min_plus")     # any semiring
    print(tw.plan(M, N))                         # what would run, and why
    tw.trace("kernel.cu", shape=(3, 3, 3))       # run CUDA C with no GPU and see every thread
    tw.check("kernel.cu")                        # every fault, by line and thread

Names are looked up when first used, so importing tilewise costs nothing: not even NumPy is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tilewise.system.forks  # noqa: F401  registers handlers: os.fork() waits for imports in progress
from tilewise.system.version import __version__ as __version__

if TYPE_CHECKING:
    from tilewise import jax as jax
    from tilewise import torch as torch
    from tilewise.algebra.builtin import semirings
    from tilewise.algebra.expression import (
        absolute,
        exp,
        largest,
        log,
        log1p,
        logaddexp,
        logical_and,
        logical_not,
        logical_or,
        maximum,
        minimum,
        smallest,
        sqrt,
        where,
    )
    from tilewise.algebra.modular import modular
    from tilewise.algebra.names import ActivationName, DTypeName, SemiringName
    from tilewise.algebra.semiring import Semiring
    from tilewise.algebra.structured_builtin import dual, k_best, max_arg, min_count
    from tilewise.api import matmul, plan
    from tilewise.arrays.device_array import DeviceArray, to_device
    from tilewise.backends.cpu.runtime.pool import get_num_threads, set_num_threads
    from tilewise.compose.graph.paths import path
    from tilewise.compose.groups.product import grouped_plan
    from tilewise.core.plan import Plan
    from tilewise.core.problem import Problem
    from tilewise.errors import (
        AlgebraError,
        CycleError,
        DeviceError,
        DtypeError,
        EngineError,
        FileError,
        KernelError,
        LimitError,
        OutOfMemoryError,
        ShapeError,
        TilewiseError,
        UsageError,
    )
    from tilewise.functions.block_sparse import block_sparse_matmul
    from tilewise.functions.closure import closure
    from tilewise.functions.contraction.chain import chain, power
    from tilewise.functions.contraction.einsum import einsum
    from tilewise.functions.contraction.vectors import inner, matvec, outer, tensordot, vecdot, vecmat
    from tilewise.functions.fingerprint import fingerprint
    from tilewise.functions.groups import grouped_matmul, scatter_rows
    from tilewise.functions.many import matmul_many
    from tilewise.planning.precompile import warm
    from tilewise.system import cache as cache
    from tilewise.teaching.page.exploring import explore
    from tilewise.teaching.page.views import Trace, trace
    from tilewise.teaching.trace import check

__all__ = [
    "ActivationName",
    "AlgebraError",
    "CycleError",
    "DTypeName",
    "DeviceArray",
    "DeviceError",
    "DtypeError",
    "EngineError",
    "FileError",
    "KernelError",
    "LimitError",
    "OutOfMemoryError",
    "Plan",
    "Problem",
    "Semiring",
    "SemiringName",
    "ShapeError",
    "TilewiseError",
    "Trace",
    "UsageError",
    "absolute",
    "block_sparse_matmul",
    "chain",
    "check",
    "closure",
    "dual",
    "einsum",
    "exp",
    "explore",
    "fingerprint",
    "get_num_threads",
    "grouped_matmul",
    "grouped_plan",
    "inner",
    "k_best",
    "largest",
    "log",
    "log1p",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "matmul",
    "matmul_many",
    "matvec",
    "max_arg",
    "maximum",
    "min_count",
    "minimum",
    "modular",
    "outer",
    "path",
    "plan",
    "power",
    "scatter_rows",
    "semirings",
    "set_num_threads",
    "smallest",
    "sqrt",
    "tensordot",
    "to_device",
    "trace",
    "vecdot",
    "vecmat",
    "warm",
    "where",
]

_NAMES = {  # module → its public names; errors and expression functions are looked up by their kind
    "api": "matmul plan",
    "functions.closure": "closure",
    "functions.groups": "grouped_matmul scatter_rows",
    "functions.block_sparse": "block_sparse_matmul",
    "functions.fingerprint": "fingerprint",
    "functions.many": "matmul_many",
    "functions.contraction.chain": "chain power",
    "functions.contraction.einsum": "einsum",
    "functions.contraction.vectors": "inner matvec outer tensordot vecdot vecmat",
    "compose.graph.paths": "path",
    "compose.groups.product": "grouped_plan",
    "backends.cpu.runtime.pool": "get_num_threads set_num_threads",
    "arrays.device_array": "DeviceArray to_device",
    "algebra.semiring": "Semiring",
    "algebra.names": "ActivationName DTypeName SemiringName",
    "algebra.modular": "modular",
    "algebra.structured_builtin": "dual k_best max_arg min_count",
    "algebra.builtin": "semirings",
    "core.plan": "Plan",
    "core.problem": "Problem",
    "teaching.page.exploring": "explore",
    "teaching.page.views": "Trace trace",
    "teaching.trace": "check",
    "planning.precompile": "warm",
}
_HOME = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "cache":  # tw.cache.clear(), tw.cache.cache_folder()
        return importlib.import_module("tilewise.system.cache")
    if name in ("jax", "torch"):  # tw.torch.Linear and others: importing them imports the framework
        try:
            return importlib.import_module(f"tilewise.{name}")
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            needs = f"tilewise.{name} needs {name}, which is not installed: pip install 'tilewise[{name}]'"
            raise ModuleNotFoundError(needs, name=name) from None
    if name in __all__:
        home = _HOME.get(name) or ("errors" if name.endswith("Error") else "algebra.expression")
        value = getattr(importlib.import_module(f"tilewise.{home}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'tilewise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "cache", "jax", "torch"])
