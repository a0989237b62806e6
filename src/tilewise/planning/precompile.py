"""Kernels built ahead of time: a dtype's whole set, and the rest of it in the background of a first call.

`python -m tilewise.planning.precompile SEMIRING KIND ARCH` is the process that builds the rest; it ends at EOF of its
input.
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
from tilewise.backends.cuda.bundles import holds_set, is_kept, keep
from tilewise.backends.cuda.compile import at_hand, compile_source, missing, policy
from tilewise.backends.cuda.device import arch_of
from tilewise.backends.cuda.launcher import Launcher
from tilewise.backends.cuda.loading import is_loading, kernel_names, load_behind
from tilewise.core.epilogue import Epilogue
from tilewise.core.machine import Machine
from tilewise.core.plan import Plan
from tilewise.core.problem import Groups, Problem, problem_of_shape
from tilewise.errors import UsageError
from tilewise.kernels.choosing import plans_in_turn
from tilewise.kernels.cross_entropy.text import render_cross_entropy, render_scaled
from tilewise.kernels.detours import recipe_of
from tilewise.kernels.kernel_set import kernel_set
from tilewise.kernels.keys import Named, words
from tilewise.system.parent import end_with_input
from tilewise.system.resources import environment

USUAL = ("bfloat16", "float16", "float32", "tf32", "float64")
Progress = Callable[[str, int, int], None]  # a kind, how many of its kernels are there, of how many


@dataclass(frozen=True)
class Warmed:
    """What was done for one dtype."""

    kind: str
    arch: str
    kernels: int  # of the set
    built: int  # those that were not there
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
            load_behind(kept_as, full_name(device), again=True).join()
    return made


def layer_set(problem: Problem, machine: Machine) -> tuple[str, ...]:
    """What the layers of a model name beside the products alone: those with a bias, and the loss of many logits."""
    texts = kernel_set(replace(problem, epilogue=Epilogue(bias=problem.dtype)), machine)
    if problem.dtype.name not in ("bfloat16", "float16", "float32"):
        return texts
    return (*texts, render_cross_entropy.named(problem.dtype), render_scaled.named(problem.dtype))


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
    start, sizes, together = time.perf_counter(), list[int](), _Together(kept_as, machine.arch)
    lacking = missing(texts, machine.arch)

    def done(text: str, nbytes: int) -> None:
        sizes.append(nbytes)
        together.add(text)
        if progress is not None:
            progress(kind, len(texts) - len(lacking) + len(sizes), len(texts))

    if progress is not None:
        progress(kind, len(texts) - len(lacking), len(texts))
    if lacking:
        build(lacking, machine.arch, workers_for(len(lacking), workers), done)
    together.keep(texts)
    return Warmed(kind, machine.arch, len(texts), len(lacking), sum(sizes), time.perf_counter() - start)


class _Together:
    """Kernels of a kind, collected for a bundle while others are still compiled."""

    def __init__(self, kind: str, arch: str) -> None:
        self._kind, self._arch = kind, arch
        self._built: dict[str, tuple[bytes, list[str]]] = {}

    def add(self, text: str) -> None:
        """A kernel that is on disk now."""
        if text.__class__ is Named:
            self._built[text] = compile_source(text, self._arch), kernel_names(words(text))

    def keep(self, texts: Iterable[str]) -> None:
        """Write the bundle, with kernels that were built before too."""
        named = [text for text in texts if text.__class__ is Named]
        if not named or is_kept(self._kind, named, self._arch):
            return
        for text in named:
            if text not in self._built:
                self.add(text)
        keep(self._kind, self._built, self._arch)


def laid_out(plan: Plan, device: str, scales: Any, spans: dict[str, tuple[int, int]]) -> Launcher:
    """A plan's launcher, its kernels built and loaded; the rest of the dtype's set is loaded in the background."""
    recipe = recipe_of(plan, scales)
    made_ready(recipe.sources, plan.problem, arch_of(device))
    made = Launcher(recipe, device, spans)
    loaded_behind(plan.problem, device)
    return made


# In the background of a first call


SEVERAL = 20  # shapes: loading a whole set takes a process 0.06 s, and saves each new shape 0.2 ms
PRELOADS = {"auto": SEVERAL, "0": 0, "1": 1}  # TILEWISE_PRELOAD
_met: dict[tuple[str, str], int] = {}
_starting = Lock()
_started: set[tuple[str, str]] = set()
_running: list[subprocess.Popen[bytes]] = []


def made_ready(sources: Iterable[str], problem: Problem, arch: str) -> None:
    """Build a call's missing kernels in parallel; another process builds the rest of their dtype's set."""
    lacking = [source for source in sources if not at_hand(source, arch)]
    if not lacking:
        return
    rest_behind(problem, arch)
    build(lacking, arch, len(lacking), lambda *_: None, allowed=False)


def _kind(problem: Problem) -> str | None:
    """The kind of a problem, as `problem_of_kind` takes it; None where no set is kept for such problems."""
    alike = problem.dtype_m == problem.dtype_n == problem.dtype
    if not alike or problem.semiring is not SEMIRINGS["plus_times"]:
        return None
    return "tf32" if problem.precision == "tf32" and problem.dtype.name == "float32" else problem.dtype.name


def loaded_behind(problem: Problem, device: str) -> None:
    """Start loading what is built of a dtype's set onto the card, once: a process that multiplied
    several shapes is likely to multiply more."""
    kind = _kind(problem)
    if kind is None or is_loading(kind, device) or not (shapes := preloads()):
        return
    met = _met[kind, device] = _met.get((kind, device), 0) + 1
    if met >= shapes and holds_set(kind, arch_of(device)):
        load_behind(kind, device)


def preloads() -> int:
    """TILEWISE_PRELOAD: how many shapes of a dtype are met before its set is loaded: `auto` (several), 1 (one) or 0 (it
    never is)."""
    value = os.environ.get("TILEWISE_PRELOAD") or "auto"
    if value not in PRELOADS:
        raise UsageError(f"TILEWISE_PRELOAD={value!r} is not known; known are {', '.join(PRELOADS)}")
    return PRELOADS[value]


def rest_behind(problem: Problem, arch: str) -> bool:
    """Start building the rest of a dtype's set, once, in a process of its own; whether that was done now."""
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
        return False  # where no process can be started, kernels are compiled one by one as they are met
    _running.append(made)
    return True


@atexit.register
def _let_go() -> None:
    """Builders end with this process, because their standard input does."""
    for process in _running:
        if process.stdin is not None:
            process.stdin.close()
        process.returncode = process.poll() or 0  # it ends by itself; nothing waits for it


def sooner_served(problem: Problem, machine: Machine) -> Plan | None:
    """With TILEWISE_WAIT=0: a plan whose kernels are all built, used while those of the best plan are not; None where
    there is no such plan, or nothing is missing."""
    plans = plans_in_turn(problem, machine)
    if not plans or not missing(recipe_of(plans[0]).sources, machine.arch):
        return None
    if not rest_behind(problem, machine.arch):
        _alone_behind(recipe_of(plans[0]).sources, machine.arch)
    return next((plan for plan in plans[1:] if not missing(recipe_of(plan).sources, machine.arch)), None)


def _alone_behind(sources: Iterable[str], arch: str) -> None:
    lacking = missing(sources, arch)
    Thread(target=lambda: [compile_source(source, arch) for source in lacking], daemon=True).start()


def waits() -> bool:
    """TILEWISE_WAIT: 0 runs a call whose kernels are not built by others that are, whose bits may differ."""
    value = os.environ.get("TILEWISE_WAIT") or "1"
    if value not in ("0", "1"):
        raise UsageError(f"TILEWISE_WAIT={value!r} must be 0 or 1")
    return value == "1"


def main() -> None:
    """The background process of a first call."""
    from tilewise.backends.cuda.device import machine_of_arch

    ring, kind, arch = sys.argv[1:]

    end_with_input()  # not PR_SET_PDEATHSIG: the thread of the first call may end long before the process
    texts = kernel_set(problem_of_kind(find_semiring(ring), kind), machine_of_arch(arch))
    lacking, together = missing(texts, arch), _Together(kind, arch)
    if hasattr(os, "nice"):
        os.nice(10)
    build(lacking, arch, max(1, workers_for(len(lacking)) - 1), lambda text, _: together.add(text))
    together.keep(texts)


if __name__ == "__main__":
    main()
