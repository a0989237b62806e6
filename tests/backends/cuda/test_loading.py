"""Kernels are loaded once, by a call or behind the first one, and no call waits for one that is loaded."""

from __future__ import annotations

import random
from threading import Event
from types import SimpleNamespace

import pytest

from seeds import next_seed
from tilewise.backends.cuda import loading
from tilewise.backends.cuda.device import machine_of_arch
from tilewise.core.problem import problem_of_shape
from tilewise.core.recipe import Launch
from tilewise.errors import UsageError
from tilewise.kernels.keys import text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.planning import precompile as warming
from tilewise.planning.choose import make_plan

TEXTS = [f'extern "C" __global__ void __launch_bounds__(32 * (2 + {i}), 1) k{i}(int x)\n{{\n}}\n' for i in range(4)]


@pytest.fixture
def card(monkeypatch):
    """A stub of the driver: the names that were loaded, in order."""
    made = []

    def load(code, name, device):
        made.append(name)
        return SimpleNamespace(handle=len(made))

    driver = SimpleNamespace(cuKernelGetFunction=lambda handle: (0, handle))
    library = SimpleNamespace(cuThreadExchangeStreamCaptureMode=lambda mode: made.append(f"mode {mode._obj.value}"))
    monkeypatch.setattr(loading, "load_kernel", load)
    monkeypatch.setattr(loading, "driver", lambda: driver)
    monkeypatch.setattr(loading, "driver_library", lambda: library)
    monkeypatch.setattr(loading, "make_current", lambda device: None)
    monkeypatch.setattr(loading, "arch_of", lambda device: "sm_90a")
    monkeypatch.setattr(loading, "compile_source", lambda text, arch: b"code")
    monkeypatch.setattr(loading, "machine_code", lambda text, arch: None if text == TEXTS[1] else b"code")
    monkeypatch.setattr(loading, "set_of", lambda kind, arch: [(text, loading.kernel_names(text)) for text in TEXTS])
    for held in ("_functions", "_kernels", "_threads", "_shared_limits"):
        monkeypatch.setattr(loading, held, {})
    return made


def test_a_set_is_loaded_once_and_what_is_not_built_is_left(card):
    for _ in range(2):
        loading.load_in_background("some", "cuda:0").join()
    assert card == ["mode 2", "k0", "k2", "k3"], "relaxed: another thread may be capturing a graph"
    loading.kernel_function(TEXTS[2], "k2", "cuda:0")
    assert len(card) == 4, "it was there"
    loading.kernel_function(TEXTS[1], "k1", "cuda:0")
    loading.load_in_background("some", "cuda:0", again=True).join()
    assert card[4:] == ["k1", "mode 2"]


def test_a_function_is_never_allowed_less_than_before(card, monkeypatch):
    """One whose shared memory goes by the shape: launchers that are kept need what they were made with."""
    allowed = {}
    driver = SimpleNamespace(
        cuKernelGetFunction=lambda handle: (0, handle),
        cuFuncSetAttribute=lambda handle, attribute, value: (allowed.update({handle: value}) or 0,),
        CUfunction_attribute=SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="shared"),
    )
    monkeypatch.setattr(loading, "driver", lambda: driver)
    for shared_bytes in (60_000, 100_000, 70_000, 60_000):
        handle = loading.kernel_function(TEXTS[0], "k0", "cuda:0", shared_bytes).handle
    assert allowed == {handle: 100_000}


def test_no_thread_waits_for_a_kernel_that_is_loaded(card, monkeypatch):
    loading.kernel_function(TEXTS[0], "k0", "cuda:0")
    reached, go_on = Event(), Event()

    def slow(code, name, device):
        reached.set()
        go_on.wait(10)
        return SimpleNamespace(handle=9)

    monkeypatch.setattr(loading, "load_kernel", slow)
    thread = loading.load_in_background("slow", "cuda:0")
    assert reached.wait(10)
    assert loading.kernel_function(TEXTS[0], "k0", "cuda:0").handle == 1
    go_on.set()
    thread.join()


def test_what_fails_behind_a_call_is_left_to_the_call_that_needs_it(card, monkeypatch):
    def refused(code, name, device):
        raise RuntimeError("no room")

    monkeypatch.setattr(loading, "load_kernel", refused)
    loading.load_in_background("refused", "cuda:0").join()
    with pytest.raises(RuntimeError, match="no room"):
        loading.kernel_function(TEXTS[0], "k0", "cuda:0")


def test_the_kernels_of_a_text_are_found_in_it():
    seed = next_seed()
    print("seed", seed)
    rng, machine = random.Random(seed), machine_of_arch("sm_90a")
    for _ in range(40):
        shape = [rng.choice((1, 8, 100, 1000, 4096)) + rng.randrange(3) for _ in range(3)]
        kind = rng.choice(("bfloat16", "float32", "float64", "tf32"))
        dtype, precision = ("float32", "tf32") if kind == "tf32" else (kind, "high")
        plan = make_plan(problem_of_shape(*shape, dtype, precision=precision), machine)
        for step in recipe_of(plan).steps:
            if isinstance(step, Launch):
                assert step.name in loading.kernel_names(text_of(step.source)), (seed, shape, kind)


def test_every_text_of_a_set_has_a_kernel_that_is_found():
    machine = machine_of_arch("sm_90a")
    for kind in warming.USUAL:
        texts = warming.kernel_set(warming.problem_of_kind(warming.SEMIRINGS["plus_times"], kind), machine)
        assert not [text for text in texts if not loading.kernel_names(text_of(text))], kind


def test_the_set_of_a_call_is_loaded_behind_it_if_that_is_wanted(card, monkeypatch):
    problem = problem_of_shape(8, 8, 8)
    warming.preload(problem_of_shape(8, 8, 8, "float32", "min_plus"), "cuda:0")
    monkeypatch.setattr(warming, "_met", {})
    monkeypatch.setattr(warming, "arch_of", lambda device: "sm_90a")
    built = []
    monkeypatch.setattr(warming, "holds_set", lambda kind, arch: bool(built))
    monkeypatch.setenv("TILEWISE_PRELOAD", "0")
    for _ in range(2 * warming.SEVERAL):
        warming.preload(problem, "cuda:0")
    monkeypatch.delenv("TILEWISE_PRELOAD")
    for _ in range(warming.SEVERAL - 1):
        warming.preload(problem, "cuda:0")
    built.append("float32")
    assert loading._threads == {}
    warming.preload(problem_of_shape(8, 8, 8, "float64"), "cuda:0")
    assert loading._threads == {}, "one shape of float64"
    warming.preload(problem, "cuda:0")
    loading._threads.pop(("float32", "cuda:0")).join()
    assert card == ["mode 2", "k0", "k2", "k3"]
    for held in (card, loading._kernels, warming._met):
        held.clear()
    monkeypatch.setenv("TILEWISE_PRELOAD", "often")
    with pytest.raises(UsageError, match="TILEWISE_PRELOAD='often' is not known; known are auto, 0, 1"):
        warming.preload(problem, "cuda:0")
    monkeypatch.setenv("TILEWISE_PRELOAD", "1")
    for _ in range(2):
        warming.preload(problem, "cuda:0")
        loading._threads["float32", "cuda:0"].join()
    assert card[1:] == ["k0", "k2", "k3"], "once"


def test_whoever_multiplies_meanwhile_has_the_interpreter_for_most_of_the_time(card, monkeypatch):
    """Behind a kernel comes a rest of thrice its time; who waits for all of them has them without one."""
    rests = []
    monkeypatch.setattr(loading._stopping, "wait", lambda seconds: rests.append(seconds) or False)
    loading.load_in_background("all", "cuda:0").join()
    assert len(rests) == len(TEXTS)
    assert min(rests) > 0
    monkeypatch.setattr(loading, "perf_counter", iter(range(100)).__next__)
    loading.load_in_background("timed", "cuda:0").join()
    assert rests[len(TEXTS) :] == [3] * len(TEXTS)
    del rests[len(TEXTS) :]
    loading.load_in_background("all", "cuda:0", again=True).join()
    assert rests[len(TEXTS) :] == [0.0] * len(TEXTS)


def test_loading_ends_with_the_process(card, monkeypatch):
    monkeypatch.setattr(loading, "_stopping", Event())
    loading._stopping.set()
    loading.load_in_background("some", "cuda:0").join()
    assert card == ["mode 2", "k0"], "the one that was started"
