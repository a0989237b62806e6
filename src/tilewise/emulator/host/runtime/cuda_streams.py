"""Events and streams. All work runs in the order of its calls; `StreamOrder` finds what the card may do in another."""

from __future__ import annotations

import re
import struct

from tilewise.emulator.host.runtime import cuda_card as codes
from tilewise.emulator.host.runtime.c_memory import writable
from tilewise.emulator.host.runtime.cuda_card import refuse
from tilewise.emulator.host.runtime.cuda_memory import cuda_copy, cuda_set, side, synchronised
from tilewise.emulator.host.runtime.graphs import capturing
from tilewise.emulator.host.runtime.memory import INIT, PINNED, Allocation, describe
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.host.runtime.stream_order import Access, Clock
from tilewise.emulator.machine.findings import Kind

DEFAULT_STREAMS = (0, 1, 2)  # the default one, cudaStreamLegacy and cudaStreamPerThread


def _handle(s: Session, pointer: int) -> int:
    address = s.memory.static(8, "", False)
    if writable(s, pointer, 8):
        s.memory.put(pointer, address.to_bytes(8, "little"))
    return address


@runtime("__cuda_event")
def event_create(s: Session, pointer: int) -> int:
    s.cuda.events[_handle(s, pointer)] = None
    return 0


def _written(s: Session, call: str, place: int) -> str:
    """The source text of an argument, if the call is on the current line."""
    found = re.search(rf"\b{call}\s*\(([^;]*)\)", s.source.line(s.line))
    parts = found[1].split(",") if found else []
    name = re.match(r"\s*(\w+)\W*$", parts[place]) if place < len(parts) else None
    return name[1] if name else ""


@runtime("__cuda_event_record")
def event_record(s: Session, event: int, stream: int) -> int:
    if event not in s.cuda.events:
        name = _written(s, "cudaEventRecord", 0)
        message = f"{name or 'this event'} was never created"
        hint = f"cudaEventCreate(&{name or 'event'}) first"
        return refuse(s, codes.BAD_HANDLE, message, hint, Kind.ARGUMENT, array=name, access="event")
    failed: int = stream_used(s, stream)
    if failed:
        return failed
    if not capturing(s):
        s.cuda.order.record(event, _clock_of(stream))
    s.cuda.nanoseconds += 1000
    s.cuda.events[event] = s.cuda.nanoseconds
    if s.cuda.outstanding:
        s.cuda.unfinished[event] = s.line
    return 0


@runtime("__cuda_event_free")
def event_free(s: Session, event: int) -> int:
    if s.cuda.events.pop(event, 0) == 0 and event not in s.cuda.events:
        return int(s.cuda.fail(codes.BAD_HANDLE)) if event == 0 else 0
    return 0


@runtime("__cuda_elapsed")
def event_elapsed(s: Session, pointer: int, first: int, second: int) -> int:
    one, two = s.cuda.events.get(first), s.cuda.events.get(second)
    if one is None or two is None:
        name = _written(s, "cudaEventElapsedTime", 1 if one is None else 2)
        message = f"{name or 'an event'} was never recorded, so there is no time between the two"
        hint = f"cudaEventRecord({name}) first" if name else "cudaEventRecord both events first"
        s.memory.change(pointer, 4, give=INIT)  # do not report reads of it, too
        return refuse(s, codes.BAD_HANDLE, message, hint, Kind.ARGUMENT, array=name, access="event")
    late = next((place for place, event in ((2, second), (1, first)) if event in s.cuda.unfinished), 0)
    if late:
        name = _written(s, "cudaEventElapsedTime", late)
        line = s.cuda.unfinished[(first, second)[late - 1]]
        message = f"{name or 'the event'}, recorded at line {line}, waits for a kernel that may still run"
        hint = f"cudaEventSynchronize({name or 'event'}) first: cudaEventElapsedTime gives cudaErrorNotReady"
        s.faults.add(Kind.NOT_SYNCHRONISED, s.line, message, hint, array=name, access="event", other_line=line)
    if writable(s, pointer, 4):
        s.memory.put(pointer, struct.pack("<f", (two - one) / 1e6))
    return 0


def _host_waits(s: Session, clock: Clock) -> int:
    synchronised(s)
    s.cuda.order.host_waits(clock)
    if s.cuda.sticky:
        s.cuda.unchecked_launches.clear()
    return int(s.cuda.sticky)


@runtime("__cuda_event_wait")
def event_wait(s: Session, event: int) -> int:
    return _host_waits(s, s.cuda.order.events.get(event, {}))


@runtime("__cuda_stream")
def stream_create(s: Session, pointer: int, flags: int) -> int:
    handle = _handle(s, pointer)
    s.cuda.streams[handle] = 0
    if flags & 1:
        s.cuda.order.separate.add(handle)
    return 0


@runtime("__cuda_stream_wait")
def stream_wait(s: Session, stream: int, event: int) -> int:
    """Work in the stream waits for an event; `event` 0: the host waits for the stream."""
    failed: int = stream_used(s, stream)
    if failed or capturing(s):
        return failed
    if event:
        s.cuda.order.wait(_clock_of(stream), event)
        return 0
    return _host_waits(s, s.cuda.order.streams.get(_clock_of(stream), {}))


@runtime("__cuda_stream_free")
def stream_free(s: Session, stream: int) -> int:
    failed: int = stream_used(s, stream)
    if stream in s.cuda.streams:
        s.cuda.streams[stream] = s.line
    return failed


@runtime("__cuda_stream_used")
def stream_used(s: Session, stream: int, line: int = 0) -> int:
    """The error code for work in a stream: it fails if the stream was destroyed or never created."""
    if stream in DEFAULT_STREAMS or s.cuda.streams.get(stream) == 0:
        return 0
    destroyed = s.cuda.streams.get(stream)
    message = f"this stream was destroyed at line {destroyed}" if destroyed else "this stream was never created"
    hint = "destroy it after its last use" if destroyed else "cudaStreamCreate(&stream) first"
    return refuse(
        s, codes.BAD_HANDLE, message, hint, Kind.ARGUMENT, line=line, access="stream", other_line=destroyed or 0
    )


# -- work in streams


def _clock_of(stream: int) -> int:
    return 0 if stream == 1 else stream


def ordered(s: Session, stream: int, accesses: list[tuple[Allocation, Access]]) -> None:
    """Report work in a stream that accesses what work in another one does, with nothing that orders the two."""
    if capturing(s) or not s.cuda.streams:
        return
    s.cuda.order.start(_clock_of(stream))
    for block, access in accesses:
        found = s.cuda.order.add(block.address, access)
        if found is None:
            continue
        what = describe(block)
        message = f"another stream reads {what}, to which this stores, at line {found.line}: nothing orders the two"
        if found.stores:
            message = f"another stream stores to {what} at line {found.line}: nothing orders the two"
        hint = "use one stream for both, or cudaEventRecord in the first and cudaStreamWaitEvent in the second"
        s.faults.add(
            Kind.RACE, access.line, message, hint, array=block.name, access="stream", other_line=found.line
        )  # fmt: skip


def launched(s: Session, stream: int, line: int, read: list[Allocation], stored: list[Allocation]) -> None:
    stream = _clock_of(stream)
    changed = {block.address for block in stored}
    uses = {block.address: block for block in (*read, *stored)}.values()
    ordered(s, stream, [
        (block, Access(block.address, block.end, block.address in changed, stream, line, True)) for block in uses
    ])  # fmt: skip


@runtime("__cuda_copy_async")
def copy_async(s: Session, to: int, source: int, size: int, kind: int, stream: int) -> int:
    failed: int = stream_used(s, stream) or cuda_copy(s, to, source, size, kind, 1)
    if failed or size <= 0:
        return failed
    clock, ends = _clock_of(stream), (s.memory.find(to), s.memory.find(source))
    ordered(s, stream, [
        (block, Access(at, at + size, at == to, clock, s.line))
        for block, at in zip(ends, (to, source), strict=True) if block is not None
    ])  # fmt: skip
    pageable = (side(s, at) == "host" and (block is None or block.kind not in PINNED)
                for block, at in zip(ends, (to, source), strict=True))  # fmt: skip
    if any(pageable) and s.cuda.streams:  # staged: the host waits
        s.cuda.order.host_waits(s.cuda.order.streams.get(clock, {}))
    return 0


@runtime("__cuda_set_async")
def set_async(s: Session, to: int, value: int, size: int, stream: int) -> int:
    failed: int = stream_used(s, stream) or cuda_set(s, to, value, size)
    block = s.memory.find(to)
    if not failed and block is not None:
        ordered(s, stream, [(block, Access(to, to + size, True, _clock_of(stream), s.line))])
    return failed
