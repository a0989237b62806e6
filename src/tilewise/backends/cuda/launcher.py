"""A recipe prepared for a card: kernels loaded, launch arguments laid out in images; a call fills in the addresses.

Nothing here plans or renders, and no lock is held while a recipe is launched.
"""

from __future__ import annotations

import ctypes
import math
import struct
from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tilewise.arrays.card import driver, make_current, simulated_arch
from tilewise.backends.cuda.loading import LoadedFunction, kernel_function
from tilewise.backends.cuda.native import (
    DRIVER,
    HEADER,
    HOLE_FIELDS,
    LAUNCH,
    OVERLAPS,
    SELF,
    STEP_FIELDS,
    STREAM,
    ZERO,
    driver_functions,
    encoder,
    launchers,
)
from tilewise.core.machine import arch_number, resident_threads, shared_limit
from tilewise.core.recipe import BASES, Launch, Recipe, Step, TensorMap, Zero
from tilewise.errors import EngineError

IMAGE_BYTES = 16 * 1024  # of an image, which a call copies to its stack: long recipes have several
INVALID_CONTEXT = 201  # the driver's, in a thread that has not used the card yet
PLACEHOLDER = 1 << 32  # the address in a tensor map until a call replaces it
# cuda.h's own numbers: CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion
KINDS = {"uint8": 0, "uint16": 1, "uint32": 2, "tfloat32": 11}
SWIZZLE_128, L2_PROMOTION_128 = 3, 2
CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
PROGRAMMATIC = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
NUMBERS = {base: number for number, base in enumerate(BASES)}
SPACE = bytes(64)
NO_HEADER = bytes(8 * len(HEADER))
CONFIGURATION = struct.Struct("<7I4xQQI12x")  # CUlaunchConfig: grid, block, shared bytes, stream, attributes
OVERLAP = struct.pack("<I4xi60x", PROGRAMMATIC, 1)
Span = tuple[int, int]  # first and last byte of a matrix, relative to its address
NOWHERE = (0, 0)


class _Image:
    """Steps of a recipe, laid out: the blob that a call copies, and tables of the holes that it fills."""

    def __init__(self, steps: Sequence[tuple[Step, LoadedFunction | None]], spans: dict[str, Span]) -> None:
        self.steps = [step for step, _ in steps]
        self._pieces, self._end = list[bytes](), 0  # of the blob; every piece starts on 16 bytes
        self._holes, self._maps, self._table = list[int](), list[int](), list[int]()  # the fields of their entries
        for step, function in steps:
            if isinstance(step, Zero):
                self._holes += (self._end, NUMBERS[step.address.base], step.address.offset)
                self._table += (ZERO, 0, self._end, 0)
                self._pieces.append(SPACE[:16])
                self._end += 16
            else:
                assert function is not None
                self._place(step, function.handle)
        self._seal(spans)

    def _place(self, launch: Launch, handle: int) -> None:
        """The driver's CUlaunchConfig with its attributes, the table of pointers to the parameters, the parameters."""
        attributes, arguments, pieces, holes = attributes_of(launch), launch.arguments, self._pieces, self._holes
        grid, block, at = (*launch.grid, 1, 1)[:3], (*launch.block, 1, 1)[:3], self._end
        pieces.append(CONFIGURATION.pack(*grid, *block, launch.shared_bytes, 0, 0, len(attributes)))
        holes += (at + 32, STREAM, 0)
        pointer = at + CONFIGURATION.size
        if attributes:
            holes += (at + 40, SELF, pointer)
            pieces.append(b"".join(attributes))
            pointer += len(pieces[-1])
        self._table += (LAUNCH, handle, at, pointer)
        end = pointer + 8 * len(arguments)
        pieces.append(bytes(8 * len(arguments)))
        for data, filled, maps in arguments:
            at = (end + 63) & -64 if maps else (end + 15) & -16
            if at > end:
                pieces.append(SPACE[: at - end])
            holes += (pointer, SELF, at)
            pointer += 8
            for offset, (base, behind, _) in filled:
                holes += (at + offset, NUMBERS[base], behind)
            for offset, described in maps:
                data = data[:offset] + encoded(described) + data[offset + 128 :]
                self._maps += (at + offset, NUMBERS[described.address.base], described.address.offset)
            pieces.append(data)
            end = at + len(data)
        self._end = (end + 15) & -16
        pieces.append(SPACE[: self._end - end])

    def _seal(self, spans: dict[str, Span]) -> None:
        """Header, tables and blob in one piece of memory."""
        fields = self._memory = array("q", NO_HEADER)  # not resized after its address is taken
        counts = list[int]()
        for table, each in ((self._holes, HOLE_FIELDS), (self._maps, HOLE_FIELDS), (self._table, STEP_FIELDS)):
            counts += (len(table) // each, 8 * len(fields))
            fields.extend(table)
        blob = 8 * len(fields)
        fields.frombytes(b"".join(self._pieces))
        self.address = at = fields.buffer_info()[0]
        functions = driver_functions()
        header = (  # in the order of HEADER
            self._end, at + blob, counts[0], at + counts[1], counts[2], at + counts[3], counts[4], at + counts[5],
            *[functions[name] for name in DRIVER],
            *spans.get("M", NOWHERE), *spans.get("N", NOWHERE), *spans.get("P", NOWHERE),
        )  # fmt: skip
        fields[: len(header)] = array("q", header)


def attributes_of(launch: Launch) -> list[bytes]:
    """CUlaunchAttributes of a launch: overlap and cluster."""
    made = []
    if launch.overlap:
        made.append(OVERLAP)
    if launch.cluster > 1:
        made.append(struct.pack("<I4x3I52x", CLUSTER, launch.cluster, 1, 1))
    return made


def as_simulated(step: Step) -> Step:
    """A launch with more shared memory, so that as few blocks are resident as on the simulated card."""
    if not isinstance(step, Launch):
        return step
    arch, threads = simulated_arch(), math.prod(step.block)
    reserved = 1024 if arch_number(arch) >= 80 else 0  # bytes of a block for the driver
    blocks = min(
        resident_threads(arch) // threads, (shared_limit(arch) + reserved) // max(1, step.shared_bytes + reserved)
    )
    least = (_shared_of_unit() // (max(1, blocks) + 1) - 1024 + 128) & -128
    return step._replace(shared_bytes=max(step.shared_bytes, least))


@lru_cache(maxsize=1)
def _shared_of_unit() -> int:
    """Of a multiprocessor of the real card."""
    attribute = driver().CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    return int(driver().cuDeviceGetAttribute(attribute, 0)[1])


class Launcher:
    """A recipe on a card. A call queues its steps on a stream, with the given addresses."""

    def __init__(self, recipe: Recipe, device: str, spans: dict[str, Span] | None = None) -> None:
        """`spans`: the bytes that M, N and P occupy, if a P that overlaps M or N is to be refused."""
        make_current(device)
        self.device, self.scratch_bytes = device, recipe.scratch_bytes
        steps = [as_simulated(step) for step in recipe.steps] if simulated_arch() else recipe.steps
        self._held = [  # keeps the functions loaded: images have only their addresses
            kernel_function(step.source, step.name, device, step.shared_bytes) if isinstance(step, Launch) else None
            for step in steps
        ]
        self._images = _images(list(zip(steps, self._held, strict=True)), spans or {})
        self._launch_all_bases, self.launch = launchers()  # `launch` takes header, M, N, P, scratch, stream
        self.header = self._images[0].address if len(self._images) == 1 else 0  # of a recipe that fits one image

    def __call__(self, stream: int, **addresses: int) -> bool:
        """Whether the steps were queued; False where P overlaps M or N. `addresses`: by base."""
        bases = (ctypes.c_uint64 * SELF)(*[addresses.get(name, 0) for name in BASES], stream)
        at = ctypes.addressof(bases)
        for image in self._images:
            code = self._launch_all_bases(image.address, at)
            if code == OVERLAPS:
                return False
            if code:
                self.failed(code, image.address, at)
        return True

    def settled(self, code: int, stream: int, **addresses: int) -> bool:
        """After a nonzero result of `launch`: False where P overlaps M or N; else the launch is repeated, or raises."""
        return code != OVERLAPS and self(stream, **addresses)

    def failed(self, code: int, header: int, bases: int) -> None:
        """Repeat the launch with the card's context current, which a new thread lacks; raise if it fails again."""
        if code & 0xFFFFFFFF == INVALID_CONTEXT:
            make_current(self.device)
            code = self._launch_all_bases(header, bases)
        if code:
            image = next(image for image in self._images if image.address == header)
            step, error = image.steps[code >> 32], code & 0xFFFFFFFF
            raise EngineError(f"{step} on {self.device} failed: {driver().CUresult(error).name}")


def _images(steps: list[tuple[Step, LoadedFunction | None]], spans: dict[str, Span]) -> list[_Image]:
    """Images of at most IMAGE_BYTES; only the first one checks `spans`."""
    if len(steps) == 1:
        return [_Image(steps, spans)]
    pieces: list[list[tuple[Step, LoadedFunction | None]]] = [[]]
    size = 0
    for step, function in steps:
        need = 512 + sum([len(a.data) + 72 for a in step.arguments]) if isinstance(step, Launch) else 64
        if pieces[-1] and size + need > IMAGE_BYTES:
            pieces.append([])
            size = 0
        pieces[-1].append((step, function))
        size += need
    return [_Image(piece, spans if not number else {}) for number, piece in enumerate(pieces)]


def launch_now(
    source: str,
    name: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    arguments: Sequence[Any],
    device: str,
    stream: Any,
) -> None:
    """Launch one kernel with given addresses; nothing is cached."""
    Launcher(Recipe((Launch.of(source, name, grid, block, arguments),)), device)(int(stream.handle))


ONES = 1 << 32 | 1  # two 32-bit numbers
ROOM = [0] * 24  # 64-bit fields: 128 bytes, aligned to 64


def encoded(made: TensorMap) -> bytes:
    """The 128 bytes of a tensor map, with PLACEHOLDER as its address."""
    stack, rank, pairs = made.stack, 2 + len(made.stack), (3 + len(made.stack)) // 2
    fields = array("Q", [made.length, made.lines])
    if stack:
        fields.extend([count for count, _ in stack])
    fields.append(made.lead)
    if stack:
        fields.extend([apart for _, apart in stack])
    fields.append(made.box_lines << 32 | made.box)  # by 32 bits from here on
    fields.extend([ONES] * (2 * pairs - 1) + ROOM)
    at = fields.buffer_info()[0]
    boxes = at + 8 * (2 * rank - 1)
    place = (boxes + 16 * pairs + 63) & -64
    code = encoder()(
        place,
        KINDS[made.kind],
        rank,
        PLACEHOLDER,
        at,
        at + 8 * rank,
        boxes,
        boxes + 8 * pairs,
        0,  # no interleaving
        SWIZZLE_128 if made.swizzled else 0,
        L2_PROMOTION_128,  # with 256 bytes, rows that straddle cache lines take a tenth longer
        0,  # outside is 0
    )
    if code:
        raise EngineError(
            f"the TMA refused a matrix of {made.lines} lines of {made.length}, {made.lead} bytes apart, "
            f"in stacks of {made.stack}: {driver().CUresult(code).name}"
        )
    return fields.tobytes()[place - at : place - at + 128]
