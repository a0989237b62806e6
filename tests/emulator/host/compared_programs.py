"""Random programs under `tilewise run` and under a compiler, g++ or clang: the same output, the same status.

Both spend most of their time on the standard headers, so a file contains a dozen programs, each in its own namespace
with its own main, called in turn. If the file is refused or its output differs, its programs are run one by one.

    python tests/emulator/host/compared_programs.py COUNT PROCESSES SECONDS [SEED]     counts as a last line of JSON

The environment variable CXX names the compiler: g++, or `python -m ziglang c++`, the clang of the wheel ziglang.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from seeds import next_seed

sys.path.insert(0, str(Path(__file__).parent))

from generated_programs import INCLUDES, Draw

from tilewise.emulator.check import program_child
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.program_report import ANNOUNCED

COMPILER = os.environ.get("CXX", "g++")
FLAGS = ("-x", "c++", "-std=c++17", "-O0", "-fwrapv", "-ffp-contract=off", "-fsigned-char", "-w")
TOGETHER = 12
MARK = "== ended with"


def together(seeds: range) -> str:
    """One file with these programs, each in its namespace; the result of a main is printed after its output."""
    parts = [f"namespace p{seed} {{\n{Draw(seed).body('program')}}}" for seed in seeds]
    calls = [f'    status = p{seed}::program(); printf("{MARK} %d\\n", status);' for seed in seeds]
    return "\n".join([INCLUDES, *parts, "int main() {", "    int status;", *calls, "    return 0;", "}", ""])


MOST_OPEN = 4096  # descriptors to check


def under_compiler(source: Path) -> tuple[str, int]:
    built = source.with_suffix("")
    subprocess.run([*shlex.split(COMPILER), *FLAGS, str(source), "-o", str(built)], check=True)
    real = subprocess.run([str(built)], capture_output=True, timeout=20)
    return real.stdout.decode(), real.returncode


def under_ours(source: Path) -> tuple[str, int, str]:
    """Output, status, and why it did not end by itself; run in a fork of this process."""
    printed = source.with_suffix(".out")
    reader, writer = os.pipe()
    settings = {
        "path": str(source), "name": "./program", "arguments": [], "report": writer, "dump": None,
        "parent": os.getpid(),
        "options": asdict(Options(folder=str(source.parent))), "began": time.monotonic(),
    }  # fmt: skip
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            os.dup2(os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            os.closerange(3, writer)  # a program may open 64 files, and this process may have more open
            os.closerange(writer + 1, MOST_OPEN)
            sys.argv = ["program_child", json.dumps(settings)]
            program_child.main()
        finally:
            os._exit(98)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if not text:
        return "", 4, f"no report, status {os.waitstatus_to_exitcode(status)}"
    report = json.loads(text.removeprefix(ANNOUNCED.decode()))
    wrong = "" if report["ended"] == "exit" else f"{report['ended']}: {report['message']}"
    return printed.read_text(), report["status"] & 255, wrong


def difference(text: str, folder: Path) -> str:
    """'' if output and status agree."""
    source = folder / "compared.cu"
    source.write_text(text)
    real, status = under_compiler(source)
    ours, ours_status, wrong = under_ours(source)
    if wrong:
        return wrong
    if ours_status != status:
        return f"status {ours_status}, compiled {status}"
    if ours != real:
        pairs = zip(ours.splitlines(), real.splitlines(), strict=False)
        line = next(((i, a, b) for i, (a, b) in enumerate(pairs, 1) if a != b), None)
        return f"line {line[0]} of the output is {line[1]!r}, compiled {line[2]!r}" if line else "lines are missing"
    return ""


def compare(seeds: range, folder: Path) -> list[str]:
    """Differences by seed."""
    if not difference(together(seeds), folder):
        return []
    one_by_one = ((seed, difference(Draw(seed).program(), folder)) for seed in seeds)
    found = [f"seed {seed}: {wrong}" for seed, wrong in one_by_one if wrong]
    return found or [f"seeds {seeds.start} to {seeds.stop - 1}: they differ in one file only"]


def _work(jobs: object, until: float, out: object) -> None:
    with tempfile.TemporaryDirectory(prefix="tilewise-compared-") as folder:
        for seeds in iter(jobs.get, None):  # type: ignore[attr-defined]
            late = time.time() > until
            out.put((0, []) if late else (len(seeds), compare(seeds, Path(folder))))  # type: ignore[attr-defined]


def many(count: int, processes: int, seconds: float, first: int) -> tuple[int, list[str]]:
    """How many were compared in the given time, and the differences."""
    jobs: multiprocessing.Queue[range | None] = multiprocessing.Queue()
    out: multiprocessing.Queue[tuple[int, list[str]]] = multiprocessing.Queue()
    parts = [range(at, min(at + TOGETHER, first + count)) for at in range(first, first + count, TOGETHER)]
    for job in (*parts, *[None] * processes):
        jobs.put(job)
    workers = [multiprocessing.Process(target=_work, args=(jobs, time.time() + seconds, out)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    results = [out.get() for _ in parts]
    for worker in workers:
        worker.join()
    return sum(n for n, _ in results), [line for _, found in results for line in found]


if __name__ == "__main__":
    wanted, processes = (int(word) for word in sys.argv[1:3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else next_seed() % (1 << 30)
    began = time.time()
    compared, differing = many(wanted, processes, float(sys.argv[3]), seed)
    for line in differing:
        print(line)
    used = os.times()
    print(json.dumps({
        "seed": seed, "compared": compared, "differ": len(differing), "seconds": round(time.time() - began, 1),
        "cpu_seconds": round(sum(used[:4]), 1),
    }))  # fmt: skip
    sys.exit(1 if differing or compared < wanted else 0)
