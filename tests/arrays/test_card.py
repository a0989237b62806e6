"""A card through the driver alone, where a stand-in answers for it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tilewise.arrays import card
from tilewise.errors import DeviceError

ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MULTIPROCESSOR_COUNT": 132,
    "CLOCK_RATE": 1_980_000,
    "MEMORY_CLOCK_RATE": 3_201_000,
    "GLOBAL_MEMORY_BUS_WIDTH": 6144,
    "KERNEL_EXEC_TIMEOUT": 1,
}


@pytest.fixture
def driver(monkeypatch):
    current = []
    made = SimpleNamespace(
        current=current,
        cuInit=lambda flags: (0,),
        cuDeviceGetCount=lambda: (0, 2),
        cuDevicePrimaryCtxRetain=lambda number: (0, f"context {number}"),
        cuCtxSetCurrent=lambda context: current.append(context) or (0,),
        cuDeviceGetAttribute=lambda name, number: (0, ATTRIBUTES[name]),
        cuDeviceGetName=lambda length, number: (0, b"NVIDIA H200" + bytes(length - 11)),
        CUdevice_attribute=SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in ATTRIBUTES}),
    )
    monkeypatch.setattr(card, "driver", lambda: made)
    monkeypatch.setattr(card, "_contexts", {})
    return made


def test_each_thread_is_given_the_context_of_the_card_that_it_names(driver):
    card.make_current("cuda:1")
    card.make_current("cuda")
    card.make_current("cuda:1")
    assert driver.current == ["context 1", "context 0", "context 1"]


def test_the_driver_has_the_attributes_that_plans_need(driver):
    assert card.card_attributes("cuda:0") == ("NVIDIA H200", (9, 0), 132, 1_980_000, 3_201_000, 6144, True)


@pytest.mark.parametrize("answer", [RuntimeError("libcuda.so.1"), ImportError("cuda.bindings")])
def test_without_a_driver_the_refusal_names_the_device(driver, monkeypatch, answer):
    def fails():
        raise answer

    def refused(device):
        raise DeviceError(f"device={device!r} was requested")

    monkeypatch.setattr(card, "driver", fails)
    monkeypatch.setattr(card, "open_card", refused)
    with pytest.raises(DeviceError, match="device='cuda:0'"):
        card.make_current("cuda:0")


def test_a_card_that_is_not_there_is_refused(driver, monkeypatch):
    opened = []
    monkeypatch.setattr(card, "open_card", opened.append)
    with pytest.raises(DeviceError):
        card.make_current("cuda:2")
    assert opened == ["cuda:2"]


@pytest.mark.parametrize(("setting", "left"), [
    (None, 4), ("", 0), ("-1", 0), ("NoDevFiles", 0), ("0", 1), ("3,1", 2), (" 2 , 0 ", 2), ("0,9,1", 1), ("1,1", 0),
    ("GPU-8f2c,MIG-11", 2), ("0,,1", 1),
])  # fmt: skip
def test_hidden_cards_are_not_counted(monkeypatch, setting, left):
    """cuda.core counts every card there is, and CUDA's own programs find what CUDA_VISIBLE_DEVICES leaves."""
    monkeypatch.setattr(card, "cuda_core", lambda: SimpleNamespace(system=SimpleNamespace(get_num_devices=lambda: 4)))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if setting is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    assert card.card_count() == left


def test_a_card_that_is_hidden_is_refused_by_the_name_of_what_hides_it(monkeypatch):
    core = SimpleNamespace(system=SimpleNamespace(get_num_devices=lambda: 1), Device=None)
    monkeypatch.setattr(card, "cuda_core", lambda: core)
    monkeypatch.setattr(card, "_found", {})
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DeviceError, match=r"was requested, but .* \(CUDA_VISIBLE_DEVICES='' is all it may use\)"):
        card.open_card("cuda:0")


def test_hidden_cards_are_named_in_the_error(driver, monkeypatch):
    """With CUDA_VISIBLE_DEVICES empty the driver counts nothing, not even 0."""
    driver.cuInit, driver.cuDeviceGetCount = lambda flags: (100,), lambda: (100, None)
    monkeypatch.setattr(card, "cuda_core", lambda: SimpleNamespace(Device=None))
    monkeypatch.setattr(card, "card_count", lambda: 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(DeviceError, match=r"device='cuda:77' was requested, but .*CUDA_VISIBLE_DEVICES=''"):
        card.make_current("cuda:77")
