"""One hostile file through one command, in a process of its own, and everything that must hold for any."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import hostile
import hostile_programs
import tilewise as tw

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(tw.__file__).parents[1]), "OPENBLAS_NUM_THREADS": "1"}
COMMANDS = ("check", "trace", "explore", "run")
SLACK = 2.0  # seconds beyond the limit
START = 1.0  # seconds more, that a busy machine may take to start Python and NumPy
BEYOND = 100 << 20  # bytes of the process before the source is read
SHOWN = 20 << 20  # bytes of output that are looked at


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


def command(*words, timeout=120):
    start = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "tilewise", *map(str, words)], env=ENVIRONMENT, stdout=out, stderr=err,
            stdin=subprocess.DEVNULL, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30)),
        )  # fmt: skip
        while True:
            done, status, used = os.wait4(process.pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() - start > timeout:
                process.kill()
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall, peak = time.monotonic() - start, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read(SHOWN).decode(errors="replace"))
    return Ended(process.returncode, *texts, wall, used.ru_utime + used.ru_stime, peak)


def source(chance, what):
    """(class, text) for a command, at random."""
    classes = hostile_programs.CLASSES if what == "run" and chance.random() < 0.8 else hostile.CLASSES
    make = chance.choice(classes)
    return make.__name__, make(chance)


def run_one(folder, name, text, what, seconds=None, memory=None):
    """Run it; what is wrong with how it ended, in words, or nothing."""
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
    said = ended.out + ended.err if what != "run" else ended.err  # what a program prints is its own
    found = []
    if ended.code < 0 or (what != "run" and ended.code not in (0, 1, 2, 4)):
        found.append(f"it ended with {ended.code}")
    if ended.seconds > seconds + SLACK + START:
        found.append(f"it took {ended.wall:.1f} s, {ended.cpu:.1f} s of CPU")
    if ended.peak > memory + BEYOND:
        found.append(f"it took {ended.peak >> 20} MiB")
    for words in ("please report it", "Traceback", "Error: "):
        if words in ended.err:
            found.append(f"it said {words!r}")
    if what != "run" and ended.code not in (0, 1) and not said.strip():
        found.append("it said nothing")
    if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", said):
        found.append("control characters reached the terminal")
    return f"{'; '.join(found)}: {ended.err[-600:]}" if found else ""
