"""PyTorch tensors, on the CPU or on a card. Reached only when torch is already imported."""

from __future__ import annotations

import sys
import threading
from functools import lru_cache
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DTYPES, FLOAT8, DType, promote
from tilewise.arrays.card import card_number
from tilewise.arrays.numpy_library import NUMPY, check_product_room
from tilewise.arrays.operand import Library, Operand
from tilewise.core.shapes import reach
from tilewise.errors import DeviceError, DtypeError, ShapeError, UsageError
from tilewise.system.imported import imported


class TorchLibrary(Library):
    name = "torch"

    def operand(self, tensor: Any, role: str) -> Operand:
        torch = sys.modules["torch"]
        if tensor.requires_grad and torch.is_grad_enabled():
            raise UsageError(f"{role} requires a gradient, which has no path through here: pass {role}.detach()")
        if tensor.layout is not torch.strided:
            raise UsageError(f"{role} is a {tensor.layout} tensor: pass {role}.to_dense()")
        if tensor.requires_grad:
            tensor = tensor.detach()
        if tensor.is_conj() or tensor.is_neg():
            if role == "out":
                how = "conjugated" if tensor.is_conj() else "negated"
                raise UsageError(f"out is a view that is {how} when it is read: pass a tensor without that view")
            tensor = tensor.resolve_conj().resolve_neg()
        name = dtype_name(tensor.dtype)
        if name in FLOAT8 and tensor.device.type == "cpu":
            return self.operand(tensor.float(), role)
        if name not in DTYPES and name not in FLOAT8:
            raise DtypeError(f"{role} has dtype torch.{name}, which tilewise does not multiply")
        dtype = DTYPES.get(name) or FLOAT8[name]
        shape, strides, device = tuple(tensor.shape), tensor.stride(), tensor.device
        _check_storage(tensor, shape, strides, role)
        if device.type == "cpu":
            return Operand(tensor, self, "cpu", dtype, shape, strides, tensor.data_ptr(), _host(tensor, dtype))
        if device.type != "cuda":
            raise DeviceError(f"{role} is on {device}: tilewise works on cpu and cuda tensors")
        return Operand(tensor, self, f"cuda:{device.index}", dtype, shape, strides, tensor.data_ptr())

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Operand:
        torch = sys.modules["torch"]
        if device == "cpu":
            check_product_room(shape, dtype)
        made = torch.empty(shape, dtype=getattr(torch, dtype.name), device=device)
        if device == "cpu":
            return self.operand(made, "out")
        return Operand(made, self, device, dtype, shape, made.stride(), made.data_ptr())

    def deliver(self, product: Operand) -> Any:
        return product.array

    def promote(self, m: DType, n: DType) -> DType:
        return _promote(m, n)

    def stream(self, device: str) -> int:
        return int(sys.modules["torch"]._C._cuda_getCurrentRawStream(card_number(device)))


class DirectCalls(threading.local):
    """In this context a thread's products call kernels directly, because torch's dispatcher has run."""

    depth = 0

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


DIRECT = DirectCalls()


def compiling() -> bool:
    """Whether torch.compile traces this call; `tilewise.torch` replaces this function by torch's own, which is
    faster."""
    torch = imported("torch")
    return torch is not None and torch.compiler.is_compiling()


def followed(M: Any, N: Any, out: Any = None, bias: Any = None) -> bool:
    """Whether a product of these must go through torch's dispatcher: for a gradient or a tangent, torch.compile,
    autocast, or another mode that records or transforms operations."""
    torch = sys.modules["torch"]
    if torch.compiler.is_compiling():
        return True
    if not isinstance(N, torch.Tensor) or DIRECT.depth:
        return False
    if M.is_nested or N.is_nested:
        raise UsageError("M or N is a nested tensor, whose matrices have many shapes: unbind() it and multiply each")
    if torch.is_grad_enabled() and (M.requires_grad or N.requires_grad or wants_gradient(bias)):
        return True
    return observed(M, N, out)


def observed(M: Any, N: Any, out: Any = None) -> bool:
    """Whether these are of a subclass of Tensor, meta tensors, under autocast, or recorded by torch."""
    torch = sys.modules["torch"]
    plain = (torch.Tensor, torch.nn.Parameter)
    if M.__class__ not in plain or N.__class__ not in plain or M.is_meta:
        return True
    return bool((out is None and torch.is_autocast_enabled("cuda" if M.is_cuda else "cpu")) or is_watched())


def is_watched() -> bool:
    """Whether torch records, counts or transforms operations: make_fx, jit.trace, a mode, torch.func, forward mode."""
    torch = sys.modules["torch"]
    c = torch._C
    return bool(
        c._len_torch_dispatch_stack()
        or c._are_functorch_transforms_active()
        or c._get_tracing_state() is not None
        or (torch.autograd.forward_ad._current_level >= 0 and c._is_fwd_grad_enabled())  # off inside a Function
    )


def wants_gradient(bias: Any) -> bool:
    """Whether a bias needs a gradient."""
    torch = sys.modules["torch"]
    return isinstance(bias, torch.Tensor) and bias.requires_grad and bool(torch.is_grad_enabled())


def _check_storage(tensor: Any, shape: tuple[int, ...], strides: tuple[int, ...], role: str) -> None:
    """A storage may have been resized below its tensor's size, as sharded models do."""
    if 0 in shape:
        return
    last = tensor.storage_offset() + reach(shape, strides)[1]
    needs, has = (last + 1) * tensor.element_size(), tensor.untyped_storage().nbytes()
    if needs > has:
        raise ShapeError(f"{role} is {shape} and needs {needs:,} bytes of a storage that has {has:,}")


@lru_cache(maxsize=1024)
def _promote(m: DType, n: DType) -> DType:
    """torch's rules: a float wins over every integer. NumPy's where torch has none (uint16 to uint64, 8-bit floats)."""
    torch = sys.modules["torch"]
    if m.name in FLOAT8 or n.name in FLOAT8 or {m.name, n.name} & {"uint16", "uint32", "uint64"}:
        return promote(m, n)
    return DTYPES[dtype_name(torch.promote_types(getattr(torch, m.name), getattr(torch, n.name)))]


@lru_cache(maxsize=64)
def dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _host(tensor: Any, dtype: DType) -> np.ndarray[Any, np.dtype[Any]]:
    """The same memory as a NumPy array; bfloat16 by its bits."""
    if dtype.name == "bfloat16":
        bits: np.ndarray[Any, np.dtype[Any]] = tensor.view(sys.modules["torch"].int16).numpy()
        return bits.view(dtype.numpy)
    host = NUMPY.operand(tensor.numpy(), "M").host
    assert host is not None
    return host


TORCH = TorchLibrary()
