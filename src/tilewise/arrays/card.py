"""Opening a card and allocating its memory. cuda.core is imported here, on use; an error says what is missing.

Products of torch's or CuPy's arrays use the driver alone (`make_current`, `card_attributes`): importing cuda.core takes
as long as everything else in a first product.
"""

from __future__ import annotations

import importlib
import os
import re
from threading import Lock
from typing import Any, NamedTuple

from tilewise.errors import DeviceError, OutOfMemoryError, ShapeError, UsageError

INSTALL = "pip install 'tilewise[cuda]'"
MAPPED_GRAIN = 2**21  # bytes: what cuMemMap maps comes in multiples of it


def card_number(device: str) -> int:
    """0 for "cuda", 1 for "cuda:1"."""
    kind, colon, number = device.partition(":")
    if kind != "cuda" or (colon and not number.isdigit()):
        raise UsageError(f"device={device!r} is not known; known are 'auto', 'cpu', 'simt', 'cuda', 'cuda:1', …")
    return int(number or 0)


_importing = Lock()


def cuda_core() -> Any:
    """The module, imported under a lock: it renames itself while it is imported, and another thread could see it half
    initialised."""
    with _importing:
        return importlib.import_module("cuda.core")


if hasattr(os, "register_at_fork"):  # in a child no thread holds the lock
    os.register_at_fork(after_in_child=_importing._at_fork_reinit)  # type: ignore[attr-defined]


def card_count() -> int:
    """How many cards can be used; 0 where cuda.core or the driver is missing, or all are hidden."""
    try:
        present = int(cuda_core().system.get_num_devices())
    except Exception:  # cuda.core raises various errors without a driver
        return 0
    return visible_cards(present, os.environ.get("CUDA_VISIBLE_DEVICES"))


def visible_cards(present: int, setting: str | None) -> int:
    """How many of the present cards CUDA_VISIBLE_DEVICES leaves: cuda.core counts all, and initialising the driver
    would break processes that are forked later. Parsed as the driver does: a list of numbers or names, up to the first
    that is neither; none if one occurs twice."""
    if setting is None:
        return present
    names: list[str] = []
    for name in setting.split(","):
        name = name.strip()
        numbered = name.isdecimal() and int(name) < present
        if not numbered and not name.startswith(("GPU-", "MIG-")):
            break
        names.append(name)
    return len(names) if len(set(names)) == len(names) else 0


def open_card(device: str) -> Any:
    """The cuda.core Device, its context current; a DeviceError says what is missing."""
    card = _found.get(device) or _find(device)
    card.set_current()
    return card


_found: dict[str, Any] = {}  # opened devices


def make_current(device: str) -> None:
    """Make the card's primary context, which torch and CuPy use too, current in this thread."""
    context = _contexts.get(device)
    if context is None:
        context = _contexts[device] = _primary_context(device)
    driver().cuCtxSetCurrent(context)


_contexts: dict[str, Any] = {}


def _primary_context(device: str) -> Any:
    number = card_number(device)
    try:
        driver().cuInit(0)
        known = number < int(driver().cuDeviceGetCount()[1] or 0)  # None if all cards are hidden
        status, context = driver().cuDevicePrimaryCtxRetain(number) if known else (1, None)
    except (ImportError, RuntimeError):
        status, context = 1, None
    if int(status):
        open_card(device)  # raises what is missing
        raise DeviceError(f"device={device!r} has no context: {status}")
    return context


class CardAttributes(NamedTuple):
    """Attributes of a card by the driver; clocks in kHz."""

    name: str
    capability: tuple[int, int]
    units: int
    clock: int
    memory_clock: int
    bus_bits: int
    has_time_out: bool = False  # the driver ends long kernels, because the card drives a display


PRETEND = "TILEWISE_PRETEND"  # in the environment: sm_75, sm_80, …


def simulated_arch() -> str:
    """The arch that tests simulate on this card, in child processes too; empty if none. Plans and kernels are for that
    arch; bandwidth, L2, clocks and rates are this card's."""
    arch = os.environ.get(PRETEND, "")
    if arch and not re.fullmatch(r"sm_\d{2,3}", arch):
        raise UsageError(f"{PRETEND}={arch!r} must be an arch, such as sm_75 or sm_89")
    return arch


def card_attributes(device: str) -> CardAttributes:
    """The attributes of one card, or of the one it simulates."""
    found, arch = _card_attributes(device), simulated_arch().removeprefix("sm_")
    if not arch:
        return found
    return found._replace(name=f"{found.name} as sm_{arch}", capability=(int(arch[:-1]), int(arch[-1])))


def _card_attributes(device: str) -> CardAttributes:
    make_current(device)
    number = card_number(device)

    def of(name: str) -> int:
        attribute = getattr(driver().CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(driver().cuDeviceGetAttribute(attribute, number)[1])

    return CardAttributes(
        driver().cuDeviceGetName(256, number)[1].split(b"\0")[0].decode(),
        (of("COMPUTE_CAPABILITY_MAJOR"), of("COMPUTE_CAPABILITY_MINOR")),
        of("MULTIPROCESSOR_COUNT"),
        of("CLOCK_RATE"),
        of("MEMORY_CLOCK_RATE"),
        of("GLOBAL_MEMORY_BUS_WIDTH"),
        bool(of("KERNEL_EXEC_TIMEOUT")),
    )


def driver() -> Any:
    """The bindings of the driver."""
    from cuda.bindings import driver as bindings

    return bindings


def _find(device: str) -> Any:
    number = card_number(device)
    try:
        Device = cuda_core().Device
    except ImportError:
        raise DeviceError(f"device={device!r} needs the CUDA packages, which are not installed: {INSTALL}") from None
    count = card_count()
    if count == 0:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        why = "" if hidden is None else f" (CUDA_VISIBLE_DEVICES={hidden!r} is all it may use)"
        raise DeviceError(
            f"device={device!r} was requested, but no NVIDIA driver or card was found{why}: "
            "use device='cpu', or see nvidia-smi"
        )
    if number >= count:
        raise DeviceError(
            f"device={device!r} was requested, but there are {count} cards here: cuda:0 to cuda:{count - 1}"
        )
    _found[device] = Device(number)
    return _found[device]


def default_stream(device: str) -> Any:
    """The card's default stream, with the card's context current."""
    open_card(device)
    from cuda.core import LEGACY_DEFAULT_STREAM

    return LEGACY_DEFAULT_STREAM


def allocate(nbytes: int, device: str, stream: Any) -> Any:
    """Memory on a card, in stream order; the error for too much has the size and the free memory."""
    card = open_card(device)
    try:
        if capturing(stream):
            from cuda.core import GraphMemoryResource

            return GraphMemoryResource(card).allocate(nbytes, stream=stream)
        return card.allocate(nbytes, stream=stream)
    except Exception as error:
        if "OUT_OF_MEMORY" not in str(error):
            raise DeviceError(f"allocating {nbytes:,} bytes on {device} failed: {error}") from error
        free, total = memory(device)
        raise OutOfMemoryError(
            f"{nbytes:,} bytes do not fit on {device}: {free:,} of {total:,} are free; "
            "multiply in pieces, or free other arrays first"
        ) from None


def capturing(stream: Any) -> bool:
    """Whether a stream is being captured into a CUDA graph."""
    return int(driver().cuStreamIsCapturing(stream.handle)[1]) != 0


def memory(device: str) -> tuple[int, int]:
    """Free and total bytes of a card."""
    make_current(device)
    _, free, total = driver().cuMemGetInfo()
    return int(free), int(total)


def check_on_card(low: int, high: int, role: str) -> None:
    """Refuse an array that exceeds its allocation, or is in none, by the driver's table of allocations."""
    if low < 0 or high > 1 << 64:
        raise ShapeError(f"{role} reaches past every address: its strides are wrong")
    start = low
    while start < high:
        try:
            status, base, size = driver().cuMemGetAddressRange(start)
        except Exception as error:  # without a driver there is no card
            if card_count():
                raise
            raise DeviceError(f"{role} claims to be on a card, and no NVIDIA driver was found") from error
        if int(status) != 0:
            raise DeviceError(f"{role} points to {start:#x}, where the card has no memory: its address is wrong")
        end = int(base) + int(size)
        if end < high and (int(base) | end) % MAPPED_GRAIN:
            raise ShapeError(
                f"{role} reaches from byte {low - int(base):,} to {high - int(base):,} of memory on the card that has "
                f"{int(size):,}: its shape or strides are wrong"
            )
        start = end  # virtual memory is mapped in pieces, and an array may span several
