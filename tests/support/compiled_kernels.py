"""Generated kernels compiled by the installed C++ compiler and run behind the shim; and the same in the interpreter."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np

from small_kernels import BLOCKS, INPUTS, OUT_EACH, OUTPUTS, THREADS, kernel
from tilewise import emulator as simt

COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
FLAGS = ("-std=c++17", "-O0", "-w", "-fwrapv", "-ffp-contract=off", "-fno-fast-math", "-fsigned-char")
SHIM = Path(__file__).with_name("shim.h")
CELLS = THREADS * BLOCKS * OUT_EACH


def inputs(seed):
    rng = np.random.default_rng(seed)
    whole = rng.integers(-(2**31), 2**31, INPUTS)
    whole[::3] = rng.integers(-20, 20, len(whole[::3]))
    natural = rng.integers(0, 2**32, INPUTS)
    natural[::3] = rng.integers(0, 20, len(natural[::3]))
    real = rng.standard_normal(INPUTS) * 10.0 ** rng.integers(-3, 4, INPUTS)
    return [whole.astype(np.int32), natural.astype(np.uint32), real.astype(np.float32)]


def outputs():
    return {name: np.zeros(CELLS, dtype) for name, dtype in OUTPUTS.items()}


def interpreted(text, number, given, checks=False):
    """The outputs, and the findings where they were requested."""
    out = outputs()
    arguments = [*(a.copy() for a in given), *out.values(), np.int32(INPUTS)]
    report = simt.launch(text, f"k{number}", (BLOCKS,), (THREADS,), arguments, checks=checks)
    return out, report.findings


def compiled(numbers, given, folder, seed):
    """The outputs of many kernels, from one file and one run."""
    source = [f'#include "{SHIM}"']
    for number in numbers:
        source += [f"namespace n{number} {{", kernel(seed + number, number), "}"]
    arrays = []
    for name, values in zip(("in_i", "in_u", "in_f"), given, strict=True):
        values_text = ", ".join(f"{v}u" for v in values.view(np.uint32).tolist())
        arrays.append(f"static const unsigned int raw_{name}[] = {{{values_text}}};")
    types = {"int64": "long long", "int32": "int", "float32": "float", "float64": "double"}
    arrays += [f"static {types[dtype]} {name}[{CELLS}];" for name, dtype in OUTPUTS.items()]
    calls = []
    for number in numbers:
        names = ", ".join(OUTPUTS)
        call = f"n{number}::k{number}((const int*)raw_in_i, raw_in_u, (const float*)raw_in_f, {names}, {INPUTS});"
        writes = "".join(f"fwrite({name}, sizeof({name}), 1, stdout);" for name in OUTPUTS)
        calls.append(f"launch({{{BLOCKS}, 1, 1}}, {{{THREADS}, 1, 1}}, [] {{ {call} }}); {writes}")
    source += [*arrays, "int main() {", *calls, "}"]
    path, program = folder / "kernels.cpp", folder / "kernels"
    path.write_text("\n".join(source), encoding="utf-8")
    subprocess.run([COMPILER, *FLAGS, "-o", program, path], check=True)
    raw = subprocess.run([program], check=True, capture_output=True).stdout
    made, at = {}, 0
    for number in numbers:
        made[number] = {}
        for name, dtype in OUTPUTS.items():
            size = CELLS * np.dtype(dtype).itemsize
            made[number][name] = np.frombuffer(raw[at : at + size], dtype)
            at += size
    assert at == len(raw)
    return made


def bits(values):
    """Bit for bit, but that one NaN is as good as another."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
    return values.view(np.uint8)


def same(one, two):
    return all(np.array_equal(bits(one[name]), bits(two[name])) for name in OUTPUTS)
