"""`check --prove`: the proof of every kernel of a file as a table, as JSON and as SARIF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewise.algebra.builtin import find_semiring
from tilewise.emulator import budget
from tilewise.emulator.check.loading import choose, load
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import triple
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.findings import Finding
from tilewise.emulator.prove.claim import Given
from tilewise.emulator.prove.prove import Answer, Proof, Verdict, Witness, prove
from tilewise.emulator.prove.solver import available, require
from tilewise.errors import TilewiseError, UsageError
from tilewise.i18n.messages import say
from tilewise.i18n.translation import translated
from tilewise.teaching.trace.launch import SCHEMA
from tilewise.teaching.trace.rungs import is_rung, rung_text
from tilewise.teaching.trace.sarif import document

Json = dict[str, object]
SECONDS = 2.0  # for a proof that was not requested
LEVELS = {Verdict.PROVED: "none", Verdict.REFUTED: "error", Verdict.OPEN: "note"}
KINDS = {Verdict.PROVED: "pass", Verdict.REFUTED: "fail", Verdict.OPEN: "open"}


@dataclass(frozen=True)
class ProofReport:
    file: str
    proofs: tuple[Proof, ...]

    @property
    def ok(self) -> bool:
        """Nothing is refuted."""
        return not any(proof.refuted for proof in self.proofs)

    @property
    def proved(self) -> bool:
        return all(proof.proved for proof in self.proofs)

    def text(self) -> str:
        return "\n\n".join(_table(self.file, proof) for proof in self.proofs)

    def to_json(self) -> Json:
        return {"schema": SCHEMA, "file": self.file, "ok": self.ok, "proved": self.proved,
                "proofs": [_json(proof) for proof in self.proofs]}  # fmt: skip

    def sarif(self) -> Json:
        rules: dict[str, str] = {}
        results: list[Json] = []
        for proof in self.proofs:
            for answer in proof.answers:
                rules[f"prove/{answer.name}"] = answer.statement
                results.append(_result(self.file, proof, answer))
        described = [{"id": name, "shortDescription": {"text": statement}} for name, statement in rules.items()]
        made: Json = document(results, described)
        return made


def prove_file(
    kernel: str | Path,
    *,
    tile: int | None = None,
    entry: str | None = None,
    grid: Sequence[int] | None = None,
    block: Sequence[int] | None = None,
    args: Mapping[str, object] | None = None,
    defines: Mapping[str, str | int] | None = None,
    semiring: str = "plus_times",
    dtype: str = "float32",
    limits: Limits,
) -> ProofReport:
    """Every kernel of the file, or a rung of the ladder."""
    require()
    if args:
        raise UsageError("--prove takes no --arg: it holds for every size")
    given = None
    if is_rung(kernel):
        rung = rung_text(str(kernel), tile, find_semiring(semiring), dtype)
        threads = triple(rung.geometry.block, "block")
        assert threads is not None
        given, kernel, tile = Given(threads, rung.geometry.rows, rung.geometry.cols), rung.text, None
    elif grid is not None or block is not None:
        blocks, threads = triple(grid, "grid"), triple(block, "block")
        if blocks is None or threads is None:
            raise UsageError("--prove needs --grid and --block-dim together, or the launch in the file")
        given = Given(threads, grid=blocks)
    with budget.within(limits):
        loaded = load(kernel, defines, tile, limits)
        budget.enter("proving")
        proofs = [prove(Prepared(loaded, function), limits, given) for function in choose(loaded, entry)]
    return ProofReport(loaded.source.name, tuple(proofs))


def sentences(
    kernel: str | Path, language: str, seen: Sequence[Finding], limits: Limits, ran: bool = False, **options: Any
) -> list[str]:
    """Lines after the verdict of `check`: for each kernel that it is proved for every size, or the smallest size that
    fails in a way that is not among the faults already `seen`; empty without z3 or after SECONDS. `ran`: main did, so
    that numbers it takes from elsewhere, such as the properties of a card, gave launches that do not fail."""
    if not available():
        return []
    try:
        report = prove_file(kernel, limits=replace(limits, seconds=min(SECONDS, limits.seconds)), **options)
    except TilewiseError:
        return []
    lines = []
    for proof in report.proofs:
        refuted = [a for a in proof.answers if a.witness is not None and not (ran and a.name == "launch")]
        if proof.proved and not seen:
            lines.append(say(language, "check.proved", name=proof.kernel))
        for answer in refuted[:1]:
            assert answer.witness is not None
            found = answer.witness.finding
            if any((f.kind, f.line) == (found.kind, found.line) for f in seen):
                continue
            message = translated(answer.witness.finding.message, language)
            sizes = _named(answer.witness)
            lines.append(say(language, "check.fails.at", name=proof.kernel, sizes=sizes, message=message))
    return lines


def _table(file: str, proof: Proof) -> str:
    """The assumption, then a line a property."""
    lines = [f"{file}: {proof.kernel}: {proof.assumption}"]
    for answer in proof.answers:
        lines.append(f"  {answer.verdict:<12} {answer.statement}")
        lines += [f"  {'':12} {part}" for part in _detail(answer)]
    shapes = dict.fromkeys("x".join(map(str, a.witness.shape)) for a in proof.answers
                           if a.witness is not None and a.witness.shape is not None)  # fmt: skip
    lines += [f"step through it: tilewise explore {file} --shape {shape} --fault" for shape in list(shapes)[:1]]
    return "\n".join(lines)


def _detail(answer: Answer) -> list[str]:
    where = f"line {answer.line}: " if answer.line else ""
    if answer.witness is not None:
        return [f"{where}{_sizes(answer.witness)}: {answer.witness.finding.message}"]
    return [f"{where}{answer.reason}"] if answer.reason else []


def _named(witness: Witness) -> str:
    return ", ".join(f"{name} = {value}" for name, value in witness.sizes.items())


def _sizes(witness: Witness) -> str:
    return f"fails at {_named(witness)}" if witness.sizes else "fails"


def _json(proof: Proof) -> Json:
    answers: list[Json] = []
    for a in proof.answers:
        made: Json = {
            "property": a.name,
            "statement": a.statement,
            "verdict": str(a.verdict),
            "line": a.line,
            "reason": a.reason,
        }
        if a.witness is not None:
            made["witness"] = _witness(a.witness)
        answers.append(made)
    return {"kernel": proof.kernel, "assumption": proof.assumption, "proved": proof.proved, "properties": answers}


def _witness(witness: Witness) -> Json:
    finding = witness.finding
    threads = [{"block": list(b), "thread": list(t)} for b, t in finding.threads[:2]]
    return {"sizes": witness.sizes, "shape": list(witness.shape or ()), "kind": str(finding.kind),
            "array": finding.array, "message": finding.message, "line": finding.line, "threads": threads}  # fmt: skip


def _result(file: str, proof: Proof, answer: Answer) -> Json:
    text = "; ".join((f"{answer.verdict}: {answer.statement}", *_detail(answer)))
    properties: Json = {"property": answer.name, "assumption": proof.assumption, "kernel": proof.kernel}
    if answer.witness is not None:
        properties["witness"] = _witness(answer.witness)
    location = {"artifactLocation": {"uri": file}, "region": {"startLine": max(1, answer.line or proof.line)}}
    return {
        "ruleId": f"prove/{answer.name}",
        "level": LEVELS[answer.verdict],
        "kind": KINDS[answer.verdict],
        "message": {"text": text},
        "locations": [{"physicalLocation": location}],
        "properties": properties,
    }
