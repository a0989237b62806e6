"""The generated kernels on a card: what the interpreter says is what the hardware does, bit for bit."""

from __future__ import annotations

import ctypes

import pytest

from compiled_kernels import inputs, interpreted, outputs, same
from small_kernels import BLOCKS, INPUTS, THREADS, kernel
from tilewise.arrays.card import default_stream, open_card
from tilewise.arrays.device_array import to_device
from tilewise.backends.cuda.device import arch_of

DEVICE = "cuda:0"
BATCH = 25


def compiled_for_the_card(source, names):
    """By NVRTC as written: no fused multiply-add, and no optimiser that takes signed overflow for impossible."""
    from cuda.bindings import driver
    from cuda.core import ObjectCode, Program, ProgramOptions

    options = ProgramOptions(arch=arch_of(DEVICE), std="c++17", fma=False, debug=True)
    code = bytes(Program(source, "c++", options).compile("cubin").code)
    module = ObjectCode.from_cubin(code)
    kernels = [module.get_kernel(name) for name in names]
    return [(driver.cuKernelGetFunction(kernel.handle)[1], kernel) for kernel in kernels]


def launch(function, arguments, stream):
    from cuda.bindings import driver

    pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    sizes = (BLOCKS, 1, 1, THREADS, 1, 1)
    (code,) = driver.cuLaunchKernel(function, *sizes, 0, stream.handle, ctypes.addressof(pointers), 0)
    assert not int(code)


@pytest.mark.parametrize("batch", range(8))
def test_the_card_agrees(batch):
    open_card(DEVICE)
    numbers = range(batch * BATCH, (batch + 1) * BATCH)
    texts = [kernel(number, number) for number in numbers]
    source = "\n".join(texts).replace("__global__ void", 'extern "C" __global__ void')
    ready = compiled_for_the_card(source, [f"k{number}" for number in numbers])
    given, stream = inputs(0), default_stream(DEVICE)
    for number, text, function in zip(numbers, texts, ready, strict=True):
        placed = [to_device(a, DEVICE) for a in (*given, *outputs().values())]
        arguments = (*(ctypes.c_void_p(a.pointer) for a in placed), ctypes.c_int(INPUTS))
        launch(function[0], arguments, stream)
        made = dict(zip(outputs(), (a.numpy() for a in placed[len(given) :]), strict=True))
        expected, _ = interpreted(text, number, given)
        assert same(made, expected), f"kernel {number} differs:\n{text}"
