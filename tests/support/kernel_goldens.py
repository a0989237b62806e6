"""Whether two versions of the CUDA kernels plan and launch the same, with no card.

    python tests/support/kernel_goldens.py COMMIT [--draws 1000] [--seed 1] [--texts 300] [--cards h200,a100,t4]

Draws problems (dtypes, semirings, layouts, stacks, groups, epilogues, scales) and plans each of them in a checkout of
COMMIT and in this one: the chosen kernel, the order of all kernels that compete, the plan of every kernel requested
by name, a configuration pinned as `tilewise tune` does, and every launch (grid, block, shared memory, arguments).
Where two texts differ in more than comments and spaces, both are compiled by NVRTC and their PTX is compared with
registers, labels and names numbered as they appear; where that differs, the machine code. Nothing is frozen in the
repository: the commit is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "src/tilewise/bench"))  # what is drawn is this version's, whatever it is planned by
PTX_ARCH = {"sm_90a": "compute_90a", **{f"sm_{x}": f"compute_{x}" for x in (75, 80, 86, 89, 90, 100, 120)}}
NUMBERS = ("kernel", "tile", "grid", "geometry", "index", "aligned", "packs", "predicted", "floor", "bound", "passes")
SENTENCES = ("why", "notes", "idea", "cut")  # compared, and listed apart

Record = dict[str, Any]


# --- problems ---


def drawn(rng: random.Random) -> Any:
    """A problem: half of them of the usual dtypes, the others of any dtype, over another semiring, or in groups."""
    from drawn_problems import KINDS, drawn_problem

    from tilewise.algebra.builtin import SEMIRINGS
    from tilewise.algebra.dtypes import DTYPES, FLOAT8, dtype_named
    from tilewise.core.problem import problem_of_shape

    sort = rng.choices(("usual", "dtype", "semiring", "groups"), (6, 2, 3, 2))[0]
    p = drawn_problem(rng, rng.choice(list(KINDS)), rng.choice((64, 1024, 16384)))
    if sort in ("dtype", "semiring"):
        ring = SEMIRINGS["plus_times"] if sort == "dtype" else rng.choice(list(SEMIRINGS.values()))
        every = [*FLOAT8.values(), *(one for one in DTYPES.values() if "longdouble" not in one.name)]
        dtype = rng.choice(every) if rng.random() < 0.7 else dtype_named("float32")
        small = problem_of_shape(8, 8, 8, dtype, ring)
        p = replace(p, dtype_m=small.dtype_m, dtype_n=small.dtype_n, semiring=ring, epilogue=small.epilogue)
        if rng.random() < 0.3:
            p = replace(p, nonnegative=True)
        if rng.random() < 0.15 and ring.selective:
            p = replace(p, return_arg=True)
        if sort == "dtype" and rng.random() < 0.4:
            p = replace(p, requested=dtype_named(rng.choice(("int32", "bfloat16", "float32"))))
        if sort == "dtype" and rng.random() < 0.2:
            p = replace(p, scaled=True)
    if sort == "groups" and not p.stack:
        p = _grouped(rng, p)
    return p


def _grouped(rng: random.Random, p: Any) -> Any:
    """As `tw.grouped_matmul` binds them: groups of rows, or of k."""
    from drawn_problems import stacked

    from tilewise.core.epilogue import PLAIN
    from tilewise.core.problem import Groups, row_major

    count, wide = rng.choice((1, 4, 16, 64)), rng.random() < 0.3
    p = replace(p, accumulate=False, epilogue=PLAIN)
    if rng.random() < 0.7:
        apart = stacked(p.layout_n, max(p.k * abs(p.layout_n.row), p.n * abs(p.layout_n.col)))
        return replace(p, layout_n=apart, groups=Groups(count, "rows", wide))
    of_m, of_n = (stacked(x, 0) for x in (p.layout_m, p.layout_n))
    fresh = row_major(p.m, p.n, (count,))
    return replace(p, stack=(count,), layout_m=of_m, layout_n=of_n, layout_p=fresh, groups=Groups(count, "k", wide))


# --- what one version says: run in a process of its own, with that version on the path ---


class Texts:
    """Kernel texts by the digest of what a compiler sees of them, kept in files."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.known = folder, dict[str, str]()

    def key(self, source: str) -> str:
        if source not in self.known:
            from tilewise.kernels.keys import text_of

            text = text_of(source)
            bare = re.sub(r"\s+", " ", re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL))
            self.known[source] = digest = hashlib.sha256(bare.encode()).hexdigest()[:20]
            place = self.folder / f"{digest}.cu"
            if not place.exists():
                place.write_text(text, "utf-8")
        return self.known[source]


def launches(plan: Any, texts: Texts) -> list[Record]:
    from tilewise.core.recipe import Launch
    from tilewise.kernels.recipes import recipe_of
    from tilewise.kernels.shared.placed import Scales

    recipe = recipe_of(plan, Scales(0.5, 1, 1) if plan.problem.scaled else None)
    made: list[Record] = [{"scratch": recipe.scratch_bytes}]
    for step in recipe.steps:
        if isinstance(step, Launch):
            given = repr((step.grid, step.block, step.arguments, step.shared_bytes, step.overlap, step.cluster))
            made.append({"name": step.name, "text": texts.key(step.source), "given": given})
        else:
            made.append({"given": repr(step)})
    return made


def reported(plan: Any, texts: Texts) -> Record:
    numbers = {name: repr(getattr(plan, name)) for name in NUMBERS}
    return {"plan": numbers, "sentences": [repr(getattr(plan, x)) for x in SENTENCES], "steps": launches(plan, texts)}


def attempt(make: Any, texts: Texts) -> Record:
    try:
        return reported(make(), texts)
    except Exception as error:  # a refusal; or a fault, which the other version should have too
        return {"plan": type(error).__name__, "sentences": [str(error)], "steps": []}


def answers_to(number: int, seed: int, cards: list[str], texts: Texts) -> Record:
    """Everything about one drawn problem."""
    from tilewise.core.machine import KNOWN_CARDS
    from tilewise.core.tuning import table_for
    from tilewise.kernels.choosing import ranked_plans
    from tilewise.kernels.registry import FAMILIES
    from tilewise.planning.choose import make_plan

    rng = random.Random(f"{seed} {number}")
    problem, card = drawn(rng), rng.choice(cards)
    machine = KNOWN_CARDS[card]
    if card == "h200":
        machine = replace(machine, arch="sm_90a", tuned=table_for("NVIDIA H200"))
    answers = {"chosen": attempt(lambda: make_plan(problem, machine), texts)}
    if answers["chosen"]["plan"] == "DtypeError":  # the semiring does not have the dtype
        return {"problem": f"{problem}", "arch": machine.arch, "answers": answers}
    if answers["chosen"]["steps"]:
        turn = ranked_plans(problem, machine)
        answers["in turn"] = {"plan": [(x.kernel, x.predicted) for x in turn], "sentences": [], "steps": []}
    for family in FAMILIES:
        for kernel in family.kernels:
            answers[kernel] = attempt(lambda kernel=kernel: make_plan(problem, machine, kernel), texts)
        kernel = next((name for name in family.kernels if answers[name]["steps"]), "")
        if kernel and not problem.epilogue and number % 4 == 0:
            configs = family.configurations(problem, machine)
            if configs:
                one = configs[int(random.Random(f"{number} {kernel}").random() * len(configs))]
                pinned = attempt(lambda family=family, one=one: family.pinned(problem, machine, one), texts)
                answers[f"{kernel} pinned, of {len(configs)}"] = pinned
    return {"problem": f"{problem} {problem.to_json()} on {card}", "arch": machine.arch, "answers": answers}


def worker(options: argparse.Namespace) -> int:
    texts = Texts(options.folder)
    with (options.folder / f"said.{options.part}").open("w") as out:
        for number in range(options.part, options.draws, options.jobs):
            out.write(json.dumps(answers_to(number, options.seed, options.cards.split(","), texts)) + "\n")
    return 0


def collected(tree: Path, folder: Path, options: argparse.Namespace) -> None:
    """Write what the version in a tree says about all drawn problems."""
    folder.mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "TILEWISE_CACHE_DIR": str(folder / "cache")}
    same = ["--draws", str(options.draws), "--seed", str(options.seed), "--cards", options.cards]
    running = [
        subprocess.Popen(
            [sys.executable, __file__, "worker", *same, "--folder", str(folder), "--part", str(part), "--jobs",
             str(options.jobs)], env=environment, cwd=tree,
        )
        for part in range(options.jobs)
    ]  # fmt: skip
    if sum(one.wait() != 0 for one in running):
        shutil.rmtree(folder)
        raise SystemExit(f"the version in {tree} failed")


def answers(folder: Path, options: argparse.Namespace) -> list[Record]:
    """The same by the problems' numbers."""
    parts = [(folder / f"said.{part}").read_text().splitlines() for part in range(options.jobs)]
    return [json.loads(parts[number % options.jobs][number // options.jobs]) for number in range(options.draws)]


# --- texts that differ ---


def compiled(text: str, arch: str, machine_code: bool) -> bytes:
    """PTX, or a cubin."""
    from cuda.bindings import nvrtc

    name = arch if machine_code else PTX_ARCH[arch]
    _, program = nvrtc.nvrtcCreateProgram(text.encode(), b"kernel.cu", 0, [], [])
    (status,) = nvrtc.nvrtcCompileProgram(program, 2, [b"--gpu-architecture=" + name.encode(), b"--std=c++17"])
    if int(status):
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(f"NVRTC refused a text for {arch}: {log.decode()}")
    _, size = (nvrtc.nvrtcGetCUBINSize if machine_code else nvrtc.nvrtcGetPTXSize)(program)
    code = b" " * size
    (nvrtc.nvrtcGetCUBIN if machine_code else nvrtc.nvrtcGetPTX)(program, code)
    nvrtc.nvrtcDestroyProgram(program)
    return code


NAMES = re.compile(r"%(?:f|r|rd|rs|p|fd|h|hh|b|rq)\d+\b|\$L__\w+|_Z\w+")
COPY = re.compile(r"\s*mov\.\w+ \s*(%\w+), ([^;]*);")


def numbered(ptx: str, entry: str) -> str:
    """PTX without comments and declarations of registers; registers, labels and mangled names by their first use, and
    copies between registers that stand together, none of which reads what another writes, in one order."""
    ptx = re.sub(rf"\b{re.escape(entry)}(?=\b|_param)", "ENTRY", ptx)
    kept = [line for line in ptx.splitlines() if line.strip() and not re.match(r"\s*(//|\.reg |\.version)", line)]
    runs: list[list[str]] = []
    for line in kept:
        if COPY.match(line) and runs and COPY.match(runs[-1][0]):
            runs[-1].append(line)
        else:
            runs.append([line])
    seen = dict[str, str]()

    def by_use(match: re.Match[str]) -> str:
        kind = re.sub(r"\d+$", "", match[0]) if match[0][0] == "%" else "NAME"
        return seen.setdefault(match[0], f"{kind}#{len(seen)}")

    for run in runs:  # what is not copied is numbered first
        if not _are_apart(run):
            NAMES.sub(by_use, "\n".join(run))
    lines = []
    for run in runs:
        made = [NAMES.sub(by_use, line) for line in run]
        lines += sorted(made) if _are_apart(run) else made
    return "\n".join(lines)


def _are_apart(run: list[str]) -> bool:
    copies = [match for line in run if (match := COPY.match(line))]
    written = [copy[1] for copy in copies]
    return len(copies) == len(run) and len(set(written)) == len(written) and not {c[2] for c in copies} & set(written)


def functions(cubin: bytes) -> list[str]:
    """The digest of every function's code: the sections .text.NAME of an ELF file."""
    (at,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, at + size * i) for i in range(count)]
    strings, found = sections[names][4], []
    for name, _, _, _, offset, length in sections:
        start = strings + name
        if cubin[start : cubin.index(0, start)].startswith(b".text."):
            found.append(hashlib.sha256(cubin[offset : offset + length]).hexdigest())
    return sorted(found)


def same_code(pair: tuple[str, str, str, str, str], folders: tuple[Path, Path]) -> str:
    """How two texts compare: "PTX" or "machine code" where that is the same, "" where neither is."""
    *keys, arch, entry_before, entry_after = pair
    texts = [(folder / f"{key}.cu").read_text("utf-8") for folder, key in zip(folders, keys, strict=True)]
    entries = (entry_before, entry_after)
    ptx = [numbered(compiled(t, arch, False).decode(), e) for t, e in zip(texts, entries, strict=True)]
    if ptx[0] == ptx[1]:
        return "PTX"
    one, two = (functions(compiled(text, arch, True)) for text in texts)
    return "machine code" if one == two else ""


# --- comparing ---


def rounded(plan: Any) -> Any:
    """A plan's numbers with its expected seconds to nine digits: sums in another order round otherwise."""
    if isinstance(plan, dict):
        return {**plan, "predicted": f"{float(plan['predicted']):.8e}"}
    return plan if isinstance(plan, str) else [(kernel, f"{seconds:.8e}") for kernel, seconds in plan]


class Differences:
    def __init__(self) -> None:
        self.found: list[str] = []
        self.sentences = Counter[tuple[str, str]]()
        self.pairs: dict[tuple[str, str, str, str, str], str] = {}  # texts to compile, each with a problem that has it
        self.plans = self.launches = 0

    def compare(self, before: Record, after: Record) -> None:
        where = before["problem"]
        if before["problem"] != after["problem"]:
            self.found.append(f"drawn otherwise: {where} → {after['problem']}")
            return
        ours, theirs = after["answers"], before["answers"]
        for name in sorted(theirs.keys() | ours.keys()):
            if name not in ours or name not in theirs:
                self.found.append(f"{name}: {'gone' if name not in ours else 'new'}; {where}")
                continue
            self._answers(f"{name}; {where}", theirs[name], ours[name], before["arch"])

    def _answers(self, where: str, old: Record, new: Record, arch: str) -> None:
        self.plans += 1
        if rounded(old["plan"]) != rounded(new["plan"]):
            self.found.append(f"{where}: {old['plan']} → {new['plan']}")
            return
        for one, two in zip(old["sentences"], new["sentences"], strict=True):
            if one != two:
                self.sentences[one, two] += 1
        if len(old["steps"]) != len(new["steps"]):
            self.found.append(f"{where}: {len(old['steps'])} → {len(new['steps'])} steps")
            return
        for one, two in zip(old["steps"], new["steps"], strict=True):
            self.launches += 1
            if {**one, "text": 0, "name": 0} != {**two, "text": 0, "name": 0}:
                self.found.append(f"{where}: {one} → {two}")
            elif one.get("text") != two.get("text"):
                self.pairs.setdefault((one["text"], two["text"], arch, one["name"], two["name"]), where)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="to compare with")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cards", default="h200,h200,a100,t4", help="one is drawn for each problem")
    parser.add_argument("--texts", type=int, default=300, help="pairs that are compiled, drawn among those that differ")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--show", type=int, default=20, help="differences that are printed")
    parser.add_argument("--keep", type=Path, help="a folder for texts and answers; what it has of COMMIT is used again")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.commit == "worker":
        return worker(options)
    with tempfile.TemporaryDirectory() as scratch:
        return compared(options, options.keep or Path(scratch))


def compared(options: argparse.Namespace, kept: Path) -> int:
    name = f"{options.commit}-{options.draws}-{options.seed}-{options.cards.replace(',', '-')}"
    tree, folders = kept / "tree", (kept / name, kept / "after")
    shutil.rmtree(folders[1], ignore_errors=True)
    if not folders[0].exists():
        subprocess.run(["git", "worktree", "add", "--detach", "-q", str(tree), options.commit], cwd=ROOT, check=True)
        try:
            collected(tree, folders[0], options)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=False)
    collected(ROOT, folders[1], options)
    before, after = (answers(folder, options) for folder in folders)
    seen = Differences()
    for old, new in zip(before, after, strict=True):
        seen.compare(old, new)
    pairs = sorted(seen.pairs)
    random.Random(options.seed).shuffle(pairs)
    chosen, how = pairs[: options.texts], Counter[str]()
    with ThreadPoolExecutor(options.jobs) as pool:
        for pair, same in zip(chosen, pool.map(lambda pair: same_code(pair, folders), chosen), strict=True):
            how[same or "differ"] += 1
            if not same:
                seen.found.append(f"texts {pair}: {seen.pairs[pair]}")
    for (old, new), count in seen.sentences.most_common(options.show):
        print(f"said {count} times: {old}\n  → {new}")
    for one in seen.found[: options.show]:
        print(one)
    print(
        f"{options.draws} problems (seed {options.seed}), {seen.plans} plans, {seen.launches} launches: "
        f"{len(seen.found)} differ from {options.commit}; {len(pairs)} pairs of texts, "
        f"{len(chosen)} compiled: {dict(how)}"
    )
    return bool(seen.found)


if __name__ == "__main__":
    sys.exit(main())
