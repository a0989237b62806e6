"""Arrays with wrong addresses, shapes or strides are refused with a message and never read."""

from __future__ import annotations

import ctypes
import mmap
import subprocess
import sys
import types

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import tilewise as tw
from tilewise.arrays import extent
from tilewise.arrays.card import check_on_card
from tilewise.arrays.extent import check_extent, mapped
from tilewise.backends.cpu.run import run
from tilewise.dispatch.execute import machine_of
from tilewise.dispatch.prepared import OnCard
from tilewise.errors import DeviceError, DtypeError, ShapeError
from tilewise.planning.choose import make_plan


class Liar:
    """Claims any interface it is given."""

    def __init__(self, address, shape, held=None):
        self.held = held
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": "<f8", "version": 3}


def test_strides_past_the_owner_are_refused():
    x = np.arange(12.0).reshape(3, 4)
    for shape, strides in (((3, 5000000), (32, 8)), ((4, 4), (32, 8)), ((3, 4), (-32, 8))):
        with pytest.raises(ShapeError, match=r"M is .* wrong"):
            tw.matmul(as_strided(x, shape, strides), np.ones((shape[1], 2)))
    few = np.frombuffer(bytearray(64))
    with pytest.raises(ShapeError, match=r"out is .* of memory that has 64: .* wrong"):
        tw.matmul(np.ones((9, 2)), np.ones((2, 1)), out=as_strided(few, (9, 1), (8, 8)))
    with pytest.raises(ShapeError, match=r"M is .* of memory that has 64: .* wrong"):
        tw.matmul(as_strided(as_strided(few[1:], (3, 2), (8, 8)), (4, 4), (16, 8)), np.ones((4, 2)))
    inside = as_strided(x, (2, 2), (32, 16))
    np.testing.assert_array_equal(tw.matmul(inside, np.eye(2)), inside)


def test_a_call_remembered_from_an_honest_array_does_not_let_a_liar_in():
    honest, n = np.ones((300, 300)), np.ones((300, 2))
    for _ in range(3):
        tw.matmul(honest, n)
    x = np.ones(64)
    for lie in (as_strided(x, (300, 300), (2400, 8)), np.asarray(Liar(4096, (300, 300)))[:]):
        with pytest.raises(ShapeError, match="wrong"):
            tw.matmul(lie, n)


def test_an_interface_to_no_memory_is_refused():
    with pytest.raises(ShapeError, match=r"not all of its .* bytes are memory of this process"):
        tw.matmul(Liar(4096, (3, 3)), np.ones((3, 3)))
    held = np.ones((3, 3))
    with pytest.raises(ShapeError, match="bytes are memory"):
        tw.matmul(Liar(held.ctypes.data, (3, 1 << 40), held), np.broadcast_to(1.0, (1 << 40, 1)))
    np.testing.assert_array_equal(tw.matmul(Liar(held.ctypes.data, (3, 3), held), held), held @ held)


@pytest.mark.skipif(sys.platform != "linux", reason="the advice is Linux's")
def test_advice_that_always_succeeds_is_not_used(monkeypatch):
    """User-mode qemu's madvise always succeeds: `mapped` reported unmapped pages as memory, and the kernel ended by a
    signal."""

    class YesSayer:
        def __call__(self, *_):
            return 0

    library = types.SimpleNamespace(madvise=YesSayer(), msync=ctypes.CDLL(None, use_errno=True).msync)
    monkeypatch.setattr(extent.ctypes, "CDLL", lambda *_, **__: library)
    extent._page_check.cache_clear()
    try:
        held = np.ones(4)
        assert not mapped(4096, 8192)
        assert mapped(held.ctypes.data, held.ctypes.data + held.nbytes)
    finally:
        extent._page_check.cache_clear()


def test_out_is_held_against_its_owner_too():
    x = np.ones(16)
    with pytest.raises(ShapeError, match=r"out is .* wrong"):
        tw.matmul(np.ones((400, 4)), np.ones((4, 400)), out=as_strided(x, (400, 400), (3200, 8)))


class Capsule:
    """A DLPack tensor of float64 at any address."""

    def __init__(self, address, rows, cols):
        class Tensor(ctypes.Structure):
            _fields_ = [
                ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.c_void_p),
                ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
            ]  # fmt: skip

        self.shape = (ctypes.c_int64 * 2)(rows, cols)
        self.tensor = Tensor(address, (1, 0), 2, 2, 64, 1, self.shape, None, 0, None, None)

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **how):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)


@pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="pages cannot be checked here")
def test_dlpack_of_no_memory_is_refused():
    held = np.ones((2, 2))
    right = Capsule(held.ctypes.data, 2, 2)
    np.testing.assert_array_equal(tw.matmul(right, right), held @ held)
    for wrong in (Capsule(8192, 2, 2), Capsule(held.ctypes.data, 2, 1 << 42)):
        with pytest.raises(ShapeError, match=r"M is .* memory of this process"):
            tw.matmul(wrong, wrong)


CUT = """
import sys, numpy as np, tilewise as tw, os
M = np.memmap(sys.argv[1], np.float64, "r+", shape=(2000, 1000), offset=int(sys.argv[2]))
if sys.argv[3] == "known":
    for _ in range(3): tw.matmul(np.asarray(M), np.ones((1000, 1)))
os.truncate(sys.argv[1], 8192)
try:
    tw.matmul(M if sys.argv[3] == "map" else np.asarray(M), np.ones((1000, 1)), **eval(sys.argv[4]))
except tw.TilewiseError as error:
    sys.exit(f"refused: {error}")
"""


@pytest.mark.drawn(2)
@pytest.mark.parametrize(("kind", "how"), [("map", "{}"), ("known", "{}"), ("map", "{'memory': '400MB'}")])
def test_a_mapped_file_that_was_cut_short_is_refused_and_no_signal_kills(tmp_path, kind, how):
    path = tmp_path / "M.bin"
    path.write_bytes(b"\0" * (2000 * 1000 * 8 + 5000))
    ran = subprocess.run(
        [sys.executable, "-c", CUT, path, "5000", kind, how], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 1, ran
    assert "refused: " in ran.stderr
    assert f"{path}, which was cut short to 8,192 bytes" in ran.stderr


def test_the_engine_itself_refuses_what_its_plan_was_not_made_for():
    M, N, P = np.ones((8, 6)), np.ones((6, 5)), np.ones((8, 5))
    made = make_plan(tw.plan(M, N).problem, machine_of("cpu"))
    run(made, M, N, P)
    with pytest.raises(ShapeError, match=r"P is 7×5 float64, and its kernel was made for 8×5 float64"):
        run(made, M, N, P[:7])
    with pytest.raises(DtypeError, match="M is 8×6 float32"):
        run(made, M.astype(np.float32), N, P)
    with pytest.raises(ShapeError, match="N is 5×5"):
        run(made, M, N[:5], P)


def test_arrays_on_a_card_are_held_against_their_allocation(monkeypatch):
    ranges = {0x1000: (0x1000, 4096), 0x10000000: (0x10000000, 2**21), 0x10200000: (0x10200000, 2**21)}

    def address_range(pointer):
        for base, size in ranges.values():
            if base <= pointer < base + size:
                return 0, base, size
        return 1, 0, 0

    driver = types.SimpleNamespace(cuMemGetAddressRange=address_range)
    monkeypatch.setitem(sys.modules, "cuda", types.SimpleNamespace(bindings=types.SimpleNamespace(driver=driver)))
    monkeypatch.setitem(sys.modules, "cuda.bindings", types.SimpleNamespace(driver=driver))
    check_on_card(0x1000, 0x2000, "M")
    check_on_card(0x10000100, 0x10300000, "M")  # over two pieces of mapped memory
    with pytest.raises(ShapeError, match=r"M reaches from byte 0 to 4,097 of memory on the card that has 4,096"):
        check_on_card(0x1000, 0x2001, "M")
    with pytest.raises(DeviceError, match="M points to 0x5000, where the card has no memory"):
        check_on_card(0x5000, 0x5001, "M")


def test_unmapped_pages_are_found():
    x = np.ones(100000)
    assert mapped(x.ctypes.data, x.ctypes.data + x.nbytes)
    if sys.platform in ("linux", "darwin"):
        assert not mapped(4096, 8192)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems find unmapped pages only")
def test_pages_without_read_or_write_access_are_found():
    """Reserved pages are the process's own, and to read them is a signal all the same."""
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    readable, size = mmap.PROT_READ, 4 * mmap.PAGESIZE
    reserved, fixed = (library.mmap(None, size, how, 0x22, -1, 0) for how in (0, readable))
    if mapped(reserved, reserved + size):
        pytest.skip("a Linux before 5.14")
    with pytest.raises(ShapeError, match="M is 8×8 float64, and not all of its 512 bytes are memory"):
        tw.matmul(Liar(reserved, (8, 8)), np.ones((8, 8)))
    assert mapped(fixed, fixed + size)
    assert not mapped(fixed, fixed + size, written=True)
    assert (tw.matmul(np.asarray(Liar(fixed, (8, 8))), np.ones((8, 8))) == 0).all()
    with pytest.raises(ShapeError, match="out is 8×8"):
        tw.matmul(np.ones((8, 8)), np.ones((8, 8)), out=np.asarray(Liar(fixed, (8, 8))))
    check_extent(np.frombuffer(bytearray(100), np.uint8)[3:50], "M")


def test_dlpack_of_a_negative_extent_is_a_sentence():
    """Found by fuzzing: NumPy raises a bare ValueError."""
    wrong = Capsule(np.ones((2, 2)).ctypes.data, -2, 2)
    with pytest.raises(DtypeError, match="M cannot be read through DLPack"):
        tw.matmul(wrong, wrong)


class Memory:
    """The part of CuPy that is used."""

    def __init__(self, ptr, size):
        self.ptr, self.size = ptr, size


class UnownedMemory(Memory):
    pass


def cupy_array(shape, strides, at=0, memory=None):
    memory = memory or Memory(0x1000, 800)
    data = types.SimpleNamespace(ptr=memory.ptr + at, mem=memory, device_id=0)
    device = types.SimpleNamespace(id=0)
    return types.SimpleNamespace(shape=shape, strides=strides, dtype=np.dtype(float), data=data, device=device)


@pytest.fixture
def cupy(monkeypatch):
    """CuPy's names, where it is not installed."""
    fake = types.ModuleType("cupy")
    fake.cuda = types.SimpleNamespace(UnownedMemory=UnownedMemory, get_current_stream=None)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    monkeypatch.delitem(sys.modules, "tilewise.arrays.cupy_signature", raising=False)
    yield fake
    sys.modules.pop("tilewise.arrays.cupy_signature", None)


def test_cupy_arrays_are_held_against_their_memory(cupy, monkeypatch):
    from tilewise.arrays import cupy_library
    from tilewise.arrays.cupy_signature import CupyCard

    honest = cupy_array((10, 10), (80, 8))
    assert cupy_library.CUPY.operand(honest, "M").shape == (10, 10)
    backwards = cupy_array((10, 10), (-80, 8), 720)
    assert cupy_library.CUPY.operand(backwards, "M").strides == (-10, 1)
    holds = CupyCard(0).holds(honest)
    assert holds(honest)
    assert CupyCard(0).holds(backwards)(backwards)
    for liar in (cupy_array((10, 10), (80, 8), 8), cupy_array((10, 10), (80, 8), memory=Memory(0x1000, 799))):
        assert not holds(liar)  # a prepared call looks again
        with pytest.raises(ShapeError, match="of memory on the card that has"):
            cupy_library.CUPY.operand(liar, "M")
    with pytest.raises(ShapeError, match=r"reaches from byte -720 to 80 of memory on the card"):
        cupy_library.CUPY.operand(cupy_array((10, 10), (-80, 8)), "M")
    checked = []
    monkeypatch.setattr(cupy_library, "check_on_card", lambda *range_: checked.append(range_))
    stranger = cupy_array((10, 10), (80, 8), memory=UnownedMemory(0x1000, 800))
    cupy_library.CUPY.operand(stranger, "M")
    assert checked == [(0x1000, 0x1000 + 800, "M")]
    assert not holds(stranger)


def test_a_prepared_call_on_a_card_refuses_what_its_memory_does_not_hold():
    launched = []
    library = types.SimpleNamespace(
        address=id, stream=lambda: 0, take=None, pointer=None, give_back=None, holds=lambda like: lambda x: x != "liar"
    )
    launcher = types.SimpleNamespace(
        scratch_bytes=0,
        header=1,
        launch=lambda *arguments: launched.append(arguments) or 0,
        settled=lambda *_, **__: True,
    )
    call = OnCard(launcher, library, lambda: "fresh", ("M", "N", "P"))
    assert call("M", "N", {}) == "fresh"
    assert len(launched) == 1
    for M, N, more in (("liar", "N", {}), ("M", "liar", {}), ("M", "N", {"out": "liar"})):
        assert call(M, N, more) is None
    assert call("M", "N", {"out": "P", "bias": "liar"}) is None
    assert len(launched) == 1
