"""Kernels that are proved for every size, run on a card: compute-sanitizer must find nothing in them.

python tests/cuda/proved_under_sanitizer.py --list launches.json    # where z3 is, without a card: the proved kernels
compute-sanitizer --tool memcheck --error-exitcode 9 python tests/cuda/proved_under_sanitizer.py launches.json

The first line runs every launch in the emulator, too, and prints the faults that it sees: racecheck sees shared memory
only. The second line runs on the card, once a tool: memcheck, racecheck, synccheck; each prints its summary.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (1, 2, 15, 16, 17, 31, 32, 33, *range(63, 71))
MUTANTS, SEED = 48, 50


def proved_kernels() -> list[dict[str, Any]]:
    """Rungs, solutions of exercises and proved mutants: text, name and every launch."""
    sys.path[:0] = [str(Path(__file__).parents[1] / folder) for folder in ("support", "emulator/prove")]
    import test_never_proved_hosts
    import test_never_proved_programs

    from mutant_kernels import EXERCISES, LAUNCH, mutant, right_kernels
    from tilewise.emulator.prove.claim import Given
    from tilewise.teaching.trace.rungs import rung_text

    rng, found = random.Random(SEED), []
    solutions = [file.read_text(encoding="utf-8") for file in sorted(EXERCISES.glob("*/solution.cu"))]
    texts: list[tuple[str, Given | None]] = [(t if "<<<" in t else t + LAUNCH, None) for t in solutions]
    texts += [(text, None) for text in right_kernels()[:2]]
    for name in ("naive", "tiled_edges", "coarsened", "register_tiled"):
        rung = rung_text(name, 16, "plus_times", "float32")
        x, y = rung.geometry.block
        texts.append((rung.text, Given((x, y, 1), rung.geometry.rows, rung.geometry.cols)))
    texts += [(mutant(rng.choice(right_kernels()), rng), None) for _ in range(MUTANTS)]
    for tests in (test_never_proved_programs, test_never_proved_hosts):
        texts += [(text, None) for text in tests.RIGHT_ONES.values()]
    for number, (text, given) in enumerate(texts):
        made = launches_of(text, given)
        print(number, "proved" if made else "not proved", flush=True)
        found += [made] if made else []
    return found


def launches_of(text: str, given: Any) -> dict[str, Any] | None:
    """The launches of a kernel at every size, where it is proved; the host's functions are cut off."""
    from tilewise.emulator.check.loading import choose, load
    from tilewise.emulator.check.prepared import Prepared
    from tilewise.emulator.check.simulate import AtShape, requested_setting
    from tilewise.emulator.limits import DEFAULT
    from tilewise.emulator.prove.program import ProgramClaim
    from tilewise.emulator.prove.prove import claims, prove
    from tilewise.errors import TilewiseError

    try:
        loaded = load(text, None, None, DEFAULT)
        prepared = Prepared(loaded, choose(loaded, None)[0])
        if prepared.template or not prove(prepared, DEFAULT, given).proved:
            return None
        claim = next(claims(prepared, DEFAULT, given))
    except TilewiseError:
        return None
    print(*faults_in_the_emulator(claim), sep="\n", end="", flush=True)
    device = re.sub(r"#include.*", "", re.split(r"\n(?:void \w+|int main)\(", text)[0])
    if isinstance(claim, ProgramClaim):
        own = [claim.launch(dict.fromkeys(claim.names, n)) for n in SIZES]
        out = [[None, o.grid, o.block, o.shared, [getattr(a, "bytes", a) for a in o.arguments],
                [hasattr(a, "bytes") for a in o.arguments]] for o in own if o is not None and min(o.grid)]  # fmt: skip
        return {"text": device, "name": prepared.function.short, "launches": out}
    rng = random.Random(1)
    shapes = [(n, n, n) for n in SIZES]
    if not prepared.square():
        shapes += [tuple(rng.choice(SIZES) for _ in range(3)) for _ in SIZES]
    out = []
    for m, k, n in shapes:
        blocks, threads = None, None
        if given is not None:
            blocks, threads = (-(-n // given.cols), -(-m // given.rows), 1), given.block
        done = requested_setting(prepared, AtShape((m, k, n), blocks, threads), 0, DEFAULT, True)
        given_arguments = []
        for parameter in prepared.function.parameters:
            role = next((r for r, v in prepared.matrices.items() if v.name == parameter.name), None)
            given_arguments.append(role or int(done.bound.arguments[parameter.name]))
        geometry = done.geometry
        out.append([(m, k, n), geometry.grid, geometry.block, done.dynamic or 0, given_arguments, []])
    return {"text": device, "name": prepared.function.short, "launches": out}


def faults_in_the_emulator(claim: Any) -> Iterator[str]:
    """Every size the same: faults of what is proved, which values are not."""
    from mutant_kernels import property_of
    from tilewise.emulator.machine.findings import Severity

    for n in SIZES:
        done = claim.run(dict.fromkeys(claim.names, n))
        for fault in done.findings if done is not None else ():
            if fault.severity is Severity.FAULT and property_of(fault.kind, "global"):
                yield f"FAULT at {n}: {fault.message}\n"


def operands(shape: tuple[int, int, int]) -> dict[str, np.ndarray]:
    m, k, n = shape
    rng = np.random.default_rng(m)
    M, N = (rng.integers(0, 9, s).astype(np.float32) for s in ((m, k), (k, n)))
    return {"M": M, "N": N, "P": np.zeros((m, n), np.float32)}


def run(kernels: list[dict[str, Any]]) -> int:
    """Every launch, arrays of exactly their size; how many products are wrong is printed, for it is not claimed."""
    from cuda.bindings import driver
    from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

    device = Device(0)
    device.set_current()
    stream, begin, count, wrong = device.create_stream(), time.monotonic(), 0, 0

    def called(answer: tuple[object, ...]) -> object:
        if int(answer[0]) != 0:
            raise RuntimeError(f"the driver says {answer[0]}")
        return answer[1] if len(answer) > 1 else None

    for kernel in kernels:
        options = ProgramOptions(arch=f"sm_{device.arch}", lineinfo=True)
        text = f'#define INFINITY __int_as_float(0x7f800000)\nextern "C" {{\n{kernel["text"]}\n}}'
        program = Program(text, "c++", options)
        function = program.compile("cubin").get_kernel(kernel["name"])
        for shape, grid, block, shared, arguments, arrays in kernel["launches"]:
            data = operands(shape) if shape is not None else {}
            for i in (i for i, is_array in enumerate(arrays) if is_array):
                data[f"{i}"], arguments[i] = np.ones(arguments[i] // 4, np.float32), f"{i}"
            places = {name: called(driver.cuMemAlloc(a.nbytes)) for name, a in data.items()}
            for name, a in data.items():
                called(driver.cuMemcpyHtoD(places[name], a.ctypes.data, a.nbytes))
            config = LaunchConfig(grid=tuple(grid), block=tuple(block), shmem_size=shared)
            passed = [np.intp(int(places[a])) if a in places else np.int32(a) for a in arguments]
            launch(stream, config, function, *passed)
            stream.sync()
            for name, a in data.items():
                called(driver.cuMemcpyDtoH(a.ctypes.data, places[name], a.nbytes))
                called(driver.cuMemFree(places[name]))
            count += 1
            wrong += shape is not None and not np.array_equal(data["P"], data["M"] @ data["N"])
    print(f"{len(kernels)} kernels, {count} launches, {time.monotonic() - begin:.1f} s; {wrong} products differ")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--list":
        Path(sys.argv[2]).write_text(json.dumps(proved_kernels(), default=int), encoding="utf-8")
        raise SystemExit(0)
    raise SystemExit(run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
