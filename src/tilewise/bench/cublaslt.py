"""The vendor's own mma.sync kernels, through cuBLASLt's C interface: its heuristics never choose them on Hopper.

Every algorithm and every configuration of it that cuBLASLt accepts for a square bfloat16 product is run once; the
fastest whose kernel does not use wgmma is the peer of ours.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from tilewise.errors import EngineError

BFLOAT16, FLOAT32, COMPUTE = 14, 0, 68  # the library's numbers for CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F
TILE, STAGES = 1, 6  # attributes of an algorithm's configuration
TILES, STAGE_KINDS = 40, 36  # how many values of each are tried
WORKSPACE = 64 << 20
WGMMA_NAMES = ("sm90", "nvjet")  # in the names of kernels that use wgmma

Algorithm = ctypes.c_uint64 * 8


class _Checked(ctypes.Structure):
    _fields_ = (("algorithm", Algorithm), ("workspace", ctypes.c_size_t), ("rest", ctypes.c_int * 6))


def fastest_mma_sync(M: Any, N: Any, P: Any) -> tuple[Callable[[], None], str]:
    """A call that multiplies square row-major bfloat16 tensors, and its kernel's name."""
    import torch

    lt, side = _library(), M.shape[0]
    handle, what = ctypes.c_void_p(), ctypes.c_void_p()
    _check(lt.cublasLtCreate(ctypes.byref(handle)))
    _check(lt.cublasLtMatmulDescCreate(ctypes.byref(what), COMPUTE, FLOAT32))
    layout = ctypes.c_void_p()
    extent = ctypes.c_uint64(side)
    _check(lt.cublasLtMatrixLayoutCreate(ctypes.byref(layout), BFLOAT16, extent, extent, ctypes.c_int64(side)))
    room = torch.empty(WORKSPACE, device="cuda", dtype=torch.uint8)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def call(algorithm: Any) -> int:
        """The library counts by columns, so Pᵀ = Nᵀ Mᵀ."""
        stream = torch.cuda.current_stream().cuda_stream
        pointers = [ctypes.c_void_p(x.data_ptr()) for x in (N, M, P, P)]
        operands = [x for pair in zip(pointers, [layout] * 4, strict=True) for x in pair]
        first = (handle, what, ctypes.byref(one), *operands[:4], ctypes.byref(zero), *operands[4:], algorithm)
        space = (ctypes.c_void_p(room.data_ptr()), ctypes.c_size_t(WORKSPACE), ctypes.c_void_p(stream))
        return int(lt.cublasLtMatmul(*first, *space))

    best: tuple[float, Any, str] | None = None
    for algorithm in _accepted(lt, handle, what, layout):
        if call(algorithm):
            continue
        name = _kernel_name(torch, lambda algorithm=algorithm: call(algorithm))  # type: ignore[misc]
        if any(part in name for part in WGMMA_NAMES):
            continue
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call(algorithm)
        end.record()
        end.synchronize()
        seconds = start.elapsed_time(end)
        if best is None or seconds < best[0]:
            best = (seconds, algorithm, name)
    if best is None:
        raise EngineError("cuBLASLt has no mma.sync kernel for this product")
    found = best
    return (lambda: _check(call(found[1]))), found[2]


def _accepted(lt: Any, handle: Any, what: Any, layout: Any) -> list[Any]:
    """Every configuration that the library would run."""
    numbers, count = (ctypes.c_int * 200)(), ctypes.c_int()
    types = (COMPUTE, FLOAT32, BFLOAT16, BFLOAT16, BFLOAT16, BFLOAT16)
    _check(lt.cublasLtMatmulAlgoGetIds(handle, *types, 200, numbers, ctypes.byref(count)))
    made = []
    for number in numbers[: count.value]:
        for tile in range(TILES):
            for stages in range(STAGE_KINDS):
                algorithm, checked = Algorithm(), _Checked()
                if lt.cublasLtMatmulAlgoInit(handle, *types, number, algorithm):
                    continue
                for attribute, value in ((TILE, tile), (STAGES, stages)):
                    chosen = ctypes.c_uint32(value)
                    lt.cublasLtMatmulAlgoConfigSetAttribute(algorithm, attribute, ctypes.byref(chosen), 4)
                layouts = (layout, layout, layout, layout)
                fits = lt.cublasLtMatmulAlgoCheck(handle, what, *layouts, algorithm, ctypes.byref(checked)) == 0
                if fits and checked.workspace <= WORKSPACE:
                    made.append(algorithm)
    return made


def _kernel_name(torch: Any, call: Callable[[], Any]) -> str:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        call()
        torch.cuda.synchronize()
    return " ".join(event.key for event in profiled.key_averages() if "gemm" in event.key or "nvjet" in event.key)


def _library() -> Any:
    """The one that torch has loaded."""
    import torch

    torch.mm(*(torch.ones(8, 8, device="cuda") for _ in range(2)))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = [line.split()[-1] for line in maps if "libcublasLt.so" in line]
    if not paths:
        raise EngineError("torch has loaded no cuBLASLt")
    return ctypes.CDLL(paths[0])


def _check(code: int) -> None:
    if code:
        raise EngineError(f"cuBLASLt answered {code}")
