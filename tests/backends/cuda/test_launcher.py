"""Filling a recipe's holes and launching it, by a driver that only records its calls."""

from __future__ import annotations

import ctypes
import gc
import random
import struct
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from seeds import next_seed
from tilewise.backends.cuda import launcher, loading, native
from tilewise.core.recipe import Address, Launch, Recipe, TensorMap, Zero, argument, array, structure
from tilewise.errors import EngineError


class Pair(ctypes.Structure):
    _fields_ = (("number", ctypes.c_int), ("at", ctypes.c_void_p))


class Driver:
    """Records launches: grid, block, shared bytes, stream, function and the bytes of every parameter."""

    def __init__(self, sizes):
        self.sizes, self.calls, self.answers = sizes, [], []
        self._lock = threading.Lock()
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self._held = (
            ctypes.CFUNCTYPE(number, pointer, pointer, pointer, pointer)(self._launch),
            ctypes.CFUNCTYPE(number, pointer, ctypes.c_uint64)(self._replace),
            ctypes.CFUNCTYPE(number, ctypes.c_uint64, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64)(self._memset),
        )
        addresses = [ctypes.cast(f, pointer).value for f in self._held]
        self.functions = dict(zip(("launch", "replace", "memset"), addresses, strict=True))

    def _launch(self, config, function, params, extra):
        sizes_given = (ctypes.c_uint * 7).from_address(config)
        stream, attributes = (ctypes.c_uint64.from_address(config + at).value for at in (32, 40))
        overlap = ctypes.c_uint.from_address(config + 48).value
        assert not overlap or (ctypes.c_uint * 3).from_address(attributes)[:] == [6, 0, 1]
        pointers = (ctypes.c_uint64 * len(self.sizes[function])).from_address(params)
        given = [ctypes.string_at(at, size) for at, size in zip(pointers, self.sizes[function], strict=True)]
        with self._lock:
            self.calls.append((function, tuple(sizes_given), stream, bool(overlap), tuple(given)))
            return self.answers.pop(0) if self.answers else 0

    def _replace(self, at, address):
        assert at % 64 == 0, "a tensor map must lie on 64 bytes"
        ctypes.c_uint64.from_address(at).value = address
        return 0

    def _memset(self, at, value, count, stream):
        with self._lock:
            self.calls.append(("zero", at, value, count, stream))
        return 0


STEPS = (
    Zero(Address("scratch", 256)),
    Launch.of(
        "text of one",
        "one",
        (3, 2),
        (128,),
        (
            Address("M", 32),
            ctypes.c_int(7),
            structure(Pair, 5, Address("P", -16)),
            TensorMap(Address("N", 64), "uint16", 8, 8, 16, 8, 8),
        ),
        4096,
        True,
    ),
    Launch.of("text of two", "two", (1,), (32, 4), (array([Address("bias"), Address("scratch")]), None)),
)
FUNCTIONS = {"one": 11, "two": 22}
SIZES = {FUNCTIONS[step.name]: [len(a.data) for a in step.arguments] for step in STEPS if isinstance(step, Launch)}


@pytest.fixture
def driver(monkeypatch):
    made = Driver(SIZES)
    monkeypatch.setattr(launcher, "driver_functions", lambda: made.functions)
    monkeypatch.setattr(launcher, "make_current", lambda device: None)
    monkeypatch.setattr(
        launcher, "kernel_function", lambda source, name, *_: launcher.LoadedFunction(FUNCTIONS[name], None)
    )
    monkeypatch.setattr(launcher, "encoded", lambda made: bytes([0xAB]) * 128)
    return made


def expected(M, N, P, scratch, bias, stream):
    def field(x):
        return x.to_bytes(8, "little")

    pair = (5).to_bytes(4, "little") + bytes(4) + field(P - 16)
    made = field(N + 64) + bytes([0xAB]) * 120
    return [
        ("zero", scratch + 256, 0, 1, stream),
        (11, (3, 2, 1, 128, 1, 1, 4096), stream, True, (field(M + 32), (7).to_bytes(4, "little"), pair, made)),
        (22, (1, 1, 1, 32, 4, 1, 0), stream, False, (field(bias) + field(scratch), bytes(8))),
    ]


def test_every_hole_is_filled_at_any_address(driver):
    seed = next_seed() % 2**32
    rng = random.Random(seed)
    ready = launcher.Launcher(Recipe(STEPS, 512), "cuda:0")
    for _ in range(50):
        M, N, P, scratch, bias, stream = (rng.randrange(1 << 20, 1 << 47) & ~15 for _ in range(6))
        driver.calls.clear()
        assert ready(stream, M=M, N=N, P=P, scratch=scratch, bias=bias)
        assert driver.calls == expected(M, N, P, scratch, bias, stream), f"seed {seed}"
        driver.calls.clear()
        assert ready.launch(ready.header, M, N, P, scratch, stream) == 0
        assert driver.calls == expected(M, N, P, scratch, 0, stream), f"seed {seed}"


def test_a_product_that_shares_memory_with_an_operand_is_not_launched(driver):
    ready = launcher.Launcher(Recipe(STEPS), "cuda:0", {"M": (0, 100), "N": (-50, 60), "P": (0, 10)})
    for P, queued in ((1000 + 99, False), (1000 + 100, True), (1000 - 9, False), (990, True), (5040, False)):
        driver.calls.clear()
        assert ready(0, M=1000, N=5000, P=P) == queued == bool(driver.calls)
        assert (ready.launch(ready.header, 1000, 5000, P, 0, 0) == 0) == queued


def test_long_recipes_come_in_several_images(driver):
    ready = launcher.Launcher(Recipe(STEPS * 100), "cuda:0")
    assert len(ready._images) > 1
    assert ready.header == 0
    ready(9, M=16, N=32, P=48, scratch=64, bias=80)
    assert driver.calls == expected(16, 32, 48, 64, 80, 9) * 100


def test_a_failed_launch_is_an_error_that_names_it(driver, monkeypatch):
    names = SimpleNamespace(CUresult=lambda code: SimpleNamespace(name=f"CODE_{code}"))
    monkeypatch.setattr(launcher, "driver", lambda: names)
    ready = launcher.Launcher(Recipe(STEPS), "cuda:0")
    driver.answers = [0, 701]
    with pytest.raises(EngineError, match=r"Launch\(two, grid 1 of 32 × 4\).*CODE_701"):
        ready(0, M=1 << 20)


def test_a_thread_that_never_used_the_card_gets_its_context(driver, monkeypatch):
    opened = []
    ready = launcher.Launcher(Recipe(STEPS), "cuda:0")
    monkeypatch.setattr(launcher, "make_current", opened.append)
    driver.answers = [launcher.INVALID_CONTEXT]
    assert ready(0, M=1 << 20)
    assert opened == ["cuda:0"]


def test_threads_share_a_launcher(driver):
    """Each call fills a copy of its own: what one thread writes never shows in another's launches."""
    ready = launcher.Launcher(Recipe(STEPS), "cuda:0")

    def work(number):
        for turn in range(100):
            base = (number + 1) << 40 | turn << 8
            ready(number, M=base, N=base, P=base, scratch=base, bias=base)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    for number in range(8):
        mine = [call for call in driver.calls if call[4 if call[0] == "zero" else 2] == number]
        wanted = []
        for turn in range(100):
            base = (number + 1) << 40 | turn << 8
            wanted += expected(base, base, base, base, base, number)
        assert mine == wanted


def test_a_parameter_is_bytes_and_holes():
    assert argument(None).data == bytes(8)
    assert argument(ctypes.c_int(-1)).data == b"\xff" * 4
    held = structure(Pair, 1, Address("M"))
    assert held.holes == ((8, Address("M")),)
    assert array([held, held]).holes == ((8, Address("M")), (24, Address("M")))


class Kernel:
    handle = 5


@pytest.fixture
def loaded(monkeypatch):
    """Weak references to the kernels that were loaded, by a driver that only nods."""
    made = []

    def load(code, name, device):
        kernel = Kernel()
        made.append(weakref.ref(kernel))
        return kernel

    driver = SimpleNamespace(cuKernelGetFunction=lambda handle: (0, 7))
    monkeypatch.setattr(loading, "load_kernel", load)
    monkeypatch.setattr(loading, "compile_source", lambda source, arch: b"code")
    monkeypatch.setattr(loading, "arch_of", lambda device: "sm_90a")
    monkeypatch.setattr(loading, "driver", lambda: driver)
    monkeypatch.setattr(launcher, "make_current", lambda device: None)
    monkeypatch.setattr(launcher, "driver_functions", lambda: dict.fromkeys(native.DRIVER, 0))
    monkeypatch.setattr(loading, "_functions", {})
    monkeypatch.setattr(loading, "_kernels", {})
    return made


def test_a_launcher_keeps_its_kernels_however_many_come_after_them(loaded):
    ready = launcher.Launcher(Recipe((Launch.of("0", "k", (1,), (32,), (ctypes.c_int(1),)),)), "cuda:0")
    for number in range(1, loading.KEPT + 100):
        loading.kernel_function(str(number), "k", "cuda:0")
    gc.collect()
    assert loaded[0]() is not None
    assert loaded[1]() is None  # nothing refers to that one any more
    del ready
    gc.collect()
    assert loaded[0]() is None


def test_threads_that_load_at_once_share_a_kernel(loaded):
    with ThreadPoolExecutor(8) as pool:
        functions = list(pool.map(lambda _: loading.kernel_function("same", "k", "cuda:0"), range(64)))
    assert len({id(function) for function in functions}) == len(loaded) == 1


def test_attributes_of_a_launch():
    """CUlaunchAttribute: a number, 4 bytes of padding, 64 of value."""
    alone, both = (Launch.of("", "k", (8,), (32,), (), 0, *how) for how in ((), (True, 4)))
    assert launcher.attributes_of(alone) == []
    early, cluster = launcher.attributes_of(both)
    assert (len(early), len(cluster)) == (72, 72)
    assert struct.unpack_from("<IxxxxI", early) == (launcher.PROGRAMMATIC, 1)
    assert struct.unpack_from("<IxxxxIII", cluster) == (launcher.CLUSTER, 4, 1, 1)


def test_numbers_of_tensor_maps_are_the_drivers():
    driver = pytest.importorskip("cuda.bindings.driver")
    for name, number in launcher.KINDS.items():
        assert getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{name.upper()}") == number
    assert driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B == launcher.SWIZZLE_128
    assert driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B == launcher.L2_PROMOTION_128
    for kind in (driver.CUtensorMapInterleave, driver.CUtensorMapSwizzle, driver.CUtensorMapFloatOOBfill):
        assert next(one.name for one in kind if not int(one)).endswith("NONE")


def test_a_tensor_map_is_encoded_by_the_driver(monkeypatch):
    calls = []

    def encode(place, kind, rank, address, extents, strides, box, steps, *how):
        assert place % 64 == 0
        ctypes.memmove(place, bytes(range(128)), 128)
        wide = [list((ctypes.c_uint64 * n).from_address(at)) for at, n in ((extents, rank), (strides, rank - 1))]
        narrow = [list((ctypes.c_uint32 * rank).from_address(at)) for at in (box, steps)]
        calls.append((kind, rank, address, *wide, *narrow, *how))
        return 0

    monkeypatch.setattr(launcher, "encoder", lambda: encode)
    made = launcher.encoded(TensorMap(Address("M"), "uint16", 40, 30, 64, 32, 16, True, ((5, 4096), (7, 8192))))
    assert made == bytes(range(128))
    extents, strides = [30, 40, 5, 7], [64, 4096, 8192]
    kind, rank, address, found, apart, box, steps, *how = calls[0]
    assert (kind, rank, address, found, apart, box, steps) == (
        1, 4, launcher.PLACEHOLDER, extents, strides, [32, 16, 1, 1], [1] * 4,
    )  # fmt: skip
    assert how == [0, 3, 2, 0]
