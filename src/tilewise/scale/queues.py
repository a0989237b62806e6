"""The operations of a card that streaming uses: memory, streams with events, copies and products queued on streams.

`tests/scale/threads_as_card.py` has the same interface with threads, which tests the order of operations.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tilewise.algebra.dtypes import DType
from tilewise.arrays.card import allocate, driver, open_card
from tilewise.backends.cuda.device import describe
from tilewise.backends.cuda.launcher import launch_now
from tilewise.core.problem import Problem
from tilewise.errors import EngineError, OutOfMemoryError
from tilewise.kernels.shared.text import render_round
from tilewise.planning.choose import make_plan
from tilewise.planning.launchers import run_plan
from tilewise.system.memory import PAGE, fault_in

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
ROUND_BLOCKS = 2048
PORTABLE = 1  # CU_MEMHOSTREGISTER_PORTABLE and CU_MEMHOSTALLOC_PORTABLE
HUGE_PAGE = 2**21


class Queues:
    """The streams, memory and pinned pages of one product on one card, freed by `close`."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.machine = describe(device)
        self._buffers: list[Any] = []
        self._slots: list[tuple[int, Bytes]] = []  # kept until they are unregistered
        self._own: list[int] = []
        self._pages: list[int] = []
        self._streams: list[Any] = []
        self._first = self.stream()

    def enter(self) -> None:
        """Make the card current for the calling thread."""
        open_card(self.device)

    def memory(self, nbytes: int) -> int:
        """The address of fresh memory on the card, freed by `close`."""
        buffer = allocate(max(1, nbytes), self.device, self._first)
        self._buffers.append(buffer)
        self._first.sync()  # so that any stream may use it
        return int(buffer.handle)

    def pinned(self, nbytes: int) -> Bytes:
        """Pinned host memory, freed by `close`. Pages are populated before they are pinned: that takes longer, and does
        not block the driver. Where the system refuses to register pages, cuMemHostAlloc does both at once."""
        pages = -(-nbytes // PAGE) * PAGE
        whole: Bytes = np.empty(pages + HUGE_PAGE, np.uint8)
        address = -(-whole.ctypes.data // HUGE_PAGE) * HUGE_PAGE
        fault_in(address, address + pages)
        if _register(address, pages):
            self._slots.append((address, whole))
            start = address - whole.ctypes.data
            return whole[start : start + nbytes]
        code, own = driver().cuMemHostAlloc(nbytes, PORTABLE)
        if int(code):
            raise OutOfMemoryError(f"{nbytes:,} bytes of the host's memory could not be pinned for the card: {code}")
        self._own.append(int(own))
        memory: Any = (ctypes.c_uint8 * nbytes).from_address(int(own))
        return np.frombuffer(memory, np.uint8)

    def pin(self, address: int, nbytes: int) -> bool:
        """Pin whole pages of the host until `unpin` or `close`; False if the driver refuses."""
        made = _register(address, nbytes)
        if made:
            self._pages.append(address)
        return made

    def unpin(self) -> None:
        """Unpin the pages of `pin`; no copy may still read them."""
        while self._pages:
            driver().cuMemHostUnregister(self._pages[-1])
            self._pages.pop()

    def stream(self, urgent: bool = False) -> Any:
        """A stream; an urgent one has the higher priority."""
        from cuda.core import StreamOptions

        made = open_card(self.device).create_stream(
            options=StreamOptions(nonblocking=True, priority=-1 if urgent else 0)
        )
        self._streams.append(made)
        return made

    def record(self, stream: Any) -> Any:
        """An event after everything queued so far."""
        from cuda.core import EventOptions

        return stream.record(options=EventOptions(blocking_sync=True))  # waiting does not spin

    def wait(self, stream: Any, event: Any) -> None:
        stream.wait(event)

    def sync(self, event: Any) -> None:
        _check(driver().cuEventSynchronize(event.handle)[0], "waiting for the card")  # lets other threads run

    def copy_in(self, host: Bytes, address: int, stream: Any) -> None:
        _check(
            driver().cuMemcpyHtoDAsync(address, host.ctypes.data, host.nbytes, stream.handle)[0], "a copy to the card"
        )

    def copy_pitched_in(
        self, host: int, pitch: int, width: int, count: int, address: int, pitch_to: int, stream: Any
    ) -> None:
        """A 2-D copy from pinned memory: rows `pitch` bytes apart there and `pitch_to` on the card."""
        job = driver().CUDA_MEMCPY2D()
        job.srcMemoryType = driver().CUmemorytype.CU_MEMORYTYPE_HOST
        job.srcHost, job.srcPitch = host, pitch
        job.dstMemoryType = driver().CUmemorytype.CU_MEMORYTYPE_DEVICE
        job.dstDevice, job.dstPitch = driver().CUdeviceptr(address), pitch_to
        job.WidthInBytes, job.Height = width, count
        _check(driver().cuMemcpy2DAsync(job, stream.handle)[0], "a copy to the card")

    def copy_out(self, address: int, pitch: int, width: int, rows: int, host: Bytes, stream: Any) -> None:
        """A 2-D copy from the card: rows `pitch` bytes apart there and contiguous here."""
        job = driver().CUDA_MEMCPY2D()
        job.srcMemoryType = driver().CUmemorytype.CU_MEMORYTYPE_DEVICE
        job.srcDevice, job.srcPitch = driver().CUdeviceptr(address), pitch
        job.dstMemoryType = driver().CUmemorytype.CU_MEMORYTYPE_HOST
        job.dstHost, job.dstPitch = host.ctypes.data, width
        job.WidthInBytes, job.Height = width, rows
        _check(driver().cuMemcpy2DAsync(job, stream.handle)[0], "a copy from the card")

    def multiply(self, problem: Problem, M: int, N: int, P: int, stream: Any) -> None:
        run_plan(make_plan(problem, self.machine), self.device, stream, M=M, N=N, P=P)

    def round(self, sums: int, lead: int, rows: int, cols: int, kinds: tuple[DType, DType], stream: Any) -> None:
        """Round rows of sums to the product's dtype, in place."""
        arguments = (ctypes.c_void_p(sums), ctypes.c_int(rows), ctypes.c_int(cols), ctypes.c_longlong(lead))
        blocks = (min(rows, ROUND_BLOCKS),)
        launch_now(render_round.key(*kinds), "round_rows", blocks, (512,), arguments, self.device, stream)

    def close(self) -> None:
        """Wait for everything and free it."""
        self.enter()
        for stream in self._streams:
            stream.sync()
        for buffer in self._buffers:
            buffer.close(self._first)
        self._first.sync()
        self.unpin()
        for address, _ in self._slots:
            driver().cuMemHostUnregister(address)
        for address in self._own:
            driver().cuMemFreeHost(address)
        for stream in self._streams:
            stream.close()
        self._buffers, self._slots, self._own, self._streams = [], [], [], []


def _register(address: int, nbytes: int) -> bool:
    return not int(driver().cuMemHostRegister(address, nbytes, PORTABLE)[0])


def _check(code: Any, what: str) -> None:
    if int(code):
        raise EngineError(f"{what} failed: {code}")
