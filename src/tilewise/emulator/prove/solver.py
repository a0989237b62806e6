"""Questions to z3, in linear integer arithmetic.

A product such as Row * Width is one unknown of its own. What makes it more than that are instances of one law, for the
products that a question mentions: for Width >= 1, u <= 0 gives u * Width <= 0, and u >= 0 gives u * Width >= 0."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module, util
from math import gcd
from types import ModuleType

from tilewise.emulator.prove.symbols import Symbols
from tilewise.emulator.prove.terms import (
    FALSE,
    ZERO,
    All,
    AnyOf,
    AtMostZero,
    Cond,
    Flag,
    IsZero,
    Monomial,
    Not,
    Poly,
    at_most,
    both,
    either,
    mapped,
    negate,
    polys_of,
    symbols_of,
)
from tilewise.errors import EngineError

QUESTION = 4.0  # seconds for one question
LOADED = 8  # as many by the clock, at most, where others use the processor too


class NoAnswer(Exception):
    """Neither yes nor no within the time."""


def available() -> bool:
    return util.find_spec("z3") is not None


def require() -> None:
    """z3 itself is imported with the first question: it takes a quarter of a second."""
    if not available():
        raise EngineError("--prove needs the z3 solver: pip install 'tilewise[prove]'")


@dataclass
class Solver:
    """One kernel's questions. `assumed` holds in every question: the range of the sizes and the launch."""

    symbols: Symbols
    assumed: Cond
    ends: float  # in this process's processor time
    z3: ModuleType = field(default_factory=lambda: import_module("z3"))
    asked: int = 0

    def __post_init__(self) -> None:
        self.assumed = mapped(self.assumed, self.symbols.plain, lambda f: f)

    def model(
        self,
        cond: Cond,
        wanted: list[str],
        at: Mapping[str, int] | None = None,
        stages: int = 2,
        most: float = QUESTION,
    ) -> dict[str, int] | None:
        """Values of the wanted symbols for which the condition can hold, at given sizes or at any; None where it
        cannot. At any size more laws on products are added, in stages, as long as they may help."""
        if cond == FALSE:
            return None
        facts = [cond, *self.symbols.closure(symbols_of(both(self.assumed, cond)))]
        if numbers := {**self.symbols.fixed, **(at or {})}:
            fixed = {name: Poly.of(value) for name, value in numbers.items()}
            facts = [mapped(fact, lambda p: p.replace(fixed), lambda f: f) for fact in facts]
        if at:
            return self._ask(facts, wanted, most)
        products = list(dict.fromkeys(p for fact in facts for p in polys_of(fact) if not p.linear))
        found = self._ask([self.assumed, *facts], wanted, most)
        for slack in (False, True)[:stages] if products else ():
            if found is None:
                return None
            found = self._ask([self.assumed, *facts, *self._laws(products, slack)], wanted, most)
        return found

    def _ask(self, facts: list[Cond], wanted: list[str], most: float) -> dict[str, int] | None:
        """One question, as SMT-LIB text: z3's own expressions take longer to build than to solve."""
        z3 = self.z3
        made = z3.SolverFor("QF_LIA")
        left = self.ends - time.process_time()
        if left <= 0:
            raise NoAnswer("the time of --limit seconds was used up")
        begun, share = time.process_time(), min(most, left)
        made.set("timeout", int(1000 * LOADED * share))
        made.set("ctrl_c", False)  # Ctrl-C is Python's
        numbers: set[str] = {f"|{name}|" for name in wanted}
        truths: set[str] = set()
        asserted = [f"(assert {_text(fact, numbers, truths)})" for fact in facts]
        declared = [f"(declare-const {n} Int)" for n in sorted(numbers)]
        declared += [f"(declare-const {n} Bool)" for n in sorted(truths)]
        made.from_string("\n".join((*declared, *asserted)))
        self.asked += 1
        found: list[object] = []
        worker = threading.Thread(target=lambda: found.append(made.check()), daemon=True)
        worker.start()
        try:
            while worker.is_alive():  # in a thread of its own: what stops this one would wait for z3
                worker.join(0.02)
                if time.process_time() - begun > share:
                    made.interrupt()
        except BaseException:
            made.interrupt()
            worker.join(0.3)
            raise
        answer = found[0] if found else z3.unknown
        if answer == z3.unknown:
            raise NoAnswer(f"the solver found no answer in {share:.0f} s")
        if answer == z3.unsat:
            return None
        model = made.model()
        return {name: model.eval(z3.Int(name), model_completion=True).as_long() for name in wanted}

    def _laws(self, products: list[Poly], slack: bool) -> list[Cond]:
        sizes = [Poly.of(s) for s in self.symbols.sizes]
        made: dict[tuple[Poly, str], None] = {}
        for poly in products:
            for name in self.symbols.sizes:
                q, _ = poly.by(name)
                if not q.linear or q.constant is not None or q.symbols <= set(self.symbols.sizes):
                    continue
                near = [q, q + 1, q - 1, *(q - s + 1 for s in sizes if s not in (Poly.of(t) for t in q.symbols))]
                if slack:
                    past = max(map(abs, q.terms.values()))  # a block's rows: so many may lie past the last row
                    near += [q - s - past for s in sizes] + [q + past]
                    near += [side - s + step for side in (q, -q) for s in sizes for step in (0, 1, 2)]
                made.update(((u, name), None) for u in near if u.constant is None)
        every = dict.fromkeys(m for poly in products for m in poly.terms if len(m) > 1)
        only = [m for m in every if set(m) <= set(self.symbols.sizes)]
        grows = [at_most(Poly({m[:i] + m[i + 1 :]: 1}), Poly({m: 1})) for m in only for i in range(len(m))]
        grows += [at_most(ZERO, Poly({m: 1})) for m in every if m not in only and all(map(self.symbols.natural, m))]
        strides = [law for u, by in self._strides(products) for law in _signs(u, u * by)]
        return [*grows, *strides, *(law for u, name in made for law in _signs(u, u * Poly.of(name)))]

    def _strides(self, products: list[Poly]) -> dict[tuple[Poly, Poly], None]:
        """Factors of what is the same for the whole launch and no single size: a grid's threads, say."""
        found: dict[tuple[Poly, Poly], None] = {}
        for poly in products:
            parts: dict[Monomial, dict[Monomial, int]] = {}
            for m, c in poly.terms.items():
                same_for_all = tuple(s for s in m if s in self.symbols.launch and self.symbols.natural(s))
                parts.setdefault(same_for_all, {})[tuple(s for s in m if s not in same_for_all)] = c
            for by, terms in parts.items():
                u, single = Poly(terms), len(by) == 1 and by[0] in self.symbols.sizes
                if by and not single and u.linear and u.constant is None:
                    u = Poly({m: c // gcd(*terms.values()) for m, c in terms.items()})
                    found |= dict.fromkeys((v, Poly({by: 1})) for v in (u, u + 1, u - 1))
        return found


def _text(cond: Cond, numbers: set[str], truths: set[str]) -> str:
    if isinstance(cond, AtMostZero):
        return f"(<= {_sum(cond.poly, numbers)} 0)"
    if isinstance(cond, IsZero):
        return f"(= {_sum(cond.poly, numbers)} 0)"
    if isinstance(cond, Flag):
        truths.add(f"|{cond.name}|")
        return f"|{cond.name}|"
    if isinstance(cond, Not):
        return f"(not {_text(cond.part, numbers, truths)})"
    assert isinstance(cond, All | AnyOf)
    every = isinstance(cond, All)
    if not cond.parts:
        return "true" if every else "false"
    return f"({'and' if every else 'or'} {' '.join(_text(p, numbers, truths) for p in cond.parts)})"


def _sum(poly: Poly, numbers: set[str]) -> str:
    parts = []
    for m, c in poly.terms.items():
        number = str(c) if c >= 0 else f"(- {-c})"
        if m:
            name = f"|{'*'.join(m)}|"
            numbers.add(name)
            number = name if c == 1 else f"(* {number} {name})"
        parts.append(number)
    return f"(+ {' '.join(parts)})" if len(parts) > 1 else (parts or ["0"])[0]


def _signs(u: Poly, product: Poly) -> Iterator[Cond]:
    yield either(negate(at_most(u, ZERO)), at_most(product, ZERO))
    yield either(negate(at_most(ZERO, u)), at_most(ZERO, product))
