"""The cache of calls by signature, with LRU eviction, for every array library.

A signature is everything about a call but its addresses: shapes, strides, dtypes, alignment classes, device, keywords.
A prepared call runs on any arrays of the same signature: by the cpu backend's `Ready`, or a `Launcher` on a card.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from itertools import count
from threading import Lock
from typing import Any, Protocol

import numpy as np

from tilewise.arrays.address import address
from tilewise.arrays.extent import writable
from tilewise.arrays.numpy_signature import CLASSES, numpy_signature, quickest_signature, written_directly
from tilewise.backends.cpu.runtime import pool
from tilewise.core.options import Key
from tilewise.core.problem import Problem
from tilewise.system.imported import imported

LIMIT = 16384  # calls that are kept
Signature = Callable[[Any, Any, Any], Key | None]


tick = count().__next__  # a logical clock for LRU eviction


class Prepared(dict[Key, Any]):
    """Calls by signature. Threads read without a lock; each call has the tick of its last use."""

    def __init__(self) -> None:
        self._lock = Lock()

    def keep(self, key: Key, call: Any, mirrored: bool | None = None) -> None:
        """Insert a call; at the limit, the least recently used quarter is evicted. `mirrored`: whether M and N are one
        memory, if N has M's layout transposed, else None."""
        if mirrored is not None:
            both = self.get(key)
            if both.__class__ is not ByMemory:
                both = ByMemory()
            both.calls[mirrored] = call
            call = both
        call.tick = tick()
        with self._lock:
            if len(self) >= LIMIT:
                for old, _ in sorted(self.items(), key=lambda item: item[1].tick)[: LIMIT // 4]:
                    self.pop(old, None)
            self[key] = call


class ByMemory:
    """A call whose N has M's layout transposed. If both are one memory, P is symmetric, but addresses are no part of a
    signature: so there is a call for each case."""

    __slots__ = ("calls", "tick")

    def __init__(self) -> None:
        self.calls: list[Any] = [None, None]

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        """P; None if this case has not been called yet."""
        call = self.calls[one_memory(M, N)]
        return None if call is None else call(M, N, keywords)


def one_memory(M: Any, N: Any) -> bool:
    """Whether two arrays have the same address."""
    if isinstance(M, np.ndarray):
        return address(M) == address(N)
    return bool(M.data_ptr() == N.data_ptr() if hasattr(M, "data_ptr") else M.data.ptr == N.data.ptr)


PREPARED = Prepared()
if hasattr(os, "register_at_fork"):  # another thread of the parent may have held the lock
    os.register_at_fork(after_in_child=PREPARED._lock._at_fork_reinit)  # type: ignore[attr-defined]
pool.on_resize.append(PREPARED.clear)  # prepared calls are cut into tasks for a number of threads


class CardLibrary(Protocol):
    """The interface of a framework whose arrays are on one card."""

    address: Callable[[Any], int]
    stream: Callable[[], int]
    take: Callable[[int, int], Any]
    pointer: Callable[[Any], int]
    give_back: Callable[[Any], None]

    def holds(self, like: Any) -> Callable[[Any], bool] | None:
        """A test of whether the storage of an array with the layout of `like` reaches its last element."""


class OnHost:
    """A prepared product on the CPU."""

    __slots__ = ("_direct", "_dtypes", "_fresh", "_given", "_ready", "tick")

    def __init__(self, ready: Any, dtypes: tuple[Any, ...], direct: bool = False) -> None:
        """`dtypes`: of M, N and P, kept alive because a signature may hold their addresses. `direct`: `out` is known to
        be writeable and not to overlap M or N."""
        self._ready, self._dtypes, self._direct = ready, dtypes, direct
        self._fresh: Any = None  # made by the second call, as is `_given`
        self._given: Any = None

    def first(self, M: Any, N: Any, out: Any) -> Any:
        """P, without the closures that later calls use; None where `out` cannot be written directly."""
        writes = out is None or self._direct or self._ready.takes(out, M, N)
        return self._ready.multiply(M, N, out) if writes else None

    def into(self, shape: tuple[int, ...]) -> OnHost | None:
        """The same product with a P of another shape and the same size; None where operands are scanned for missing
        edges."""
        if self._ready.no_edge is not None:
            return None
        ready = copy(self._ready)
        ready.shape = shape
        return OnHost(ready, self._dtypes)

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        """P, or None where neither `out` can be written nor a product in new memory be copied to it."""
        if self._fresh is None:
            self._given, self._fresh = self._ready.into_given_memory(), self._ready.into_fresh_memory()
        if not keywords:
            return self._fresh(M, N)
        if self._direct:
            return self._given(M, N, keywords["out"])
        out = keywords.get("out")
        if out is None:
            return self._fresh(M, N)
        if self._ready.takes(out, M, N):
            return self._given(M, N, out)
        if keywords.get("accumulate") or not (out.__class__ in CLASSES and writable(out)):
            return None
        if out.dtype == self._ready.result and not out.flags.c_contiguous:
            return None  # prepared for the strides of `out`, which new memory does not have
        np.copyto(out, self._fresh(M, N), casting="unsafe")
        return out


class Constant:
    """A product on the host that has no k or no elements: the same for all operands."""

    __slots__ = ("_copy", "tick")

    def __init__(self, product: Any) -> None:
        own = product.clone() if hasattr(product, "clone") else product.copy()  # the caller may write to `product`
        self._copy = own.clone if hasattr(own, "clone") else own.copy

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        return None if keywords and keywords.get("out") is not None else self._copy()


class MoreThanAProduct:
    """The further steps of a call on NumPy arrays: operand conversions, the winning k, an epilogue, scales."""

    def __init__(
        self, ready: Any, converted: tuple[bool, bool], arg: bool, epilogue: Any = None, scaling: Any = None
    ) -> None:
        self.ready, self.converted, self.arg, self.epilogue, self.scaling = ready, converted, arg, epilogue, scaling

    def as_a_call(self, M: Any, N: Any) -> Any:
        """The prepared call; None where an operand was copied for another reason than its dtype."""
        from tilewise.backends.cpu.kernels.narrow.run import narrowing_of

        converters: list[Any] = []
        for x, dtype, converted in zip((M, N), self.ready.kernel.dtypes, self.converted, strict=True):
            if converted and (not isinstance(x, np.ndarray) or x.dtype == dtype):
                return None
            converters.append(narrowing_of(x, dtype) if converted else None)
        return OnHostWithMore(self, converters, (M.dtype, N.dtype))


class OnHostWithMore:
    """A prepared product on the CPU with conversions, arg, epilogue or scales."""

    __slots__ = ("_arg", "_dtypes", "_epilogue", "_fresh", "_left", "_ready", "_right", "_scaling", "tick")

    def __init__(self, more: MoreThanAProduct, converters: list[Any], dtypes: tuple[Any, Any]) -> None:
        """`converters`: of M and N, or None; `dtypes`: of the arrays, kept alive as in `OnHost`."""
        self._ready, self._dtypes = more.ready, dtypes
        self._left, self._right = converters
        self._arg, self._epilogue, self._scaling = more.arg, more.epilogue, more.scaling
        ready = more.ready
        self._fresh = ready.into_fresh_memory_with_arg() if more.arg else ready.into_fresh_memory()

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        """P, or P and the winning k; None where `out` cannot be written."""
        ready, out = self._ready, keywords.get("out")
        if self._left is not None:
            M = self._left(M)
        if self._right is not None:
            N = self._right(N)
        if self._epilogue is not None:
            if out is not None and not writable(out):
                return None
            return self._epilogue(self._fresh(M, N), keywords.get("bias"), out)
        if out is not None and (self._scaling is not None or not ready.takes(out, M, N)):
            return None
        if self._arg:
            return self._fresh(M, N) if out is None else ready.multiply_with_arg(M, N, out)
        P = self._fresh(M, N) if out is None else ready.multiply(M, N, out)
        return P if self._scaling is None else self._scaling(P, *keywords["scales"])


class OnCard:
    """A product of arrays on a card: addresses are read, workspace is allocated, one native call launches."""

    __slots__ = ("_holds", "_launcher", "_library", "empty", "tick")

    def __init__(self, launcher: Any, library: CardLibrary, empty: Callable[[], Any], arrays: tuple[Any, ...]) -> None:
        """`arrays`: M, N and P of the call that was prepared."""
        self._launcher, self._library, self.empty = launcher, library, empty
        self._holds: tuple[Any, ...] = tuple(library.holds(x) for x in arrays)

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        """P, or None where `out` shares memory with M or N, or an array reaches beyond its storage."""
        m_held, n_held, p_held = self._holds
        out = keywords.get("out")
        if m_held is not None and not (m_held(M) and n_held(N) and (out is None or p_held(out))):
            return None
        P = self.empty() if out is None else out
        return P if self._launched(M, N, P, keywords.get("bias")) else None

    def _launched(self, M: Any, N: Any, P: Any, bias: Any) -> bool:
        library, launcher = self._library, self._launcher
        stream, m, n, p = library.stream(), *map(library.address, (M, N, P))
        if not (m and n and p) or (bias is not None and not _held(library, bias)):
            return False
        held = library.take(launcher.scratch_bytes, stream) if launcher.scratch_bytes else None
        scratch = 0 if held is None else library.pointer(held)
        try:
            if bias is not None or not launcher.header:
                given = {} if bias is None else {"bias": library.address(bias)}
                return bool(launcher(stream, M=m, N=n, P=p, scratch=scratch, **given))
            code = launcher.launch(launcher.header, m, n, p, scratch, stream)
            return not code or bool(launcher.settled(code, stream, M=m, N=n, P=p, scratch=scratch))
        finally:
            if held is not None:
                library.give_back(held)


class OnTensors:
    """A recipe without further arguments on torch tensors, with no array but `out` given: native code reads their
    addresses and the stream, fills in the addresses and launches."""

    __slots__ = ("_empty", "_fallback", "_header", "_launch", "_library", "_scratch", "tick")

    def __init__(self, fallback: OnCard, launcher: Any, launch: Any, library: CardLibrary) -> None:
        """`fallback`: the same call from Python, where native code returns an error."""
        self._fallback, self._header, self._scratch = fallback, launcher.header, launcher.scratch_bytes
        self._launch, self._library, self._empty = launch, library, fallback.empty

    def __call__(self, M: Any, N: Any, keywords: Any) -> Any:
        P = keywords.get("out") if keywords else None
        if P is None:
            P = self._empty()
        if not self._scratch:
            code = self._launch(self._header, M, N, P, 0)
        else:
            held = self._library.take(self._scratch, self._library.stream())
            try:
                code = self._launch(self._header, M, N, P, held)
            finally:
                self._library.give_back(held)
        return self._fallback(M, N, {"out": P}) if code else P


def _held(library: CardLibrary, array: Any) -> bool:
    """Whether an array's memory covers its shape and strides, if its library knows."""
    holds = library.holds(array)
    return bool(library.address(array)) and (holds is None or holds(array))


def _native_on_card(key: Any, call: OnCard, launcher: Any, library: CardLibrary) -> Any:
    """The same call by native code that reads tensors itself, if their signature was native too."""
    from tilewise.arrays.torch_exchange import tensor_launcher
    from tilewise.backends.cuda.native import addresses

    launch = tensor_launcher(addresses()[1]) if key.__class__ is bytes and launcher.header else None
    return call if launch is None else OnTensors(call, launcher, launch, library)


SIGNATURES: dict[type, Signature] = {}


def signature_for(array: Any) -> Signature | None:
    """The signature function of this array class; frameworks that are not imported are ignored."""
    kind = array.__class__
    if kind in CLASSES:
        SIGNATURES[kind] = quickest_signature() if kind is np.ndarray else numpy_signature
    torch, cupy = imported("torch"), imported("cupy")
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        from tilewise.arrays.torch_exchange import CPU, CUDA
        from tilewise.arrays.torch_library import is_watched
        from tilewise.arrays.torch_quick_signature import quickest_signature as quickest_of_torch
        from tilewise.arrays.torch_signature import signature as of_torch

        if is_watched():  # native code is tested on new tensors first, which have no memory under a mode
            return of_torch
        quick = quickest_of_torch(of_torch, CPU)
        quick = quickest_of_torch(quick, CUDA) if torch.cuda.is_available() else quick
        SIGNATURES[torch.Tensor] = SIGNATURES[torch.nn.Parameter] = quick
    elif cupy is not None and kind is cupy.ndarray:
        from tilewise.arrays.cupy_signature import signature as of_cupy

        SIGNATURES[kind] = of_cupy
    elif kind.__module__.startswith("jaxlib") and kind.__name__ == "ArrayImpl":
        from tilewise.arrays.jax_signature import signature as of_jax

        SIGNATURES[kind] = of_jax
    return SIGNATURES.get(kind)


def keep(key: Key, executable: Any, library: str, problem: Problem, product: Any, M: Any, N: Any) -> None:
    """Cache the executable of a call that computed `product` from M and N."""
    made = KEEPERS[library](key, executable, product, M, N) if library in KEEPERS else None
    if made is not None:
        on_card = library == "cupy" or (library == "torch" and not M.is_cpu)
        mirrors = library != "jax" and problem.may_mirror(on_card)
        PREPARED.keep(key, made, problem.symmetric if mirrors else None)


def _of_numpy(key: Key, executable: Any, product: Any, M: Any, N: Any) -> Any:
    if isinstance(executable, MoreThanAProduct):
        return executable.as_a_call(M, N)
    direct = product.dtype == executable.result and written_directly(key)
    return OnHost(executable, (M.dtype, N.dtype, product.dtype), direct)


def _of_torch(key: Key, executable: Any, product: Any, M: Any, N: Any) -> Any:
    from tilewise.arrays.torch_on_host import prepared_on_host
    from tilewise.arrays.torch_signature import TorchCard

    more = isinstance(executable, MoreThanAProduct)
    if M.is_cpu:
        return prepared_on_host(executable, more, product, M, N)
    if more or not M.is_cuda:
        return None
    card = TorchCard(M.get_device())
    call = OnCard(executable, card, card.empty_like(product), (M, N, product))
    return _native_on_card(key, call, executable, card)


def _of_cupy(key: Key, executable: Any, product: Any, M: Any, N: Any) -> Any:
    from tilewise.arrays.cupy_signature import CupyCard

    if isinstance(executable, MoreThanAProduct):
        return None
    card = CupyCard(M.device.id)
    return OnCard(executable, card, card.empty_like(product), (M, N, product))


def _of_jax(key: Key, executable: Any, product: Any, M: Any, N: Any) -> Any:
    from tilewise.arrays.jax_signature import OnJaxsHost

    on_host = isinstance(product, np.ndarray) and not isinstance(executable, MoreThanAProduct)
    return OnJaxsHost(executable) if on_host else None


KEEPERS = {"numpy": _of_numpy, "torch": _of_torch, "cupy": _of_cupy, "jax": _of_jax}
