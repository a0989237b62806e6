"""The function that adds up a block of sums: 4 rows by 16 (or 8) neighbouring columns side by side.

What a term reads by column and k is packed for its columns, k after k; every sum adds its terms in the order of the
program, so that each is what the loop itself would give. Signed overflow anywhere: the function gives 0 and the block
is not used.

Arguments, as words: rows, columns, terms, out, out's row length in elements, panel, first value, then for every array
its first address and its steps in bytes by row, column and term, then the values of what does not change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.emulator.parse import tree, types
from tilewise.emulator.parse.types import Scalar
from tilewise.emulator.sema.symbol_table import Unknown

ROWS = 4
HEADS = 7  # words before the arrays


@dataclass
class Source:
    """An array that a term reads: by rows or by columns, never by both."""

    node: Any
    type: Scalar
    by_column: bool


@dataclass
class Term:
    """What one iteration does: local values, then the sum."""

    locals: list[tuple[str, Scalar, Any]]
    result: Any  # an expression in which `total` is the sum so far
    total: Any
    sources: list[Source]
    leaves: list[tuple[Any, Scalar]]
    type: Scalar  # of the sum


Wide = tuple[Scalar, list[str]]  # a vector for each row


class SumKernel:
    def __init__(self, name: str, term: Term, resolve: Any) -> None:
        self.name, self.term, self.resolve = name, term, resolve
        sizes = [term.type.size, *(s.type.size for s in term.sources), *(t.size for _, t, _ in term.locals)]
        self.lanes = 8 if max(sizes) > 4 else 16
        self.columns = [s for s in term.sources if s.by_column]
        self.slot = self.lanes * max([s.type.size for s in self.columns], default=8)
        self.lines: list[str] = []
        self.count = 0
        self.declared: set[str] = set()
        self.known: dict[str, Wide] = {}
        self.loaded: dict[int, list[str]] = {}
        self.flags: list[str] = ["zeroinitializer"] * ROWS

    # -- text

    def make(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %x{self.count} = {text}")
        return f"%x{self.count}"

    def emit(self, text: str) -> None:
        self.lines.append(text)

    def vector(self, type_: Scalar) -> str:
        return f"<{self.lanes} x {type_.llvm}>"

    def splat(self, type_: Scalar, text: str) -> str:
        kind = self.vector(type_)
        one = self.make(f"insertelement {kind} poison, {type_.llvm} {text}, i64 0")
        return self.make(f"shufflevector {kind} {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer")

    def word(self, number: int) -> str:
        at = self.make(f"getelementptr i64, ptr %a, i64 {number}")
        return self.make(f"load i64, ptr {at}")

    # -- expressions

    def convert(self, value: Wide, to: Scalar) -> Wide:
        of, texts = value
        if of.llvm == to.llvm and of.kind == to.kind:
            return to, texts
        if "bool" in (of.kind, to.kind) or (of.floating and not to.floating):
            raise Unknown
        if of.floating:
            op = "fpext" if to.size > of.size else "fptrunc"
        elif to.floating:
            op = "sitofp" if of.signed else "uitofp"
        elif to.size == of.size:
            return to, texts
        else:
            op = "trunc" if to.size < of.size else "sext" if of.signed else "zext"
        return to, [self.make(f"{op} {self.vector(of)} {text} to {self.vector(to)}") for text in texts]

    def expression(self, node: Any) -> Wide:
        if node is self.term.total:
            return self.known["<total>"]
        for number, source in enumerate(self.term.sources):
            if source.node is node:
                return source.type, self.loaded[number]
        for number, (leaf, type_) in enumerate(self.term.leaves):
            if leaf is node:
                return type_, [f"%leaf{number}"] * ROWS
        if isinstance(node, tree.Name) and node.name in self.known:
            return self.known[node.name]
        if isinstance(node, tree.Unary) and node.op == "-":
            type_, texts = self.expression(node.operand)
            if not type_.floating:
                raise Unknown
            return type_, [self.make(f"fneg {self.vector(type_)} {text}") for text in texts]
        if isinstance(node, tree.Cast):
            to = self.resolve(node.type)
            if not isinstance(to, Scalar):
                raise Unknown
            return self.convert(self.expression(node.operand), to)
        if isinstance(node, tree.Binary) and node.op in "+-*/":
            return self.binary(node.op, self.expression(node.left), self.expression(node.right))
        raise Unknown

    def binary(self, op: str, left: Wide, right: Wide) -> Wide:
        type_ = types.common(left[0], right[0])
        one, two = self.convert(left, type_)[1], self.convert(right, type_)[1]
        kind = self.vector(type_)
        if type_.floating:
            word = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}[op]
            return type_, [self.make(f"{word} {kind} {x}, {y}") for x, y in zip(one, two, strict=True)]
        if op == "/" or type_.kind != "int":
            raise Unknown
        word = {"+": "add", "-": "sub", "*": "mul"}[op]
        if not type_.signed:
            return type_, [self.make(f"{word} {kind} {x}, {y}") for x, y in zip(one, two, strict=True)]
        name = f"@llvm.s{word}.with.overflow.v{self.lanes}{type_.llvm}"
        pair = f"{{{kind}, <{self.lanes} x i1>}}"
        self.declared.add(f"declare {pair} {name}({kind}, {kind})")
        out: list[str] = []
        for row, (x, y) in enumerate(zip(one, two, strict=True)):
            both = self.make(f"call {pair} {name}({kind} {x}, {kind} {y})")
            out.append(self.make(f"extractvalue {pair} {both}, 0"))
            over = self.make(f"extractvalue {pair} {both}, 1")
            self.flags[row] = self.make(f"or <{self.lanes} x i1> {self.flags[row]}, {over}")
        return type_, out

    # -- the function

    def text(self) -> list[str]:
        names = ("rows", "columns", "terms", "out", "length", "panel", "first")
        self.emit(f"define internal i32 {self.name}(ptr %a) #1 {{\nentry:")
        for number, name in enumerate(names):
            self.emit(f"  %{name} = add i64 {self.word(number)}, 0")
        for number, source in enumerate(self.term.sources):
            for part, name in enumerate(("base", "by_row", "by_column", "by_term")):
                self.emit(f"  %{name}{number} = add i64 {self.word(HEADS + 4 * number + part)}, 0")
            assert source.type.size
        for number, (_, type_) in enumerate(self.term.leaves):
            at = self.make(f"getelementptr i64, ptr %a, i64 {HEADS + 4 * len(self.term.sources) + number}")
            wide = self.splat(type_, self.make(f"load {type_.llvm}, ptr {at}, align 8"))
            self.emit(f"  %leaf{number} = select i1 true, {self.vector(type_)} {wide}, {self.vector(type_)} {wide}")
        type_ = self.term.type
        first = self.splat(type_, self.make(f"load {type_.llvm}, ptr {self.make('getelementptr i64, ptr %a, i64 6')}"))
        self.emit("  %last_row = sub i64 %rows, 1\n  %last_column = sub i64 %columns, 1\n  br label %block")
        self.emit("block:\n  %j = phi i64 [ 0, %entry ], [ %j_next, %block_done ]")
        self.emit("  br label %pack\npack:\n  %p = phi i64 [ 0, %block ], [ %p_next, %packed ]")
        self._pack()
        self.emit("  br label %packed\npacked:\n  %p_next = add i64 %p, 1\n  %p_on = icmp ult i64 %p_next, %terms")
        self.emit("  br i1 %p_on, label %pack, label %tile")
        self._tile(first)
        self.emit(f"  %j_next = add i64 %j, {self.lanes}\n  %j_on = icmp ult i64 %j_next, %columns")
        self.emit("  br i1 %j_on, label %block, label %fine\nfine:\n  ret i32 1\nover:\n  ret i32 0\n}")
        return [*sorted(self.declared), *self.lines]

    def _pack(self) -> None:
        """One k of every array that is read by columns: neighbours at once, or one by one where they lie apart."""
        for place, source in enumerate(self.columns):
            number, size = self.term.sources.index(source), source.type.size
            kind = self.vector(source.type)
            row = self.make(f"mul i64 %p, %by_term{number}")
            start = self.make(f"add i64 %base{number}, {row}")
            slot = self.make(f"mul i64 %p, {self.slot * len(self.columns)}")
            slot = self.make(f"add i64 {slot}, {self.slot * place}")
            slot = self.make(f"add i64 %panel, {slot}")
            to = self.make(f"inttoptr i64 {slot} to ptr")
            ends = self.make(f"add i64 %j, {self.lanes}")
            fits = self.make(f"icmp ule i64 {ends}, %columns")
            next_ = self.make(f"icmp eq i64 %by_column{number}, {size}")
            self.emit(f"  br i1 {self.make(f'and i1 {fits}, {next_}')}, label %near{place}, label %apart{place}")
            self.emit(f"near{place}:")
            at = self.make(f"add i64 {start}, {self.make(f'mul i64 %j, {size}')}")
            value = self.make(f"load {kind}, ptr {self.make(f'inttoptr i64 {at} to ptr')}, align 1")
            self.emit(f"  store {kind} {value}, ptr {to}, align 8\n  br label %kept{place}\napart{place}:")
            wide = "poison"
            for lane in range(self.lanes):
                column = self.make(f"add i64 %j, {lane}")
                beyond = self.make(f"icmp ugt i64 {column}, %last_column")
                column = self.make(f"select i1 {beyond}, i64 %last_column, i64 {column}")
                at = self.make(f"add i64 {start}, {self.make(f'mul i64 {column}, %by_column{number}')}")
                one = self.make(f"load {source.type.llvm}, ptr {self.make(f'inttoptr i64 {at} to ptr')}, align 1")
                wide = self.make(f"insertelement {kind} {wide}, {source.type.llvm} {one}, i64 {lane}")
            self.emit(f"  store {kind} {wide}, ptr {to}, align 8\n  br label %kept{place}\nkept{place}:")

    def _tile(self, first: str) -> None:
        """4 rows of this block of columns, all their terms; rows beyond the last are the last once more."""
        type_, kind = self.term.type, self.vector(self.term.type)
        over = f"<{self.lanes} x i1>"
        self.emit("tile:\n  %i = phi i64 [ 0, %packed ], [ %i_next, %tile_done ]")
        rows: list[str] = []
        starts: dict[tuple[int, int], str] = {}
        for r in range(ROWS):
            row = self.make(f"add i64 %i, {r}")
            beyond = self.make(f"icmp ugt i64 {row}, %last_row")
            rows.append(self.make(f"select i1 {beyond}, i64 %last_row, i64 {row}"))
            for number, source in enumerate(self.term.sources):
                if not source.by_column:
                    step = self.make(f"mul i64 {rows[-1]}, %by_row{number}")
                    starts[number, r] = self.make(f"add i64 %base{number}, {step}")
        self.emit("  br label %term\nterm:\n  %k = phi i64 [ 0, %tile ], [ %k_next, %term ]")
        head = len(self.lines)  # of the sums, once their next values have names
        self._load(starts)
        self.flags = [f"%over{r}" for r in range(ROWS)]
        self.known["<total>"] = (type_, [f"%sum{r}" for r in range(ROWS)])
        for name, of, node in self.term.locals:
            self.known[name] = self.convert(self.expression(node), of)
        sums = self.convert(self.expression(self.term.result), type_)[1]
        self.emit("  %k_next = add i64 %k, 1\n  %k_on = icmp ult i64 %k_next, %terms")
        self.emit("  br i1 %k_on, label %term, label %tile_done\ntile_done:")
        self.lines[head:head] = [
            line for r in range(ROWS) for line in (
                f"  %sum{r} = phi {kind} [ {first}, %tile ], [ {sums[r]}, %term ]",
                f"  %over{r} = phi {over} [ zeroinitializer, %tile ], [ {self.flags[r]}, %term ]",
            )
        ]  # fmt: skip
        for r in range(ROWS):
            at = self.make(f"add i64 {self.make(f'mul i64 {rows[r]}, %length')}, %j")
            at = self.make(f"add i64 %out, {self.make(f'mul i64 {at}, {type_.size}')}")
            self.emit(f"  store {kind} {sums[r]}, ptr {self.make(f'inttoptr i64 {at} to ptr')}, align 8")
        every = self.flags[0]
        for flag in self.flags[1:]:
            every = self.make(f"or {over} {every}, {flag}")
        bits = self.make(f"bitcast {over} {every} to i{self.lanes}")
        self.emit(f"  %amiss = icmp ne i{self.lanes} {bits}, 0\n  br i1 %amiss, label %over, label %rows_on\nrows_on:")
        self.emit(f"  %i_next = add i64 %i, {ROWS}\n  %i_on = icmp ult i64 %i_next, %rows")
        self.emit("  br i1 %i_on, label %tile_again, label %block_done\ntile_again:\n  br label %tile\nblock_done:")
        self.lines = [line.replace("[ %i_next, %tile_done ]", "[ %i_next, %tile_again ]") for line in self.lines]

    def _load(self, starts: dict[tuple[int, int], str]) -> None:
        """What the term reads at k: of a packed array one vector, of the others a value a row."""
        for number, source in enumerate(self.term.sources):
            kind = self.vector(source.type)
            if source.by_column:
                place = self.columns.index(source)
                at = self.make(f"mul i64 %k, {self.slot * len(self.columns)}")
                at = self.make(f"add i64 {self.make(f'add i64 {at}, {self.slot * place}')}, %panel")
                wide = self.make(f"load {kind}, ptr {self.make(f'inttoptr i64 {at} to ptr')}, align 8")
                self.loaded[number] = [wide] * ROWS
                continue
            self.loaded[number] = []
            step = self.make(f"mul i64 %k, %by_term{number}")
            for r in range(ROWS):
                at = self.make(f"inttoptr i64 {self.make(f'add i64 {starts[number, r]}, {step}')} to ptr")
                one = self.make(f"load {source.type.llvm}, ptr {at}, align 1")
                self.loaded[number].append(self.splat(source.type, one))
