"""Kernels built ahead of time: a dtype's whole set by `tilewise warm`, or in the background after a first call.

`python -m tilewise.planning.precompile SEMIRING KIND ARCH` is the background process; it ends at EOF of its input.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from threading import Lock, Thread
from typing import Any

from tilewise.algebra.builtin import SEMIRINGS, find_semiring, is_plus_times
from tilewise.algebra.dtypes import dtype_named
from tilewise.algebra.semiring import Semiring
from tilewise.backends.cuda.builders import build, workers_for
from tilewise.backends.cuda.bundle import packed
from tilewise.backends.cuda.bundles import holds_set, is_kept, keep
from tilewise.backends.cuda.compile import compile_source, missing, policy, prefetched
from tilewise.backends.cuda.device import arch_of
from tilewise.backends.cuda.launcher import Launcher
from tilewise.backends.cuda.loading import is_loading, kernel_names, load_in_background
from tilewise.core.epilogue import Epilogue
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Groups, Problem, problem_of_shape
from tilewise.errors import UsageError
from tilewise.kernels.choosing import ranked_plans
from tilewise.kernels.cross_entropy.text import render_cross_entropy, render_scaled
from tilewise.kernels.kernel_set import kernel_set
from tilewise.kernels.keys import KernelKey, text_of
from tilewise.kernels.recipes import recipe_of
from tilewise.system.parent import end_with_input
from tilewise.system.resources import environment

USUAL = ("bfloat16", "float16", "float32", "tf32", "float64")
Progress = Callable[[str, int, int], None]  # a kind, the number of its kernels that are built, and of all of them


@dataclass(frozen=True)
class Warmed:
    """The result for one dtype."""

    kind: str
    arch: str
    kernels: int  # of the set
    built: int  # those that were missing
    bytes: int  # of machine code built
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def warm(
    semiring: str | Semiring = "plus_times",
    dtype: Any = None,
    *,
    device: str = "cuda",
    arch: str | None = None,
    groups: bool = False,
    layers: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> list[Warmed]:
    """Build every kernel that products over a semiring may need, with all cores, into the cache on disk.

    dtype: one, or several ("bfloat16", "bf16,tf32", np.float64); all of PyTorch's usual ones where it is left out.
    arch: build for a card that is not here, "sm_90a" say; else for `device`.
    groups: the kernels of `tw.grouped_matmul`, too.
    layers: those of a model's layers, too: products with a bias, and the loss that `tw.torch.accelerate()` takes.

    After it no product of that dtype waits for a compiler, whatever its shape, layout and strides, and none in this
    process for its kernel to be loaded (those of your own semirings are loaded as they are met). Products with other
    epilogues, with return_arg, and stacks that are added onto still compile when they are first met.

    >>> len(tw.warm("min_plus", "float32"))  # with a card
    1
    """
    from tilewise.backends.cuda.device import full_name

    ring = find_semiring(semiring)
    kinds = kinds_of(dtype, is_plus_times(ring))
    machine = _machine(device, arch)
    made = []
    for kind in kinds:
        problem = problem_of_kind(ring, kind)
        texts = kernel_set(problem, machine)
        if groups:
            texts += kernel_set(replace(problem, groups=Groups(1)), machine)
        if layers:
            texts += layer_set(problem, machine)
        texts = tuple(dict.fromkeys(texts))
        kept_as = kind if ring is SEMIRINGS["plus_times"] else f"{kind} {ring.name}"
        made.append(_warmed(texts, kind, machine, workers, progress, kept_as))
        if arch is None:
            load_in_background(kept_as, full_name(device), again=True).join()
    return made


def layer_set(problem: Problem, machine: Machine) -> tuple[str, ...]:
    """The texts of a model's layers besides bare products: with a bias, and the cross entropy."""
    texts = kernel_set(replace(problem, epilogue=Epilogue(bias=problem.dtype)), machine)
    if problem.dtype.name not in ("bfloat16", "float16", "float32"):
        return texts
    return (*texts, render_cross_entropy.key(problem.dtype), render_scaled.key(problem.dtype))


def kinds_of(dtype: Any, ordinary: bool = True) -> tuple[str, ...]:
    """The names of dtypes, tf32 among them, as `problem_of_kind` takes them."""
    if dtype is None:
        return USUAL if ordinary else ("float32",)
    if not isinstance(dtype, str):
        from tilewise.algebra.dtypes import dtype_given

        return (dtype_given(dtype).name,)
    names = [name.strip() for name in dtype.split(",") if name.strip()]
    if not names:
        raise UsageError(f"dtype={dtype!r} names none: bf16, fp16, fp32, tf32, fp64, or NumPy's names")
    return tuple(dict.fromkeys("tf32" if name == "tf32" else dtype_named(name).name for name in names))


def problem_of_kind(ring: Semiring, kind: str) -> Problem:
    """A representative problem of its kind."""
    tf32 = kind == "tf32"
    return problem_of_shape(8, 8, 8, "float32" if tf32 else kind, ring, precision="tf32" if tf32 else "high")


def _machine(device: str, arch: str | None) -> Machine:
    from tilewise.backends.cuda.device import describe, full_name, machine_of_arch

    return machine_of_arch(arch) if arch is not None else describe(full_name(device))


def _warmed(
    texts: Sequence[str], kind: str, machine: Machine, workers: int | None, progress: Progress | None, kept_as: str
) -> Warmed:
    start, sizes, collector = time.perf_counter(), list[int](), _Collector(kept_as, machine.arch)
    lacking = missing(texts, machine.arch)

    def done(text: str, nbytes: int) -> None:
        sizes.append(nbytes)
        collector.add(text)
        if progress is not None:
            progress(kind, len(texts) - len(lacking) + len(sizes), len(texts))

    if progress is not None:
        progress(kind, len(texts) - len(lacking), len(texts))
    if lacking:
        build(lacking, machine.arch, workers_for(len(lacking), workers), done)
    collector.write(texts)
    return Warmed(kind, machine.arch, len(texts), len(lacking), sum(sizes), time.perf_counter() - start)


class _Collector:
    """Collects the kernels of a kind for a bundle while others are being compiled."""

    def __init__(self, kind: str, arch: str) -> None:
        self._kind, self._arch = kind, arch
        self._built: dict[str, tuple[bytes, list[str]]] = {}

    def add(self, text: str) -> None:
        """Add a kernel that is built."""
        if text.__class__ is KernelKey:
            self._built[text] = packed(compile_source(text, self._arch)), kernel_names(text_of(text))

    def write(self, texts: Iterable[str]) -> None:
        """Write the bundle, including kernels that were built earlier."""
        named = [text for text in texts if text.__class__ is KernelKey]
        if not named or is_kept(self._kind, named, self._arch):
            return
        for text in named:
            if text not in self._built:
                self.add(text)
        keep(self._kind, self._built, self._arch)


def laid_out(plan: Plan, device: str, scales: Any, spans: dict[str, tuple[int, int]]) -> Launcher:
    """A plan's launcher, its kernels built and loaded; starts loading the dtype's set."""
    recipe = recipe_of(plan, scales)
    build_missing(recipe.sources, plan.problem, arch_of(device))
    made = Launcher(recipe, device, spans)
    preload(plan.problem, device)
    return made


# In the background of a first call


SEVERAL = 20  # shapes: loading a whole set takes 0.06 s of a process, and saves 0.2 ms for each new shape
PRELOADS = {"auto": SEVERAL, "0": 0, "1": 1}  # TILEWISE_PRELOAD
_met: dict[tuple[str, str], int] = {}
_starting = Lock()
_started: set[tuple[str, str]] = set()
_running: list[subprocess.Popen[bytes]] = []


def build_missing(sources: Iterable[str], problem: Problem, arch: str) -> None:
    """Build a call's missing kernels in parallel; another process builds the rest of their dtype's set."""
    lacking = [source for source in sources if not prefetched(source, arch)]
    if not lacking:
        return
    build_rest(problem, arch)
    build(lacking, arch, len(lacking), lambda *_: None, allowed=False)


def _kind(problem: Problem) -> str | None:
    """The kind of a problem, as `problem_of_kind` takes it; None for problems without a set."""
    alike = problem.dtype_m == problem.dtype_n == problem.dtype
    if not alike or problem.semiring is not SEMIRINGS["plus_times"]:
        return None
    return "tf32" if problem.precision == "tf32" and problem.dtype.name == "float32" else problem.dtype.name


def preload(problem: Problem, device: str) -> None:
    """Start loading the built kernels of a dtype's set onto the card, once several shapes were multiplied."""
    kind = _kind(problem)
    if kind is None or is_loading(kind, device) or not (shapes := preloads()):
        return
    met = _met[kind, device] = _met.get((kind, device), 0) + 1
    if met >= shapes and holds_set(kind, arch_of(device)):
        load_in_background(kind, device)


def preloads() -> int:
    """TILEWISE_PRELOAD: after how many shapes of a dtype its set is loaded: `auto` (several), 1, or 0 (never)."""
    value = os.environ.get("TILEWISE_PRELOAD") or "auto"
    if value not in PRELOADS:
        raise UsageError(f"TILEWISE_PRELOAD={value!r} is not known; known are {', '.join(PRELOADS)}")
    return PRELOADS[value]


def build_rest(problem: Problem, arch: str) -> bool:
    """Start building the rest of a dtype's set in a background process, once; whether this call started it."""
    kind = _kind(problem)
    if policy() != "auto" or kind is None:
        return False
    with _starting:
        if (kind, arch) in _started:
            return False
        _started.add((kind, arch))
    command = [sys.executable, "-m", "tilewise.planning.precompile", "plus_times", kind, arch]
    quiet = subprocess.DEVNULL
    try:
        made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, env=environment())
    except OSError:
        return False  # without a background process, kernels are compiled when they are needed
    _running.append(made)
    return True


@atexit.register
def _close_builders() -> None:
    """Close the builders' standard input, so that they end with this process."""
    for process in _running:
        if process.stdin is not None:
            process.stdin.close()
        process.returncode = process.poll() or 0  # not waited for


def built_alternative(problem: Problem, machine: Machine) -> Plan | None:
    """With TILEWISE_WAIT=0: the best plan whose kernels are all built, while the very best has missing ones; None where
    there is no such plan, or nothing is missing."""
    plans = ranked_plans(problem, machine)
    if not plans or not missing(recipe_of(plans[0]).sources, machine.arch):
        return None
    if not build_rest(problem, machine.arch):
        _build_in_thread(recipe_of(plans[0]).sources, machine.arch)
    return next((plan for plan in plans[1:] if not missing(recipe_of(plan).sources, machine.arch)), None)


def _build_in_thread(sources: Iterable[str], arch: str) -> None:
    lacking = missing(sources, arch)
    Thread(target=lambda: [compile_source(source, arch) for source in lacking], daemon=True).start()


def waits() -> bool:
    """TILEWISE_WAIT: with 0 a call whose kernels are not built runs by other kernels, whose bits may differ."""
    value = os.environ.get("TILEWISE_WAIT") or "1"
    if value not in ("0", "1"):
        raise UsageError(f"TILEWISE_WAIT={value!r} must be 0 or 1")
    return value == "1"


def main() -> None:
    """The background process of a first call."""
    from tilewise.backends.cuda.device import machine_of_arch

    ring, kind, arch = sys.argv[1:]

    end_with_input()  # not PR_SET_PDEATHSIG: that fires when the first call's thread ends
    texts = kernel_set(problem_of_kind(find_semiring(ring), kind), machine_of_arch(arch))
    lacking, collector = missing(texts, arch), _Collector(kind, arch)
    if hasattr(os, "nice"):
        os.nice(10)
    build(lacking, arch, max(1, workers_for(len(lacking)) - 1), lambda text, _: collector.add(text))
    collector.write(texts)


if __name__ == "__main__":
    main()
