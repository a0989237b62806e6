"""Every property of a kernel: proved for every size, refuted by the smallest one that the emulator sees fail, or not
decided, with the line and the reason."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.limits import Limits
from tilewise.emulator.machine.findings import Finding, Kind, Severity
from tilewise.emulator.parse.tree import Function
from tilewise.emulator.prove.claim import BOUNDS, Bound, Claim, Given
from tilewise.emulator.prove.product import ProductClaim
from tilewise.emulator.prove.program import ProgramClaim, chains
from tilewise.emulator.prove.properties import Fault, Property, overflow, properties
from tilewise.emulator.prove.solver import QUESTION, NoAnswer, Solver
from tilewise.emulator.prove.terms import Cond, Poly, at_most, both, either, flags_of, negate, same, symbols_of
from tilewise.emulator.prove.thread import Thread
from tilewise.emulator.prove.values import Events, NotModelled
from tilewise.errors import KernelError, LimitError, UsageError

SHARE = 0.8  # of the seconds, for the solver: what is left writes down what is known by then
TRIES = 6  # sizes at which the emulator is asked
CHUNK = 24
TOGETHER = 0.8  # seconds for a question about several faults, before they are asked about one by one


class Verdict(StrEnum):
    PROVED = "proved"
    REFUTED = "refuted"
    OPEN = "not decided"


@dataclass(frozen=True)
class Witness:
    """The smallest launch that fails, as the emulator saw it."""

    sizes: dict[str, int]
    shape: tuple[int, int, int] | None  # m, k and n, where the kernel multiplies matrices
    finding: Finding


@dataclass(frozen=True)
class Answer:
    name: str
    statement: str
    verdict: Verdict
    line: int = 0
    reason: str = ""
    witness: Witness | None = None
    trivial: bool = False  # proved without a question: there is nothing that could fail


@dataclass
class Proof:
    """What was shown of one kernel, and under which assumption."""

    kernel: str
    line: int
    assumption: str
    answers: list[Answer] = field(default_factory=list)

    @property
    def proved(self) -> bool:
        return bool(self.answers) and all(a.verdict is Verdict.PROVED for a in self.answers)

    @property
    def refuted(self) -> bool:
        return any(a.verdict is Verdict.REFUTED for a in self.answers)


def prove(prepared: Prepared, limits: Limits, given: Given | None = None) -> Proof:
    """Every property of the kernel, for every size."""
    function = prepared.function
    try:
        ends = time.process_time() + SHARE * limits.seconds
        proofs = [Prover(claim, ends).answer() for claim in claims(prepared, limits, given)]
    except NotModelled as error:
        return _nothing(function, error.line, error.reason)
    except NoAnswer as error:
        return _nothing(function, function.line, str(error))
    first = next((p for p in proofs if not p.proved), proofs[0])
    if first.proved and len(proofs) > 1:
        first.assumption = "; and ".join(dict.fromkeys(p.assumption for p in proofs))
    return first


def claims(prepared: Prepared, limits: Limits, given: Given | None) -> Iterator[Claim]:
    """One for every launch of the kernel in the file."""
    for site in prepared.sites if given is None and prepared.sites else [None]:
        one = prepared.launched_at(site or prepared.site)
        try:
            yield ProductClaim(one, limits, given)
            continue
        except NotModelled:
            if prepared.matrices is not None and (one.site is None or given is not None):
                raise
        for calls in chains(one.site, prepared.loaded.table) if one.site is not None else [()]:
            yield ProgramClaim(one, limits, given, calls)


def _nothing(function: Function, line: int, reason: str) -> Proof:
    open_ = Answer("all", "every property", Verdict.OPEN, line, reason)
    return Proof(function.short, function.line, "nothing is claimed", [open_])


class Prover:
    def __init__(self, claim: Claim, ends: float) -> None:
        self.claim, self.ends = claim, ends
        self.bound = BOUNDS[0]
        self.solver: Solver
        self.runs: dict[tuple[int, ...], list[Finding] | None] = {}

    def _solver(self, bound: Bound) -> Solver:
        return Solver(self.claim.symbols, self.claim.assumed(bound), self.ends)

    def answer(self) -> Proof:
        plain = self.claim.thread(set())
        thread, leaving = self._without_overflow(plain)
        made = properties(self.claim, thread.events)
        small = made if thread is plain else properties(self.claim, plain.events)
        answers = [self._decide(p, q) for p, q in zip(made, small, strict=True)]
        for i, (p, a) in enumerate(zip(made, answers, strict=True)):
            short = [b for b in answers if b.name in p.rests and b.verdict is not Verdict.PROVED]
            if short and a.verdict is Verdict.PROVED:
                why = f"holds only where {short[-1].statement}"
                answers[i] = Answer(a.name, a.statement, Verdict.OPEN, short[-1].line, why)
        answers.append(self._of_overflow(leaving))
        function = self.claim.prepared.function
        return Proof(function.short, function.line, self.claim.sentence(self.bound), answers)

    # -- arithmetic

    def _without_overflow(self, plain: Thread) -> tuple[Thread, list[Fault]]:
        """The kernel executed with every expression that may leave its type as unknown, and those expressions; under
        the largest bound on the sizes at which none does, else under the largest."""
        thread = plain
        faults = self._all_overflows(thread)
        host = {o.node for o in self.claim.host_ranges}
        data = self.claim.symbols.data
        sized = [f for f in faults if not symbols_of(f.cond) & data.keys()]  # what a bound on the sizes may mend
        for asked in (sized, [f for f in faults if f.other in host]):
            for bound in BOUNDS:
                self.bound, self.solver = bound, self._solver(bound)
                if not self._some(asked):
                    break
            else:
                continue
            break
        else:
            raise NotModelled("the arithmetic of the launch may overflow", self._possible(asked)[0].line)
        wrapping: dict[int, Fault] = {}
        while leaving := [f for f in self._possible(faults) if f.other not in wrapping]:
            wrapping |= {f.other: f for f in leaving}
            thread = self.claim.thread(set(wrapping))
            faults = self._all_overflows(thread)
        used = self._decides(thread.events)
        return thread, [f for f in wrapping.values() if self.claim.symbols.wrapped.get(f.other, used) & used]

    def _decides(self, events: Events) -> set[str]:
        """The symbols that an index is made of, or a path: what else overflows is a value, and no index."""
        conds = [c for a in events.accesses for c in (a.path, at_most(a.offset, Poly.of(0)))]
        conds += [c for _, o in events.dimensions for c in (o.path, o.must)] + [b.path for b in events.barriers]
        conds += [at_most(c, Poly.of(0)) for b in events.barriers for c in b.counters]
        mentioned = symbols_of(both(*conds))
        return mentioned | symbols_of(both(*self.claim.symbols.closure(mentioned)))

    def _all_overflows(self, thread: Thread) -> list[Fault]:
        return overflow(thread.events) + [Fault(both(o.path, negate(o.must)), o.line, o.what, o.node)
                                          for o in self.claim.host_ranges]  # fmt: skip

    def _of_overflow(self, leaving: list[Fault]) -> Answer:
        name, statement = "arithmetic", "no index leaves its type"
        if not leaving:
            return Answer(name, statement, Verdict.PROVED)
        kinds = frozenset({Kind.INDEX_OVERFLOW, Kind.OVERFLOW})
        return self._refute(Property(name, statement, kinds, tuple(leaving)), leaving, leaving)

    # -- one property

    def _decide(self, asked: Property, small: Property) -> Answer:
        """`small` is the same property with every expression in its type, as it is at small sizes."""
        if asked.undecided:
            line, reason = asked.undecided[0]
            return Answer(asked.name, asked.statement, Verdict.OPEN, line, reason)
        try:
            found, asks = self._some(list(asked.faults)), any(f.cond != either() for f in asked.faults)
        except NoAnswer as error:
            return Answer(asked.name, asked.statement, Verdict.OPEN, asked.faults[0].line, str(error))
        if not found:
            return Answer(asked.name, asked.statement, Verdict.PROVED, trivial=not asks)
        return self._refute(small, found if small is asked else list(small.faults), found)

    def _some(self, faults: list[Fault]) -> list[Fault]:
        """Those of the first group in which one is possible; groups that are impossible are left out."""
        left = list({f.cond: f for f in faults if f.cond != either()}.values())
        parts = [left[i : i + CHUNK] for i in range(0, len(left), CHUNK)]
        return next((left[i * CHUNK :] for i, part in enumerate(parts) if self._can(part)), [])

    def _can(self, faults: list[Fault]) -> bool:
        try:
            most = QUESTION if len(faults) == 1 else TOGETHER
            return self.solver.model(either(*(f.cond for f in faults)), [], most=most) is not None
        except NoAnswer:
            if len(faults) == 1:
                raise
        half = len(faults) // 2
        return self._can(faults[:half]) or self._can(faults[half:])

    def _possible(self, faults: list[Fault]) -> list[Fault]:
        """Those that some size may meet."""
        left = self._some(faults)
        return [f for i in range(0, len(left), CHUNK) for f in self._among(left[i : i + CHUNK])]

    def _among(self, part: list[Fault]) -> list[Fault]:
        if not self._can(part):
            return []
        if len(part) == 1:
            return part
        half = len(part) // 2
        return self._among(part[:half]) + self._among(part[half:])

    # -- counter-examples

    def _refute(self, asked: Property, faults: list[Fault], found: list[Fault]) -> Answer:
        wanted: Cond = either(*(f.cond for f in faults))
        line, reason = found[0].line, ""
        try:
            for _ in range(TRIES):
                sizes = self._smallest(wanted)
                if sizes is None:
                    break
                if self.solver.model(wanted, [], sizes) is not None:
                    finding = self._seen(asked, sizes)
                    if finding is not None:
                        seen = Witness(sizes, self.claim.shape(sizes), finding)
                        return Answer(asked.name, asked.statement, Verdict.REFUTED, finding.line or line, "", seen)
                wanted = both(wanted, either(*(negate(same(Poly.of(s), Poly.of(v))) for s, v in sizes.items())))
            found = self._possible(found)
            line, reason = found[0].line, self._why(found)
        except NoAnswer as error:
            reason = str(error)
        return Answer(asked.name, asked.statement, Verdict.OPEN, line, reason)

    def _why(self, found: list[Fault]) -> str:
        data = self.claim.symbols.data
        for fault in found:
            for name in sorted(symbols_of(fault.cond) | flags_of(fault.cond)):
                if (base := name.partition("@")[0]) in data:
                    return data[base]
        return "not proved, and the emulator sees no fault at the sizes that the solver names"

    def _smallest(self, wanted: Cond) -> dict[str, int] | None:
        """Sizes with the smallest sum, then the smallest first ones."""
        names = self.claim.names
        if not names:
            return {} if self.solver.model(wanted, []) is not None else None
        total = sum((Poly.of(n) for n in names), Poly.of(0))
        for part in (total, *(Poly.of(n) for n in names[:-1])):
            least = self._least(wanted, part)
            if least is None:
                return None
            wanted = both(wanted, same(part, Poly.of(least)))
        return self.solver.model(wanted, names, stages=1)

    def _least(self, wanted: Cond, part: Poly) -> int | None:
        low, step = 1, 8
        while (at := self.solver.model(both(wanted, at_most(part, Poly.of(low - 1 + step))), [], stages=1)) is None:
            low, step = low + step, step * 4
            if low > 4 * self.bound.elements:
                return None
        high = low - 1 + step
        while low < high:
            middle = (low + high) // 2
            at = self.solver.model(both(wanted, at_most(part, Poly.of(middle))), [], stages=1)
            low, high = (low, middle) if at is not None else (middle + 1, high)
        return low

    def _seen(self, asked: Property, sizes: dict[str, int]) -> Finding | None:
        key = tuple(sizes.values())
        if key not in self.runs:
            try:
                done = self.claim.run(sizes)
                self.runs[key] = done.findings if done is not None else None
            except (KernelError, UsageError, LimitError):
                self.runs[key] = None
        faults = [f for f in self.runs[key] or () if f.severity is Severity.FAULT and asked.shown_by(f)]
        return faults[0] if faults else None
