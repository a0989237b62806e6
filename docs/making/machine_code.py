"""The machine code of every kernel in the GPU suites at two commits, compared function by function.

`python docs/making/machine_code.py BEFORE [AFTER] [--arch sm_90a]` renders what each suite would run on an H200, at
both commits in separate work trees, compiles every text once with NVRTC and compares the code sections. No GPU is
needed. Where a later plan chooses another kernel, the earlier one is requested by name and compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RENAMED = {"tensor_cores": "wgmma_half"}  # former kernel names
Case = dict[str, Any]


def cases() -> Iterator[Case]:
    """What the suites `shapes`, `dtypes`, `mma`, `semirings`, `ladder` and `tiles` multiply."""
    from tilewise.bench import card_dtypes, card_mma, card_semirings, card_shapes
    from tilewise.kernels.ladder.model import LADDER

    for case in card_shapes.CASES:
        for dtype in ("bfloat16", "float16"):
            yield {"suite": "shapes", "shape": case.shape, "layouts": case.layouts, "dtype": dtype}
    kinds = {
        "float32": ("float32", {}), "tf32": ("float32", {"precision": "tf32"}),
        "int8 to int32": ("int8", {"wanted": "int32"}), "float8 to bfloat16": ("float8_e4m3fn", {"wanted": "bfloat16"}),
    }  # fmt: skip
    for kind, (dtype, how) in kinds.items():
        for case in card_dtypes.CASES[kind]:
            yield {"suite": "dtypes", "shape": case.shape, "layouts": case.layouts, "dtype": dtype, **how}
    for case in card_mma.DOUBLES:
        yield {"suite": "mma", "shape": case.shape, "layouts": case.layouts, "dtype": "float64"}
    for size in card_mma.HALVES:
        yield {"suite": "mma", "shape": (size,) * 3, "dtype": "float16", "kernel": "mma_sync"}
    for ring, dtype, known, size in card_semirings.CASES:
        for side in (size, size + 1):
            promised = known == card_semirings.PROMISED
            yield {
                "suite": "semirings",
                "shape": (side,) * 3,
                "dtype": dtype,
                "semiring": ring,
                "nonnegative": promised,
            }
    for shape in (*card_semirings.SGEMM_SHAPES, *card_semirings.SKINNY):
        yield {"suite": "semirings", "shape": shape, "dtype": "float32", "precision": "ieee"}
    for name, rung in LADDER.items():
        for tile in (2, 4, 8, 16, 32):
            if tile <= rung.max_tile:
                yield {"suite": "ladder", "shape": (1024,) * 3, "dtype": "float32", "kernel": name, "tile": tile}


def rendered(case: Case, kernel: str | None = None) -> dict[str, Any]:
    """The kernel that this tree plans for a case, and the texts it would launch; or why there is none."""
    from dataclasses import replace

    from tilewise.algebra.dtypes import FLOAT8, dtype_named
    from tilewise.core.machine import KNOWN_CARDS
    from tilewise.core.problem import problem_of_shape
    from tilewise.planning.choose import make_plan

    (m, k, n), layouts = case["shape"], case.get("layouts", "NN")
    how = {name: case[name] for name in ("precision", "nonnegative") if name in case}
    try:
        dtype = FLOAT8.get(case["dtype"], case["dtype"])
        problem = problem_of_shape(m, k, n, dtype, case.get("semiring", "plus_times"), **how)
        if "wanted" in case:
            problem = replace(problem, wanted=dtype_named(case["wanted"]))
        if layouts[0] == "T":
            problem = replace(problem, layout_m=replace(problem.layout_m, row=1, col=m))
        if layouts[1] == "T":
            problem = replace(problem, layout_n=replace(problem.layout_n, row=1, col=k))
        plan = make_plan(problem, KNOWN_CARDS["h200"], kernel or case.get("kernel"), case.get("tile"))
        return {"kernel": plan.kernel, "texts": _texts(plan)}
    except Exception as error:
        return {"kernel": f"{type(error).__name__}: {error}", "texts": []}


def _texts(plan: Any) -> list[str]:
    try:
        from tilewise.kernels.detours import recipe_of
    except ImportError:  # before there were families
        from tilewise.kernels.source import source_of  # type: ignore[import-not-found]

        return [source_of(plan)]
    return list(recipe_of(plan).sources)


def rendered_at(commit: str, requested: list[Case]) -> list[dict[str, Any]]:
    """`rendered` of every case by the code of a commit, in a separate process and work tree."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, commit], cwd=ROOT, check=True)
        try:
            environment = {
                **os.environ,
                "PYTHONPATH": str(tree / "src"),
                "TILEWISE_CACHE_DIR": str(Path(folder) / "cache"),
            }
            made = subprocess.run(
                [sys.executable, __file__, "--render"],
                input=json.dumps(requested), env=environment, cwd=tree, capture_output=True, text=True, check=True,
            )  # fmt: skip
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)
    return list(json.loads(made.stdout))


def functions(cubin: bytes) -> dict[str, str]:
    """The digest of every function's code: the sections .text.NAME of an ELF file."""
    (at,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, at + size * i) for i in range(count)]
    strings = sections[names][4]
    found = {}
    for name, _, _, _, offset, length in sections:
        start = strings + name
        label = cubin[start : cubin.index(0, start)].decode()
        if label.startswith(".text."):
            found[label[6:]] = hashlib.sha256(cubin[offset : offset + length]).hexdigest()[:16]
    return found


class Compiler:
    """NVRTC, each text once; cached on disk, so that an interrupted run resumes."""

    def __init__(self, arch: str, folder: Path) -> None:
        self.arch, self.folder = arch, folder
        folder.mkdir(parents=True, exist_ok=True)

    def code(self, text: str) -> dict[str, str]:
        place = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}-{self.arch}.json"
        if not place.exists():
            from cuda.core import Program, ProgramOptions

            made = Program(text, "c++", ProgramOptions(arch=self.arch, std="c++17")).compile("cubin").code
            place.write_text(json.dumps(functions(bytes(made))))
        return dict(json.loads(place.read_text()))


def compared(case: Case, before: dict[str, Any], after: dict[str, Any], compiler: Compiler) -> str:
    """ "" where every function of the earlier text is among the later ones; else what differs."""
    if not before["texts"] or not after["texts"]:
        return f"{before['kernel']} → {after['kernel']}: nothing to compare"
    if set(before["texts"]) <= set(after["texts"]):
        return ""
    later = {digest: name for text in after["texts"] for name, digest in compiler.code(text).items()}
    earlier = {name: digest for text in before["texts"] for name, digest in compiler.code(text).items()}
    return ", ".join(name for name, digest in earlier.items() if digest not in later)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("before", nargs="?")
    options.add_argument("after", nargs="?", default="HEAD")
    options.add_argument("--arch", default="sm_90a")
    options.add_argument("--kept", type=Path, default=Path(tempfile.gettempdir()) / "tilewise-machine-code")
    options.add_argument("--render", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.render:
        print(json.dumps([rendered(case, case.get("pin")) for case in json.load(sys.stdin)]))
        return
    requested = list(cases())
    before, after = rendered_at(given.before, requested), rendered_at(given.after, requested)
    for old in before:
        old["kernel"] = RENAMED.get(old["kernel"], old["kernel"])
    pinned = rendered_at(
        given.after, [{**case, "pin": old["kernel"]} for case, old in zip(requested, before, strict=True)]
    )
    compiler, same = Compiler(given.arch, given.kept), 0
    print("| suite | product | before | now chosen | functions whose code differs, same kernel requested |")
    print("| --- | --- | --- | --- | --- |")
    for case, old, new, pin in zip(requested, before, after, pinned, strict=True):
        chosen, difference = new["kernel"], compared(case, old, pin, compiler)
        if not difference and chosen == old["kernel"]:
            same += 1
            continue
        what = " ".join(
            str(case[name]) for name in ("dtype", "wanted", "semiring", "precision", "tile") if case.get(name)
        )
        product = f"{'×'.join(map(str, case['shape']))} {case.get('layouts', 'NN')} {what}"
        print(f"| {case['suite']} | {product} | {old['kernel']} | {chosen} | {difference or 'none'} |", flush=True)
    print(f"\n{same} of {len(requested)} products: the same kernel, and the same machine code ({given.arch})")


if __name__ == "__main__":
    main()
