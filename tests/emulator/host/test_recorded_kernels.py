"""A kernel in record mode: its log, brought into the order of lockstep execution, has the events of the machine."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from recorded_events import LaunchedKernel, events_of
from tilewise.algebra.builtin import find_semiring
from tilewise.emulator.check.loading import choose, dimensions_of, load
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import AtShape, simulate
from tilewise.emulator.limits import DEFAULT
from tilewise.errors import KernelError
from tilewise.teaching.page.frames import frames_of
from tilewise.teaching.page.recording import COURSE
from tilewise.teaching.trace.rungs import rung_text

pytestmark = pytest.mark.drawn(4)  # half a second each: two compilations

KERNELS = Path(__file__).parents[1] / "kernels"
RUNGS = [("tiled_edges", (3, 3, 3)), ("tiled", (3, 4, 5)), ("naive", (5, 6, 7)), ("coarsened", (5, 6, 7))]
FILES = [
    "wrong/one_phase_too_long", "wrong/half_a_guard", "wrong/less_or_equal", "wrong/stride_of_the_other_matrix",
    "wrong/early_return_before_a_barrier", "wrong/output_with_k_as_stride", "wrong/int_accumulator",
    "wrong/second_barrier_missing", "wrong/store_outside_the_guard", "walking_pointers", "index_variables",
    "wrong/forgotten_start", "right/barrier_in_a_uniform_branch", "right/transposed_tile", "right/x_as_the_row",
    "typed_template",
]  # fmt: skip


def recorded(kernel, launch, tile=None):
    """The machine's recorder, and the log of the compiled kernel's launch with the same arguments."""
    loaded = load(kernel, None, tile, DEFAULT)
    one = Prepared(loaded, choose(loaded, None)[0])
    done = simulate(one, launch, seed=None, limits=DEFAULT, record="all")
    one, output = done.prepared, done.bound.of("P")
    output.data[:] = output.poison  # as before the launch
    output.initialised = np.zeros(len(output.data), np.bool_)
    dimensions = dimensions_of(one.loaded, one.function, one.template)
    compiled = LaunchedKernel(one, dimensions)
    made = compiled.launch(done.geometry, done.bound.arguments, done.bound.symbols, done.launch.dynamic_shared)
    return done, compiled, made


def assert_same_events(done, compiled, made):
    """Each thread has the same events in the same order, and each block the same frames."""
    expected, names = done.recorder.events(), done.recorder.names
    events, own = events_of(compiled, made)
    assert len(events) == len(expected)

    def by_thread(events):
        return np.lexsort((np.arange(len(events)), events.thread, events.block))

    first, second = by_thread(expected), by_thread(events)
    for column in (f.name for f in fields(events) if f.name != "step"):
        one, two = getattr(expected, column)[first], getattr(events, column)[second]
        if column in ("array", "to_array"):
            one = [names[i] if i >= 0 else "" for i in one]
            two = [own[i] if i >= 0 else "" for i in two]
        np.testing.assert_array_equal(one, two, column)
    for block in np.unique(expected.block):
        here = events.where(events.block == block)
        assert frames_of(here) == frames_of(expected.where(expected.block == block))


@pytest.mark.parametrize(("rung", "shape"), RUNGS)
def test_the_log_of_a_rung_has_the_events_of_the_machine(rung, shape):
    text = rung_text(rung, 2, find_semiring("plus_times"), "float32")
    assert_same_events(*recorded(text.text, AtShape(shape, text.grid(shape), text.geometry.block), 2))


@pytest.mark.parametrize("shape", [(3, 3, 3), (5, 4, 6)])
def test_the_log_of_the_lecture_notes_kernel_has_the_events_of_the_machine(shape):
    done, compiled, made = recorded(COURSE, AtShape(shape))
    assert_same_events(done, compiled, made)
    np.testing.assert_array_equal(done.bound.arrays["P"], done.bound.arrays["M"] @ done.bound.arrays["N"])


@pytest.mark.parametrize("name", FILES)
def test_the_log_of_a_kernel_with_a_fault_has_the_events_of_the_machine(name):
    assert_same_events(*recorded(str(KERNELS / f"{name}.cu"), AtShape((3, 3, 3))))


def test_without_its_first_barrier_a_kernel_reads_what_is_not_there_yet():
    done, compiled, made = recorded(str(KERNELS / "wrong/first_barrier_missing.cu"), AtShape((3, 3, 3)))
    events, _ = events_of(compiled, made)
    assert len(events) == len(done.recorder.events())
    first = events.of(events.kind.dtype.type(3), block=0)
    assert np.isnan(first.value[first.thread == 0]).any()  # stored by threads that run later


def test_a_log_that_is_full_says_how_many_entries_it_lost():
    loaded = load(COURSE, None, None, DEFAULT)
    one = Prepared(loaded, choose(loaded, None)[0])
    done = simulate(one, AtShape((3, 3, 3)), seed=None, limits=DEFAULT)
    dimensions = dimensions_of(loaded, one.function, one.template)
    small = LaunchedKernel(one, dimensions, entries=100)
    made = small.launch(done.geometry, done.bound.arguments, done.bound.symbols)
    assert (len(made.log), made.lost) == (100, 633)


@pytest.mark.parametrize(
    ("name", "message"), [("vector_loads", "copies whole objects"), ("atomic_product", "calls atomicAdd cannot")]
)
def test_a_kernel_that_stores_what_would_not_be_logged_is_refused(name, message):
    with pytest.raises(KernelError, match=message):
        recorded(str(KERNELS / f"{name}.cu"), AtShape((4, 4, 4)))
