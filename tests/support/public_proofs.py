"""How many properties of public kernels are decided for every size, by kind of property.

python tests/support/public_proofs.py FOLDER [--list FILE] [--seconds 10] [--only NAME] [--runs]

FOLDER has the files of `public_kernels.txt` under owner/name/path, at the commits that the list names. --runs: launch
what is claimed at small sizes in the emulator, and name every proved property that fails there.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mutant_kernels import property_of
from tilewise.emulator import budget
from tilewise.emulator.check.loading import choose, load
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.emulator.machine.findings import Severity
from tilewise.emulator.prove.prove import Answer, Proof, Verdict, claims, prove
from tilewise.errors import TilewiseError

LIST = Path(__file__).with_name("public_kernels.txt")
SIZES = (*range(1, 18), 31, 32, 33, *range(63, 71))
KINDS = {"global bounds": "bounds", "shared bounds": "bounds", "rows": "bounds", "shared races": "races",
         "global races": "races", "barriers": "barriers", "shared reads": "reads", "coverage": "coverage",
         "launch": "launch", "arithmetic": "arithmetic"}  # fmt: skip


def proof_of(file: Path, kernel: str, limits: Limits) -> Proof:
    with budget.within(replace(limits, seconds=3 * limits.seconds)):
        loaded = load(file, None, None, limits)
        return prove(Prepared(loaded, choose(loaded, kernel)[0]), limits)


def false_proofs(file: Path, kernel: str, answers: list[Answer]) -> Iterator[str]:
    """Proved properties that a run at one of `SIZES`, or at drawn ones, sees fail."""
    proved = {a.name for a in answers if a.verdict is Verdict.PROVED}
    loaded = load(file, None, None, DEFAULT)
    prepared, rng = Prepared(loaded, choose(loaded, kernel)[0]), random.Random(0)
    places = {p.name: "global" for p in prepared.function.parameters} | {
        n: "shared" for n, *_ in prepared.program.shared
    }
    for claim in claims(prepared, DEFAULT, None):
        sizes = [dict.fromkeys(claim.names, n) for n in SIZES]
        sizes += [{name: rng.randint(1, 300) for name in claim.names} for _ in range(12)]
        for values in sizes if claim.names else sizes[:1]:
            try:
                done = claim.run(values)
            except TilewiseError:
                continue
            for f in done.findings if done is not None else ():
                name = property_of(f.kind, places.get(f.array, "local"))
                if f.severity is Severity.FAULT and name in proved:
                    yield f"FALSE PROOF of {name} at {values}: {f.message}"


def nothing_claimed(file: Path, reason: str) -> list[Answer]:
    """Bounds and races that a reader would ask about, each open."""
    shared = "__shared__" in file.read_text(encoding="utf-8", errors="replace")
    names = ("global bounds", "global races", *(("shared bounds", "shared races") if shared else ()))
    return [Answer(name, name, Verdict.OPEN, 0, reason) for name in names]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", type=Path, default=LIST)
    parser.add_argument("--seconds", type=float, default=10.0, help="of the processor, for a kernel")
    parser.add_argument("--only", default="", help="kernels whose repository or name has this")
    parser.add_argument("--runs", action="store_true", help="look for faults at small sizes")
    given = parser.parse_args()
    limits = replace(DEFAULT, seconds=given.seconds)
    decided, requested, whole, kernels = Counter[str](), Counter[str](), Counter[str](), 0
    for line in given.list.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or given.only not in line:
            continue
        repository, _, path, kernel, kind = line.split(" ", 4)
        file, begun = given.folder / repository / path.replace("%20", " "), time.process_time()
        try:
            answers = proof_of(file, kernel, limits).answers
        except TilewiseError as error:
            answers = [Answer("all", "all", Verdict.OPEN, 0, str(error).splitlines()[0])]
        if answers[0].name == "all":
            answers = nothing_claimed(file, f"line {answers[0].line}: {answers[0].reason}")
        took = time.process_time() - begun
        kernels += 1
        real = [a for a in answers if not a.trivial]
        for a in real:
            requested[KINDS[a.name]] += 1
            decided[KINDS[a.name]] += a.verdict is not Verdict.OPEN
        closed = all(a.verdict is not Verdict.OPEN for a in answers)
        whole["decided"] += closed
        whole["proved"] += all(a.verdict is Verdict.PROVED for a in answers)
        whole["refuted"] += any(a.verdict is Verdict.REFUTED for a in answers)
        print(f"{repository} {kernel} ({kind}): {'decided' if closed else 'open'}, {took:.1f} s")
        for a in answers:
            if a.verdict is not Verdict.PROVED:
                sizes = a.witness.sizes if a.witness is not None else ""
                print(f"    {a.verdict} {a.name}: line {a.line} {a.reason} {sizes}", flush=True)
        if given.runs and any(a.verdict is Verdict.PROVED for a in answers):
            print("".join(f"    {found}\n" for found in false_proofs(file, kernel, answers)), end="", flush=True)
    print(f"{kernels} kernels, {whole['decided']} decided whole ({whole['proved']} proved, {whole['refuted']} refuted)")
    for kind in sorted(requested):
        share = 100 * decided[kind] / requested[kind]
        print(f"{kind:12} {decided[kind]:4} of {requested[kind]:4} decided ({share:.0f} %)")


if __name__ == "__main__":
    main()
