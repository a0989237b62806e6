"""Whether two versions of the emulator say the same about the same programs.

    python tests/support/goldens.py collect CASES [--mutants 2000] [--seed 1] [FOLDER …]
    python tests/support/goldens.py compare CASES COMMIT [--jobs 2] [--report FILE.json]

`collect` runs the emulator's tests and keeps every program and kernel they hand to `tilewise run` and `tilewise check`,
adds the repository's .cu files and those of the FOLDERs (public programs, say), and draws mutants of the ones that are
right: an operator, a bound, an index, a constant or a barrier changed. `compare` runs each case in a checkout of COMMIT
and in this one, by the two commands' own --json, and lists what differs: exit status, output, and the findings by
(kind, line, variable). Nothing is frozen in the repository: the commit is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0  # a case may take; what takes longer is an outcome as well
MOST_BYTES = 1 << 20  # of a file beside a program that is kept with it
OUTPUT = 2000  # characters of the output that a report shows


# --- cases: a folder each, with case.json and the program's files ---


def keep(folder: Path, command: str, files: dict[str, bytes], arguments: list[str], source: str) -> None:
    """One case, named by its contents, so that a program that twenty tests run is kept once."""
    digest = hashlib.sha256(json.dumps([command, arguments]).encode())
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + files[name])
    home = folder / digest.hexdigest()[:16]
    if home.exists():
        return
    home.mkdir(parents=True)
    for name, data in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(data)
    (home / "case.json").write_text(json.dumps({"command": command, "arguments": arguments, "source": source}))


def beside(path: Path) -> dict[str, bytes]:
    """The program's file and the small ones in its folder, which it may include or read."""
    near = [path, *(p for p in path.parent.iterdir() if p.is_file() and p != path)]
    return {p.name: p.read_bytes() for p in near if p.stat().st_size <= MOST_BYTES}


class Recorder:
    """A pytest plugin: what tests hand to `run_program` and `check` becomes a case. It loads before any test module."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def pytest_configure(self) -> None:
        from tilewise.emulator.host import process
        from tilewise.teaching import trace

        run, check = process.run_program, trace.check

        def recorded_run(path: Any, arguments: Any = None, options: Any = None, **rest: Any) -> Any:
            if Path(path).is_file() and not rest.get("stdin"):
                own = ["--", *arguments] if arguments else []
                defines = [f"-D{name}={value}" for name, value in (options.defines if options else {}).items()]
                keep(self.folder, "run", beside(Path(path)), [Path(path).name, *defines, *own], "tests")
            return run(path, arguments, options, **rest)

        def recorded_check(kernel: Any, **rest: Any) -> Any:
            text = str(kernel)
            if "__global__" in text:
                keep(self.folder, "check", {"kernel.cu": text.encode()}, ["kernel.cu"], "tests")
            elif "\n" not in text and Path(text).is_file():
                keep(self.folder, "check", beside(Path(text)), [Path(text).name], "tests")
            return check(kernel, **rest)

        process.run_program, trace.check = recorded_run, recorded_check  # type: ignore[assignment]


def from_files(folder: Path, paths: list[Path], source: str) -> None:
    for path in paths:
        text = path.read_text("utf-8", errors="replace")
        command = "run" if re.search(r"\bmain\s*\(", text) else "check"
        keep(folder, command, beside(path), [path.name], source)


# --- mutants ---

CHANGES: tuple[tuple[str, str], ...] = (
    (r"__syncthreads\s*\(\s*\)\s*;", ";"),
    (r"<(?![<=])", "<="), (r"<=", "<"), (r"(?<![-<>])>(?![>=])", ">="),
    (r"&&", "||"), (r"\+(?![+=])", "-"), (r"(?<=[\w)\]]) \* (?=[\w(])", " + "),
    (r"threadIdx\.x", "threadIdx.y"), (r"threadIdx\.y", "threadIdx.x"), (r"blockIdx\.x", "blockIdx.y"),
    (r"\b(\d+)\b", r"\g<1>1"), (r"- 1\b", ""), (r"\+ 1\b", ""), (r"= 0(?=[;,])", "= 1"),
    (r"cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost"), (r"cudaMemcpyDeviceToHost", "cudaMemcpyHostToDevice"),
    (r"cudaFree\(\w+\);", ""), (r"\bif \(([^()]*)\)", r"if (!(\1))"),
)  # fmt: skip


def mutant(text: str, rng: random.Random) -> str | None:
    """The text with one change behind its first kernel's opening, or None where the drawn change has no place."""
    pattern, replacement = rng.choice(CHANGES)
    start = text.find("__global__")
    places = [m for m in re.finditer(pattern, text) if m.start() > start >= 0]
    if not places:
        return None
    place = rng.choice(places)
    return text[: place.start()] + place.expand(replacement) + text[place.end() :]


def draw_mutants(folder: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    whole = [case for case in cases(folder) if case[1]["source"] != "mutant"]
    made = 0
    for _ in range(50 * count):
        if made == count or not whole:
            break
        home, case = rng.choice(whole)
        name = case["arguments"][0]
        files = {p.name: p.read_bytes() for p in home.iterdir() if p.name != "case.json" and p.is_file()}
        changed = mutant(files[name].decode("utf-8", "replace"), rng)
        if changed is not None:
            keep(folder, case["command"], {**files, name: changed.encode()}, case["arguments"], "mutant")
            made += 1


def cases(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    return [(p.parent, json.loads(p.read_text())) for p in sorted(folder.glob("*/case.json"))]


def collect(options: argparse.Namespace) -> int:
    import pytest

    folder: Path = options.cases.resolve()
    code = pytest.main(
        ["-q", "-x", "-p", "no:cacheprovider", str(ROOT / "tests/emulator"), *options.pytest],
        plugins=[Recorder(folder)],
    )
    listed = subprocess.run(["git", "ls-files", "*.cu"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    from_files(folder, [ROOT / name for name in listed.splitlines() if "tilewise/kernels" not in name], "repository")
    for given in options.folders:
        from_files(folder, sorted(given.rglob("*.cu")), "public")
    draw_mutants(folder, options.mutants, options.seed)
    print(f"{dict(Counter(case['source'] for _, case in cases(folder)))}, mutants by --seed {options.seed}")
    return int(code)


# --- comparing ---


WORKER = """
import json, os, resource, signal, sys
tree, seconds = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, tree)
from tilewise.cli.main import main
import tilewise.emulator.host.process, tilewise.teaching.trace, tilewise.teaching.trace.sarif
for line in sys.stdin:
    folder, arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.alarm(seconds)
        os.chdir(folder)
        for number, name in ((0, os.devnull), (1, "out"), (2, "err")):
            opened = os.open(os.path.join("..", name) if number else name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened, number)
        sys.argv = ["tilewise", *arguments]
        code = 255
        try:
            code = main()
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code if isinstance(code, int) else code is not None)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Checkout:
    """One version of the package, imported once: each case runs in a fork of that process."""

    def __init__(self, tree: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tree / "src"), str(int(SECONDS))], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"}, cwd=tree,
        )  # fmt: skip

    def outcome(self, home: Path, case: dict[str, Any]) -> dict[str, Any]:
        """What this version says about one case."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copytree(home, Path(scratch) / "case", ignore=shutil.ignore_patterns("case.json"))
            name, *rest = case["arguments"]
            self.process.stdin.write(json.dumps([f"{scratch}/case", [case["command"], name, "--json", *rest]]) + "\n")
            self.process.stdin.flush()
            code = int(self.process.stdout.readline())
            out, err = (
                (Path(scratch) / name).read_text("utf-8", errors="replace").replace(scratch, ".")
                for name in ("out", "err")
            )
        if code == -signal.SIGALRM:
            return {"exit": "took too long"}
        run = case["command"] == "run"
        return {"exit": code, "output": out if run else "", **found(err if run else out)}


def found(text: str) -> dict[str, Any]:
    """Findings as (kind, line, variable), or the first line of what was said instead of a report."""
    start = text.find("{")
    try:
        report = json.loads(text[start:]) if start >= 0 else None
    except ValueError:
        report = None
    if report is None:
        return {"refused": next(iter(text.strip().splitlines()), "")}
    reports = [report, *report.get("runs", []), report.get("program")]
    rows = [
        (f["kind"], f["line"], f.get("array", ""))
        for r in reports
        if isinstance(r, dict)
        for f in r.get("findings", [])
    ]
    return {"findings": sorted(map(list, set(rows)), key=str), "not judged": report.get("not_judged", {})}


def differences(chosen: list[tuple[Path, dict[str, Any]]], trees: tuple[Path, Path]) -> list[dict[str, Any]]:
    old, new = map(Checkout, trees)
    differ = []
    for home, case in chosen:
        before, after = old.outcome(home, case), new.outcome(home, case)
        if before != after:
            differ.append({"case": str(home), **case, "before": before, "after": after})
    return differ


def compare(options: argparse.Namespace) -> int:
    chosen = cases(options.cases.resolve())
    with tempfile.TemporaryDirectory() as scratch:
        old = Path(scratch) / "old"
        subprocess.run(["git", "worktree", "add", "--detach", "-q", str(old), options.commit], cwd=ROOT, check=True)
        try:
            with ThreadPoolExecutor(options.jobs) as pool:
                parts = [chosen[i :: options.jobs] for i in range(options.jobs)]
                differ = [one for part in pool.map(differences, parts, [(old, ROOT)] * options.jobs) for one in part]
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(old)], cwd=ROOT, check=False)
    for one in differ[: options.show]:
        print(f"\n{one['case']} ({one['command']}, {one['source']})")
        for key in sorted(one["before"].keys() | one["after"].keys()):
            before, after = (str(one[when].get(key))[:OUTPUT] for when in ("before", "after"))
            if before != after:
                print(f"  {key}: {before}\n  {' ' * len(key)}→ {after}")
    print(f"{len(chosen)} cases, {len(differ)} differ from {options.commit}")
    if options.report:
        options.report.write_text(json.dumps(differ, indent=1))
    return bool(differ)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("collect")
    one.add_argument("cases", type=Path)
    one.add_argument("folders", type=Path, nargs="*")
    one.add_argument("--mutants", type=int, default=2000)
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--pytest", nargs=argparse.REMAINDER, default=[], help="everything behind it goes to pytest")
    one.set_defaults(run=collect)
    two = commands.add_parser("compare")
    two.add_argument("cases", type=Path)
    two.add_argument("commit")
    two.add_argument("--jobs", type=int, default=os.cpu_count())
    two.add_argument("--show", type=int, default=20, help="differences that are printed")
    two.add_argument("--report", type=Path, help="all of them, as JSON")
    two.set_defaults(run=compare)
    options = parser.parse_args()
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
