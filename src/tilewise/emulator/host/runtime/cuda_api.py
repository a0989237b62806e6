"""Errors and properties of the CUDA runtime, and checks at the end of the program."""

from __future__ import annotations

import struct
from importlib import import_module
from pathlib import Path

from tilewise.emulator.host.runtime import cuda_card as codes
from tilewise.emulator.host.runtime import cuda_memory
from tilewise.emulator.host.runtime.c_memory import writable
from tilewise.emulator.host.runtime.cuda_card import Card
from tilewise.emulator.host.runtime.memory import HOST_AND_CARD, describe
from tilewise.emulator.host.runtime.releases import DEALLOCATORS
from tilewise.emulator.host.runtime.session import Session, runtime
from tilewise.emulator.machine.findings import Kind


@runtime("__cuda_last")
def last_error(s: Session, clear: int) -> int:
    card = s.cuda
    code = card.sticky or card.last
    card.unchecked_launches.clear()
    if clear:
        card.last = 0
    return int(code)


@runtime("__cuda_error_text")
def error_text(s: Session, code: int, name: int) -> int:
    texts = codes.NAMES.get(code, ("unrecognized error code", "unrecognized error code"))
    return int(s.program.literal(texts[0 if name else 1].encode()))


@runtime("__cuda_sync")
def synchronise(s: Session, what: int) -> int:
    if s.cuda.running.geometry is not None:  # called by a kernel
        if s.state.get("children"):
            s.finish(
                2, "refused", f"line {s.line}: a kernel waits for kernels that it launched: CUDA 12 has no such call"
            )
        return 0
    cuda_memory.synchronised(s)
    card = s.cuda
    card.order.host_waits()
    if card.sticky:
        card.unchecked_launches.clear()
    return int(card.sticky)


@runtime("__cuda_set_device")
def set_device(s: Session, number: int) -> int:
    return 0 if number == 0 else int(s.cuda.fail(codes.BAD_DEVICE))


@runtime("__cuda_properties")
def properties(s: Session, pointer: int, device: int) -> int:
    from tilewise.emulator.parse import tree
    from tilewise.emulator.parse.types import Record
    from tilewise.emulator.sema.symbol_table import Environment

    if device != 0:
        return int(s.cuda.fail(codes.BAD_DEVICE))
    record = s.program.resolve(tree.TypeName("cudaDeviceProp"), Environment())
    assert isinstance(record, Record)
    s.program.layout(record)
    if not writable(s, pointer, record.size):
        return int(s.cuda.fail(codes.INVALID_VALUE))
    s.memory.put(pointer, bytes(record.size))
    for name, value in s.cuda.properties().items():
        found = record.field(name)
        assert found is not None
        f, offset = found
        if isinstance(value, bytes):
            data = value + b"\0"
        elif isinstance(value, tuple):
            data = b"".join(v.to_bytes(4, "little") for v in value)
        else:
            data = int(value).to_bytes(f.type.size, "little")
        s.memory.put(pointer + offset, data)
    return 0


@runtime("__cuda_attribute")
def attribute(s: Session, pointer: int, number: int, device: int) -> int:
    if device != 0:
        return int(s.cuda.fail(codes.BAD_DEVICE))
    if writable(s, pointer, 4):
        s.memory.put(pointer, s.cuda.attribute(number).to_bytes(4, "little", signed=True))
    return 0


@runtime("__cuda_memory")
def memory_info(s: Session, free: int, total: int) -> int:
    used = sum(b.size for b in s.memory.device_blocks if not b.freed)
    for pointer, value in ((free, s.cuda.memory - used), (total, s.cuda.memory)):
        if writable(s, pointer, 8):
            s.memory.put(pointer, value.to_bytes(8, "little"))
    return 0


@runtime("__cuda_function")
def function_attribute(s: Session, function: int, number: int, value: int) -> int:
    if number == 8:
        if value > s.cuda.properties()["sharedMemPerBlockOptin"]:
            return int(s.cuda.fail(codes.INVALID_VALUE))
        s.cuda.shared_limit = max(48 << 10, value)
    return 0


@runtime("__cuda_occupancy")
def occupancy(s: Session, pointer: int, threads: int, shared: int) -> int:
    blocks = s.cuda.resident_blocks(abs(threads), shared)
    if threads < 0:
        blocks = blocks * s.cuda.machine.units
    if writable(s, pointer, 4):
        s.memory.put(pointer, int(blocks).to_bytes(4, "little"))
    return 0


@runtime("__cuda_static_shared")
def static_shared(s: Session, handle: int) -> int:
    """Bytes of static __shared__ memory of the kernel behind a pointer. Programs without kernels do not import
    cuda_launch."""
    known = s.program.kernel_handles.get(handle)
    return 0 if known is None else int(import_module(f"{__package__}.cuda_launch").static_shared(s, known))


@runtime("__cuda_pointer")
def pointer_attributes(s: Session, to: int, pointer: int) -> int:
    block = s.memory.find(pointer)
    kind = (
        0 if block is None or not block.device else 3 if block.kind == "cudaMallocManaged" else 1 if block.host else 2
    )
    if writable(s, to, 24):
        s.memory.put(to, struct.pack("<iiQQ", kind, 0, pointer if kind else 0, pointer if kind != 2 else 0))
    return 0


@runtime("__cuda_device")
def device(s: Session) -> int:
    return 0


# -- at the end of the program


def at_end(s: Session) -> None:
    """Report memory that was never freed, and results that were never copied back."""
    blocks = [*s.memory.blocks, *s.memory.device_blocks]
    for block in blocks:
        if s.failed or block.freed or block.kind not in DEALLOCATORS:
            continue
        message, hint = f"{describe(block)} is never freed", f"{DEALLOCATORS[block.kind]} it when it is done with"
        s.faults.add_of(block, Kind.LEAK, block.line, message, hint, "leak")
    stored = [b for b in s.memory.device_blocks if b.kind != "__device__" and b.stored]
    if (
        stored
        and not s.cuda.sticky
        and not any(b.copied or b.failed for b in blocks if b.stored or b.kind in HOST_AND_CARD)
    ):
        for block in stored:
            message = f"what the kernel stores in {block.name or 'its output'} is never copied back to the host"
            hint = f"cudaMemcpy(…, {block.name or 'd_out'}, bytes, cudaMemcpyDeviceToHost) after the launch"
            s.faults.add_of(block, Kind.NOT_COPIED_BACK, block.stored, message, hint, "copy")


def new_card(session: Session, path: str | Path) -> Card:
    session.at_end.append(at_end)
    return Card(session, path)
