"""One hostile file through one command, in a process of its own, and everything that must hold for any.

python tests/support/hostile_runs.py FOLDER COUNT SEED SECONDS    so many files at random, or as many as begin within so
                                                                   many seconds; a line of JSON for each
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import resource
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

import hostile
import hostile_programs

COMMANDS = ("check", "trace", "explore", "run")
SLACK = 2.0  # seconds beyond the limit
START = 0.5  # seconds more, that a busy machine may take to start Python
BEYOND = 32 << 20  # bytes that may be taken between two looks at the memory
SHOWN = 20 << 20  # bytes of output that are looked at
FRESH = 100 << 20  # bytes of a process that has only loaded what the commands import
SHARED = 300 << 20  # bytes more, of tests that ran before
FULL = 0.04  # of the files have the limits as they come; the others a second and 1 GiB, which test as much


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str
    wall: float
    cpu: float
    peak: int

    @property
    def seconds(self) -> float:
        """Of the clock or of the processor, whichever is less: other processes of a busy machine do not count."""
        return min(self.wall, self.cpu)


@lru_cache(maxsize=1)
def loaded():
    """Everything that the commands import, before any fork."""
    for name in ("check", "trace", "explore", "run"):
        importlib.import_module(f"tilewise.cli.{name}")
    for name in (
        "tilewise.teaching.trace",
        "tilewise.teaching.page.export",
        "tilewise.teaching.page.variants",
        "tilewise.emulator.multiply",
    ):
        importlib.import_module(name)
    return importlib.import_module("tilewise.cli.main")


def resident():
    """Bytes of this process, which a fork of it has as well: those of tests before this one are not the command's."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def command(*arguments, timeout=120):
    """The command in a fork of this process: everything that starts with a fresh interpreter but its start. Where tests
    before it left so much that a limit would count it, in a fresh interpreter."""
    cli = loaded()
    start, had = time.monotonic(), resident()
    inherited = max(0, had - FRESH)
    anew = inherited > SHARED
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        sys.stderr.flush()
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "w" if n else "r", closefd=False) for n in range(3))
                resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
                sys.argv = ["tilewise", *map(str, arguments)]
                if anew:
                    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
                    os.execv(sys.executable, [sys.executable, "-m", *sys.argv])
                cli.main()
            except SystemExit as end:
                code = end.code or 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        while True:
            done, status, used = os.wait4(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() - start > timeout:
                os.kill(child, 9)
            time.sleep(0.005)
        peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        if not anew:
            peak -= inherited
        elif peak < 1.05 * had:  # the system still counts what was there before the interpreter: its own is less
            peak = 0
        wall = time.monotonic() - start
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(SHOWN).decode(errors="replace"))
    return Ended(os.waitstatus_to_exitcode(status), *texts, wall, used.ru_utime + used.ru_stime, peak)


def source(chance, what):
    """(class, text) for a command, at random."""
    classes = hostile_programs.CLASSES if what == "run" and chance.random() < 0.8 else hostile.CLASSES
    make = chance.choice(classes)
    return make.__name__, make(chance)


def run_one(folder, name, text, what, seconds=None, memory=None):
    """Run it; how it ended, and what is wrong with that, as text, or nothing."""
    path = folder / ("include.cu" if name == "includes" else f"{name}.cu")
    path.write_bytes(text.encode("utf-8", errors="surrogateescape")[: 8 << 20])
    more = ["--no-open", "-o", folder / "page.html"] if what == "explore" else []
    if what == "run":
        more += ["--limit-time", seconds] if seconds else []
        more += ["--limit-memory", memory] if memory else []
    else:
        more += ["--limit", f"seconds={seconds}"] if seconds else []
        more += ["--limit", f"memory={memory}"] if memory else []
    ended = command(what, path, *more)
    return ended, wrong(ended, what, seconds or 20.0, memory or 2 << 30)


def wrong(ended, what, seconds, memory):
    printed = ended.out + ended.err if what != "run" else ended.err  # what a program prints is its own
    found = []
    if ended.code < 0 or (what != "run" and ended.code not in (0, 1, 2, 4)):
        found.append(f"it ended with {ended.code}")
    if ended.seconds > seconds + SLACK + START:
        found.append(f"it took {ended.wall:.1f} s, {ended.cpu:.1f} s of CPU")
    if ended.peak > memory + BEYOND:
        found.append(f"it took {ended.peak >> 20} MiB")
    for text in ("please report it", "Traceback", "Error: "):
        if text in ended.err:
            found.append(f"it printed {text!r}")
    if what != "run" and ended.code not in (0, 1) and not printed.strip():
        found.append("it printed nothing")
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", printed):
        found.append("control characters reached the terminal")
    return f"{'; '.join(found)}: {ended.err[-600:]}" if found else ""


def many(folder, count, seed, seconds):
    chance, end = random.Random(seed), time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > end:
            return
        what = chance.choice(COMMANDS)
        name, text = source(chance, what)
        limits = (None, None) if chance.random() < FULL else (1, 1 << 30)
        ended, found = run_one(folder, name, text, what, *limits)
        if found:
            kept = folder / f"found-{what}-{name}-{seed}-{number}.cu"
            kept.write_bytes(text.encode("utf-8", "surrogateescape"))
        row = asdict(ended) | {"out": "", "err": "", "what": what, "class": name, "limit": limits[0] or 20}
        print(json.dumps(row | {"number": number, "found": found}), flush=True)


if __name__ == "__main__":
    many(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
