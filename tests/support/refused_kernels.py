"""Which kernels compiled code takes (`run`) and NumPy lanes refuse (`check`, `trace`).

    python tests/support/refused_kernels.py FILE.cu or FOLDER …

Every program is read once, and each kernel that its launches name is compiled for lanes; one that they refuse is
compiled for the host's processor as well. A row a reason, the most frequent first, with files that show it; the last
line counts.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from multiprocessing import Pool
from pathlib import Path

from tilewise.emulator.host.options import Options
from tilewise.errors import TilewiseError

SHOWN = 4  # files of a reason


def judged(path: Path) -> list[tuple[str, str, str]]:
    """(kernel, why lanes refuse it, why compiled code then does) for each kernel launched; '' where one takes it."""
    from tilewise.emulator.host.running import build
    from tilewise.emulator.host.runtime.compiled_kernel import compiled
    from tilewise.emulator.host.runtime.cuda_launch import for_interpreter, prepare
    from tilewise.emulator.machine.lanes import Geometry

    os.chdir(path.parent)
    session, _ = build(path, Options(), lambda document: None)
    prepare(session)
    out = []
    for site in session.program.launches:
        if site.kernel is None or any(name == site.kernel.name for name, *_ in out):
            continue
        lanes = for_interpreter(session, site)[1]
        made: object = ""
        if lanes:
            try:
                made = compiled(session, site, Geometry((1, 1, 1), (32, 1, 1)))
            except TilewiseError as error:
                made = str(error)
        out.append((site.kernel.name, lanes, made if isinstance(made, str) else ""))
    return out


def attempt(path: Path) -> list[tuple[str, str, str]]:
    try:
        return judged(path)
    except (TilewiseError, OSError, RecursionError):
        return []  # no program: `run` says why


def reason(message: str) -> str:
    """The first line without its place and its names."""
    text = message.strip().splitlines()[0]
    return re.sub(r"^\S+?:\d+(:\d+)?: ", "", text)


def main(arguments: list[str]) -> int:
    given = [Path(a).resolve() for a in arguments]
    paths = [p for g in given for p in (sorted(g.rglob("*.cu")) if g.is_dir() else [g])]
    refusals: dict[str, list[str]] = defaultdict(list)
    kernels = neither = 0
    with Pool(1, maxtasksperchild=1) as pool:
        for path, found in zip(paths, pool.imap(attempt, paths), strict=True):
            kernels += len(found)
            neither += sum(bool(made) for *_, made in found)
            for _, lanes, made in found:
                if lanes and not made:
                    refusals[reason(lanes)].append(str(path))
    for why, files in sorted(refusals.items(), key=lambda item: -len(item[1])):
        print(f"{len(files):4} {why}   {' '.join(files[:SHOWN])}")
    refused = sum(map(len, refusals.values()))
    print(f"{len(paths)} files, {kernels} kernels: lanes refuse {refused} of those that compiled code takes")
    print(f"neither takes {neither}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
