"""The emulated card: its properties, error state, and a simulated clock that copies and kernels advance."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewise.core.machine import KNOWN_CARDS, Machine, shared_limit
from tilewise.emulator.host.lower.program import LaunchSite
from tilewise.emulator.host.runtime.memory import BUSY, Allocation
from tilewise.emulator.host.runtime.session import Session
from tilewise.emulator.host.runtime.stream_order import StreamOrder
from tilewise.emulator.machine.findings import Kind
from tilewise.emulator.machine.lanes import Geometry
from tilewise.errors import UsageError

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, BAD_CONFIGURATION = 0, 1, 2, 9
BAD_SYMBOL, BAD_DIRECTION, BAD_DEVICE, BAD_HANDLE, ILLEGAL_ADDRESS = 13, 21, 101, 400, 700
INVALID_FUNCTION = 98
OUT_OF_RESOURCES, ASSERTED, LAUNCH_FAILURE, TOO_LARGE = 701, 710, 719, 720
NAMES = {
    0: ("cudaSuccess", "no error"),
    1: ("cudaErrorInvalidValue", "invalid argument"),
    2: ("cudaErrorMemoryAllocation", "out of memory"),
    3: ("cudaErrorInitializationError", "initialization error"),
    4: ("cudaErrorCudartUnloading", "driver shutting down"),
    9: ("cudaErrorInvalidConfiguration", "invalid configuration argument"),
    12: ("cudaErrorInvalidPitchValue", "invalid pitch argument"),
    13: ("cudaErrorInvalidSymbol", "invalid device symbol"),
    16: ("cudaErrorInvalidHostPointer", "invalid host pointer"),
    17: ("cudaErrorInvalidDevicePointer", "invalid device pointer"),
    18: ("cudaErrorInvalidTexture", "invalid texture reference"),
    19: ("cudaErrorInvalidTextureBinding", "texture is not bound to a pointer"),
    20: ("cudaErrorInvalidChannelDescriptor", "invalid channel descriptor"),
    21: ("cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"),
    35: ("cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"),
    46: ("cudaErrorDevicesUnavailable", "all CUDA-capable devices are busy or unavailable"),
    52: ("cudaErrorMissingConfiguration", "__global__ function call is not configured"),
    98: ("cudaErrorInvalidDeviceFunction", "invalid device function"),
    100: ("cudaErrorNoDevice", "no CUDA-capable device is detected"),
    101: ("cudaErrorInvalidDevice", "invalid device ordinal"),
    200: ("cudaErrorInvalidKernelImage", "device kernel image is invalid"),
    209: ("cudaErrorNoKernelImageForDevice", "no kernel image is available for execution on the device"),
    214: ("cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"),
    215: ("cudaErrorUnsupportedLimit", "limit is not supported on this architecture"),
    217: ("cudaErrorPeerAccessUnsupported", "peer access is not supported between these two devices"),
    218: ("cudaErrorInvalidPtx", "a PTX JIT compilation failed"),
    301: ("cudaErrorFileNotFound", "file not found"),
    304: ("cudaErrorOperatingSystem", "OS call failed or operation not supported on this OS"),
    400: ("cudaErrorInvalidResourceHandle", "invalid resource handle"),
    500: ("cudaErrorSymbolNotFound", "named symbol not found"),
    600: ("cudaErrorNotReady", "device not ready"),
    700: ("cudaErrorIllegalAddress", "an illegal memory access was encountered"),
    701: ("cudaErrorLaunchOutOfResources", "too many resources requested for launch"),
    702: ("cudaErrorLaunchTimeout", "the launch timed out and was terminated"),
    704: ("cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"),
    705: ("cudaErrorPeerAccessNotEnabled", "peer access has not been enabled"),
    710: ("cudaErrorAssert", "device-side assert triggered"),
    712: ("cudaErrorHostMemoryAlreadyRegistered", "part or all of the requested memory range is already mapped"),
    713: ("cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"),
    714: ("cudaErrorHardwareStackError", "hardware stack error"),
    715: ("cudaErrorIllegalInstruction", "an illegal instruction was encountered"),
    716: ("cudaErrorMisalignedAddress", "misaligned address"),
    717: ("cudaErrorInvalidAddressSpace", "operation not supported on global/shared address space"),
    718: ("cudaErrorInvalidPc", "invalid program counter"),
    719: ("cudaErrorLaunchFailure", "unspecified launch failure"),
    720: ("cudaErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"),
    800: ("cudaErrorNotPermitted", "operation not permitted"),
    801: ("cudaErrorNotSupported", "operation not supported"),
    900: ("cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"),
    999: ("cudaErrorUnknown", "unknown error"),
}
MEMORY = {  # bytes, bits of its bus, MiB of L2 cache
    "t4": (15843721216, 256, 4), "a10": (24 << 30, 384, 6), "a100": (42505273344, 5120, 40),
    "rtx3060": (12 << 30, 192, 3), "rtx3090": (24 << 30, 384, 6), "rtx4070": (12 << 30, 192, 36),
    "rtx4090": (25393692672, 384, 72), "rtx5090": (32 << 30, 512, 96), "l4": (24 << 30, 192, 48),
    "l40s": (48 << 30, 384, 96), "h100": (84974239744, 5120, 50), "h200": (150754820096, 6144, 50),
    "b200": (180 << 30, 8192, 126),
}  # fmt: skip
RESIDENT_BLOCKS = {"sm_75": 16, "sm_86": 16, "sm_89": 24, "sm_120": 24}  # of a multiprocessor; others have 32
PCI = 12e9  # bytes a second between host and card
COPY_START, LAUNCH_START = 8e-6, 4e-6  # seconds


@dataclass
class RunningKernel:
    """The compiled kernel that runs now."""

    geometry: Geometry | None = None  # None if there is none
    site: LaunchSite | None = None
    arguments: int = 0  # address
    dynamic_bytes: int = 0  # its extern __shared__ memory
    scratch: int = 0  # address to which invalid accesses are redirected
    reported: int = 0  # invalid accesses of all launches
    unset_pointer: bool = False  # this launch loaded 8 bytes without a value: a null pointer follows from them


@dataclass(frozen=True)
class UninitialisedCopy:
    """A copy to the host of memory that no kernel, or only a part of a kernel's threads, had stored to."""

    to: int
    size: int
    line: int
    source: Allocation
    offset: int  # in the source
    stored: int  # line of the launch that had stored to it before; 0 for none

    def covers(self, address: int) -> bool:
        return self.to <= address < self.to + self.size


# cudaDeviceAttr by number: the corresponding member of cudaDeviceProp
NAMED = {
    1: "maxThreadsPerBlock", 8: "sharedMemPerBlock", 9: "totalConstMem", 10: "warpSize", 11: "memPitch",
    12: "regsPerBlock", 13: "clockRate", 14: "textureAlignment", 15: "deviceOverlap", 16: "multiProcessorCount",
    19: "canMapHostMemory", 31: "concurrentKernels", 32: "ECCEnabled", 33: "pciBusID", 34: "pciDeviceID",
    36: "memoryClockRate", 37: "memoryBusWidth", 38: "l2CacheSize", 39: "maxThreadsPerMultiProcessor",
    40: "asyncEngineCount", 41: "unifiedAddressing", 75: "major", 76: "minor", 78: "streamPrioritiesSupported",
    79: "globalL1CacheSupported", 80: "localL1CacheSupported", 81: "sharedMemPerMultiprocessor",
    82: "regsPerMultiprocessor", 83: "managedMemory", 89: "concurrentManagedAccess", 90: "computePreemptionSupported",
    95: "cooperativeLaunch", 97: "sharedMemPerBlockOptin", 106: "maxBlocksPerMultiProcessor",
}  # fmt: skip
ATTRIBUTES: dict[int, tuple[str, int | None]] = {
    **{number: (name, None) for number, name in NAMED.items()},
    **{2 + axis: ("maxThreadsDim", axis) for axis in range(3)},
    **{5 + axis: ("maxGridSize", axis) for axis in range(3)},
}


@dataclass
class Card:
    session: Session
    path: str | Path
    machine: Machine = field(init=False)
    launches: list[dict[str, Any]] = field(default_factory=list)
    described: set[str] = field(default_factory=set)  # kernels that have a launch with arguments in `launches`
    nanoseconds: float = 0.0  # simulated time
    last: int = 0
    sticky: int = 0
    outstanding: int = 0  # line of the last launch since the host synchronised
    unfinished: dict[int, int] = field(default_factory=dict)  # events recorded after such a launch: their line
    unchecked_launches: set[int] = field(default_factory=set)  # lines of those that failed since the last error check
    events: dict[int, float | None] = field(default_factory=dict)
    streams: dict[int, int] = field(default_factory=dict)  # by handle: the line that destroyed it, or 0
    order: StreamOrder = field(default_factory=StreamOrder)
    shared_limit: int = 48 << 10
    unsynchronised: dict[int, int] = field(default_factory=dict)  # blocks that a kernel or copy may write: its line
    kernels: dict[Any, Any] = field(default_factory=dict)
    pointed_to: dict[tuple[int, int], Any] = field(default_factory=dict)  # launches through pointers: (site, handle)
    uninitialised_copies: list[UninitialisedCopy] = field(default_factory=list)
    inputs: dict[int, tuple[str, bool]] = field(default_factory=dict)  # arrays copied to the card: name, is constant
    compiled: dict[Any, Any] = field(default_factory=dict)  # compiled kernels, or why they cannot be compiled
    interpreted: float = 0.0  # estimated seconds that the interpreter has taken
    race_checked: set[int] = field(default_factory=set)  # kernels, by id, of which blocks were checked for races
    running: RunningKernel = field(default_factory=RunningKernel)
    progress: str = ""  # of the running launch, for the status line
    phrase: Any = None  # which of a kernel's findings are reported, with their sentences

    def __post_init__(self) -> None:
        name = self.session.options.card
        if name not in KNOWN_CARDS:
            raise UsageError(f"the card {name!r} is not known; known are {', '.join(KNOWN_CARDS)}")
        self.machine = KNOWN_CARDS[name]

    @property
    def memory(self) -> int:
        return MEMORY[self.session.options.card][0]

    @property
    def most_blocks(self) -> int:
        """Of a multiprocessor, whatever they need."""
        return RESIDENT_BLOCKS.get(self.machine.arch, 32)

    @property
    def shared_of_unit(self) -> int:
        """Bytes of a multiprocessor: from Ampere on 1 KB more than a block may have."""
        return shared_limit(self.machine.arch) + (1024 if self.machine.arch != "sm_75" else 0)

    def fail(self, code: int) -> int:
        """Record an error code, and return it."""
        if code:
            self.last = code
        return code

    def illegal_address(self) -> None:
        """A sticky error: the context is lost, every later call returns it."""
        self.sticky = self.fail(ILLEGAL_ADDRESS)

    def in_use(self, block: Allocation, address: int, size: int, line: int) -> None:
        """The card may write to memory that the host can access, until the host synchronises."""
        self.unsynchronised[block.address] = line
        self.session.memory.change(address, size, give=BUSY)

    def resident_blocks(self, threads: int, shared: int) -> int:
        """How many blocks a multiprocessor holds at a time."""
        most = self.machine.resident_threads // max(1, threads)
        return max(0, min(self.most_blocks, most, self.shared_of_unit // shared if shared else most))

    def copied(self, size: int) -> None:
        self.nanoseconds += 1e9 * (COPY_START + size / PCI)

    def computed(self, seconds: float) -> None:
        self.nanoseconds += 1e9 * (LAUNCH_START + seconds)

    def properties(self) -> dict[str, Any]:
        """cudaDeviceProp, by the names of its members."""
        m = self.machine
        major, minor = int(m.arch[3:-1]), int(m.arch[-1])
        lanes = {"sm_75": 64, "sm_80": 64}.get(m.arch, 128)
        _, bus, cache = MEMORY[self.session.options.card]
        clock = int(m.step_rates[""] / (m.units * lanes) / 1000)
        return {
            "name": m.name.encode(),
            "totalGlobalMem": self.memory,
            "sharedMemPerBlock": 49152,
            "regsPerBlock": 65536,
            "warpSize": 32,
            "memPitch": 2147483647,
            "maxThreadsPerBlock": 1024,
            "maxThreadsDim": (1024, 1024, 64),
            "maxGridSize": (2147483647, 65535, 65535),
            "clockRate": clock,
            "totalConstMem": 65536,
            "major": major,
            "minor": minor,
            "textureAlignment": 512,
            "texturePitchAlignment": 32,
            "deviceOverlap": 1,
            "multiProcessorCount": m.units,
            "canMapHostMemory": 1,
            "concurrentKernels": 1,
            "ECCEnabled": 1,
            "asyncEngineCount": 3,
            "unifiedAddressing": 1,
            "memoryClockRate": round(m.bandwidth * 4 / bus / 1000),  # two transfers a cycle
            "memoryBusWidth": bus,
            "l2CacheSize": cache << 20,
            "maxThreadsPerMultiProcessor": m.resident_threads,
            "streamPrioritiesSupported": 1,
            "globalL1CacheSupported": 1,
            "localL1CacheSupported": 1,
            "sharedMemPerMultiprocessor": self.shared_of_unit,
            "regsPerMultiprocessor": 65536,
            "managedMemory": 1,
            "concurrentManagedAccess": 1,
            "computePreemptionSupported": 1,
            "cooperativeLaunch": 1,
            "sharedMemPerBlockOptin": shared_limit(m.arch),
            "maxBlocksPerMultiProcessor": self.most_blocks,
            "pciBusID": 0,
            "pciDeviceID": 4,
        }

    def attribute(self, number: int) -> int:
        name, axis = ATTRIBUTES.get(number, ("", None))
        value = self.properties().get(name, 0)
        return int(value if axis is None else value[axis])


def refuse(
    s: Session, code: int, message: str, hint: str, kind: Kind = Kind.COPY, *, line: int = 0, access: str = "copy",
    **where: Any,
) -> int:  # fmt: skip
    """A finding in a call of the CUDA runtime, at the line that runs where no other is given; what the call returns."""
    s.faults.add(kind, line or s.line, message, hint, access=access, **where)
    return int(s.cuda.fail(code))
