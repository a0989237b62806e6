"""The card's launches on the host: recipes run step by step, kernels behind the C++ compiler, memory from NumPy."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import replace

import numpy as np

from behind_a_compiler import built
from tilewise.algebra.dtypes import dtype_of
from tilewise.core.problem import Layout, Problem
from tilewise.core.recipe import Zero
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.kernels.registry import family_named, family_of
from tilewise.planning import launchers
from tilewise.planning.choose import make_plan

_known = {}


def tensor_map(made, address):
    """A tensor map as `hopper_shim.h` has them."""
    extents = (made.length, made.lines, *(count for count, _ in made.stack), 1, 1)[:4]
    strides = (made.lead, *(apart for _, apart in made.stack), 16, 16)[:3]
    size = {"uint8": 1, "uint16": 2}.get(made.kind, 4)
    sides = (made.box, made.box_lines, 1, 1)
    fields = (address, 2 + len(made.stack), *extents, *strides, *sides, int(made.swizzled), size, 0)
    return struct.pack("<16Q", *fields)


def parameter(argument, bases):
    """A kernel parameter with its holes filled."""
    data = bytearray(argument.data)
    for at, address in argument.holes:
        data[at : at + 8] = (bases[address.base] + address.offset).to_bytes(8, "little")
    for at, made in argument.maps:
        data[at : at + 128] = tensor_map(made, bases[made.address.base] + made.address.offset)
    return (ctypes.c_char * len(data)).from_buffer_copy(data)


def run_recipe(recipe, folder, reads=(), **bases):
    """Every step of a recipe for these addresses; scratch memory starts poisoned. `reads`: where alone its copies may
    read, if given."""
    memory = np.full(recipe.scratch_bytes + 64, 0xFF, np.uint8)
    bases = {"scratch": -(-memory.ctypes.data // 64) * 64, **bases}
    for step in recipe.steps:
        if isinstance(step, Zero):
            ctypes.c_uint.from_address(bases[step.address.base] + step.address.offset).value = 0
            continue
        if (step.source, step.name) not in _known:
            _known[step.source, step.name] = built(text_of(step.source), step.name, folder)
        arguments = [parameter(argument, bases) for argument in step.arguments]
        _known[step.source, step.name](step.grid, step.block, arguments, step.cluster, reads, step.shared_bytes)


def put_on_the_host(monkeypatch, folder):
    """Launchers that would reach for a card run their recipe on the host instead."""

    class HostLauncher:
        def __init__(self, recipe, device, spans=None):
            self.recipe, self.device, self.scratch_bytes, self.header = recipe, device, 0, 0

        def __call__(self, stream, **addresses):
            run_recipe(self.recipe, folder, **{name: at for name, at in addresses.items() if name != "scratch"})
            return True

    import tilewise.backends.cuda.launcher as launcher

    monkeypatch.setattr(launcher, "Launcher", HostLauncher)
    launchers.launcher_of.cache_clear()
    monkeypatch.setattr(launchers, "launcher_of", lambda plan, device, *_: HostLauncher(recipe_of(plan), device))
    return HostLauncher


class HostStream:
    handle = 0

    def sync(self):
        pass


class HostDeviceArray:
    """A DeviceArray whose card is the host."""

    def __init__(self, shape, dtype, device="cuda:0"):
        self.shape, self.device, self.array = shape, device, np.full(shape, 0x55, dtype.numpy)

    @property
    def pointer(self):
        return self.array.ctypes.data

    def numpy(self):
        return self.array.copy()

    def copy_from(self, host):
        self.array[...] = host

    def free(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def layout_of(a):
    strides = tuple(s // a.itemsize for s in a.strides)
    return Layout(strides[-2], strides[-1], strides[:-2], a.ctypes.data % 16)


def multiplied(
    M, N, semiring, machine, P, folder, *, kernel=None, where=None, accumulate=False, nonnegative=False, config=None,
    reproducible=None, symmetric=False,
):  # fmt: skip
    """P = M ⊗ N by the plan's kernels; returns the plan."""
    problem = Problem(
        M.shape[-2], M.shape[-1], N.shape[-1], P.shape[:-2], dtype_of(M.dtype), dtype_of(N.dtype), semiring,
        layout_of(M), layout_of(N), layout_of(P), accumulate, "ieee", where is not None, nonnegative,
        reproducible=reproducible, symmetric=symmetric,
    )  # fmt: skip
    plan = make_plan(problem, machine, kernel) if config is None else family_of(kernel).pinned(problem, machine, config)
    if plan.family == "direct" and plan.config.cluster > 1:  # no clusters behind the compiler
        plan = family_named(plan.family).pinned(problem, machine, replace(plan.config, cluster=1))
    more = {} if where is None else {"arg": where.ctypes.data}
    run_recipe(recipe_of(plan), folder, M=M.ctypes.data, N=N.ctypes.data, P=P.ctypes.data, **more)
    return plan
