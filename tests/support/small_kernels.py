"""Small random CUDA kernels whose meaning C fixes to the last bit: no overflow traps, no races, no undefined order.

Every kernel has the same parameters: inputs of three types, and one output array for each of four. Names carry the
kernel's number, so that many kernels can be compiled as one file.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

THREADS, BLOCKS, INPUTS = 12, 2, 64

INTEGERS = {
    "signed char": (8, True), "unsigned char": (8, False), "short": (16, True), "unsigned short": (16, False),
    "int": (32, True), "unsigned int": (32, False), "long long": (64, True), "unsigned long long": (64, False),
    "bool": (1, False), "size_t": (64, False),
}  # fmt: skip
FLOATS = ("float", "double")
PARAMETERS = (
    "const int* in_i, const unsigned int* in_u, const float* in_f, "
    "long long* out_l, int* out_i, float* out_f, double* out_d, int n"
)
OUTPUTS = {"out_l": "int64", "out_i": "int32", "out_f": "float32", "out_d": "float64"}
OUT_EACH = 4  # values a thread leaves in each output


@dataclass(frozen=True)
class Variable:
    name: str
    type: str
    writable: bool = True

    @property
    def floating(self) -> bool:
        return self.type in FLOATS


class Kernel:
    def __init__(self, seed: int, number: int) -> None:
        self.r = random.Random(seed)
        self.n = number
        self.top: list[str] = []
        self.lines: list[str] = []
        self.variables: list[Variable] = []
        self.arrays: list[tuple[str, str, int]] = []  # name, element, length; a power of two
        self.functions: list[tuple[str, str, list[str]]] = []
        self.macros: list[str] = []
        self.count = 0
        self.depth = 1
        self.text = self._kernel()

    # -- names and choices

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def chance(self, share: float) -> bool:
        return self.r.random() < share

    def integer_type(self) -> str:
        return self.r.choice([*INTEGERS, "int", "int", "unsigned int", "int"])

    def any_type(self) -> str:
        return self.integer_type() if self.chance(0.65) else self.r.choice(FLOATS)

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    # -- expressions: (text, floating)

    def integer(self, depth: int = 3) -> str:
        """An integer expression of whatever type C gives it."""
        r = self.r
        known = [v.name for v in self.variables if not v.floating]
        if depth <= 0 or self.chance(0.12):
            choice = r.random()
            if choice < 0.6 and known:
                return r.choice(known)
            if choice < 0.75:
                return f"in_i[{self.index(INPUTS)}]"
            if choice < 0.85:
                return f"in_u[{self.index(INPUTS)}]"
            return self.integer_literal()
        kind = r.randrange(16)
        a = self.integer(depth - 1)
        if kind <= 4:
            return f"({a} {r.choice('+-*&|^+-*')} {self.integer(depth - 1)})"
        if kind == 5:
            return f"({a} {r.choice(['/', '%'])} {self.divisor(depth - 1)})"
        if kind == 6:
            return f"({a} {r.choice(['<<', '>>'])} ({self.integer(depth - 1)} & {r.choice([7, 15, 31])}))"
        if kind == 7:
            return f"{r.choice(['-', '~', '!', '+'])}({a})"
        if kind == 8:
            return f"({self.condition(depth - 1)} ? {a} : {self.integer(depth - 1)})"
        if kind == 9:
            return (
                f"({self.integer_type()})({a})"
                if self.chance(0.6)
                else f"static_cast<{r.choice(['int', 'short'])}>({a})"
            )
        if kind == 10:
            return f"({self.condition(depth - 1)})"
        if kind == 11:
            return self.to_integer(self.floating(depth - 1), r.choice(["int", "short", "unsigned char", "long long"]))
        if kind == 12 and self.arrays:
            chosen = [x for x in self.arrays if x[1] not in FLOATS]
            if chosen:
                name, _, length = r.choice(chosen)
                return f"{name}[{self.index(length)}]"
        if kind == 13 and self.functions:
            chosen = [f for f in self.functions if f[1] not in FLOATS]
            if chosen:
                return self.call(r.choice(chosen), depth - 1)
        if kind == 14 and self.macros:
            return f"{r.choice(self.macros)}({a}, {self.integer(depth - 1)})"
        if kind == 15:
            return f"{r.choice(['min', 'max'])}((int)({a}), (int)({self.integer(depth - 1)}))"
        return f"({a} + {self.integer(depth - 1)})"

    def integer_literal(self) -> str:
        r = self.r
        return r.choice(
            [
                str(r.randrange(20)), str(r.randrange(1 << 31)), f"{r.randrange(1 << 32)}u", hex(r.randrange(1 << 31)),
                "2147483647", f"{r.randrange(1 << 40)}ll", f"{r.randrange(1 << 50)}ull", "'a'", "true",
                f"0{r.randrange(8)}{r.randrange(8)}", "(-2147483647 - 1)", "-1",
            ]
        )  # fmt: skip

    def divisor(self, depth: int) -> str:
        """Never 0 and never -1."""
        if self.chance(0.3):
            return self.r.choice(["3", "7u", "-5", "16", "100ll", "-3ll"])
        if self.chance(0.3):
            return f"-(int)(({self.integer(depth)} & 7) + 2)"
        return f"(({self.integer(depth)} & 15) + 1)"

    def index(self, length: int) -> str:
        """Inside for sure; a product that wraps would be a fault of its own."""
        r = self.r
        counters = [v.name for v in self.variables if v.name.startswith(("i", "t")) and v.type == "int"]
        if self.chance(0.5) and counters:
            return f"({r.choice(counters)} + {r.randrange(8)}) % {length}"
        return str(r.randrange(length))

    def condition(self, depth: int) -> str:
        r = self.r
        choice = r.random()
        if choice < 0.5 or depth <= 0:
            return f"{self.integer(depth - 1)} {r.choice(['<', '>', '<=', '>=', '==', '!='])} {self.integer(depth - 1)}"
        if choice < 0.7:
            return f"{self.floating(depth - 1)} {r.choice(['<', '>', '<=', '>='])} {self.floating(depth - 1)}"
        joined = f"({self.condition(depth - 1)}) {r.choice(['&&', '||'])} ({self.condition(depth - 1)})"
        return joined if choice < 0.92 else f"!({joined})"

    def floating(self, depth: int = 3) -> str:
        r = self.r
        known = [v.name for v in self.variables if v.floating]
        if depth <= 0 or self.chance(0.15):
            choice = r.random()
            if choice < 0.55 and known:
                return r.choice(known)
            if choice < 0.8:
                return f"in_f[{self.index(INPUTS)}]"
            return r.choice(["0.5f", "1.0f", "3e-3f", "0.1", "1.5f", "2.f", "1e10f", "-0.0f", "7.0"])
        kind = r.randrange(11)
        a = self.floating(depth - 1)
        if kind <= 4:
            return f"({a} {r.choice('+-*/')} {self.floating(depth - 1)})"
        if kind == 5:
            return f"({r.choice(FLOATS)})({self.integer(depth - 1)})"
        if kind == 6:
            return f"({self.condition(depth - 1)} ? {a} : {self.floating(depth - 1)})"
        if kind == 7:
            name = r.choice(["fabsf", "floorf", "ceilf", "sqrtf", "truncf"])
            return f"{name}((float)({a}))"
        if kind == 8:
            return f"{r.choice(['fminf', 'fmaxf'])}((float)({a}), (float)({self.floating(depth - 1)}))"
        if kind == 9:
            return f"({a} {r.choice('+-*')} {self.integer(depth - 1)})"
        return f"-({a})" if self.chance(0.5) else f"(float)({a})"

    def to_integer(self, text: str, type_: str) -> str:
        """A float as an integer, clipped first: out of range is not defined."""
        low, high = {"short": (-30000, 30000), "unsigned char": (0, 250), "unsigned short": (0, 60000)}.get(
            type_, (-1000000, 1000000)
        )
        bits, signed = INTEGERS[type_]
        if bits == 8 and signed:
            low, high = -120, 120
        if not signed:
            low = 0
        return f"({type_})fmin(fmax((double)({text}), {low}.0), {high}.0)"

    def value(self, type_: str, depth: int = 3) -> str:
        if type_ in FLOATS:
            return self.floating(depth) if self.chance(0.8) else self.integer(depth)
        if self.chance(0.15) and type_ != "bool":
            return self.to_integer(self.floating(depth), type_)
        return self.integer(depth)

    def call(self, function: tuple[str, str, list[str]], depth: int) -> str:
        name, _, parameters = function
        return f"{name}(in_i, in_u, in_f, tid, {', '.join(self.value(p, depth) for p in parameters)})"

    # -- statements

    def declare(self, type_: str | None = None, start: str | None = None, writable: bool = True) -> Variable:
        type_ = type_ or self.any_type()
        variable = Variable(self.fresh("v"), type_, writable)
        start = start if start is not None else self.value(type_)
        form = self.r.random()
        if form < 0.1:
            self.emit(f"{type_} {variable.name}({start});")
        elif form < 0.2:
            self.emit(f"{type_} {variable.name}; {variable.name} = {start};")
        else:
            self.emit(f"{'const ' if not writable else ''}{type_} {variable.name} = {start};")
        self.variables.append(variable)
        return variable

    def statement(self, room: int) -> None:
        r = self.r
        kind = r.randrange(14)
        targets = [v for v in self.variables if v.writable]
        whole = [v for v in targets if not v.floating and v.type != "bool"]
        if kind <= 1 or not whole:
            self.declare()
        elif kind <= 4:
            self.assign(r.choice(targets))
        elif kind == 5:
            v = r.choice(whole)
            self.emit(r.choice([f"{v.name}++;", f"--{v.name};", f"++{v.name};", f"{v.name}--;"]))
        elif kind == 6 and len(whole) > 1:
            counter = r.choice(whole)
            self.used_once(counter, [v for v in targets if v != counter])
        elif kind in (7, 8) and room > 0:
            self.branch(room)
        elif kind in (9, 10) and room > 0:
            self.loop(room)
        elif kind == 11 and room > 0:
            self.switch(room)
        elif kind == 12:
            self.array()
        elif kind == 13 and self.arrays:
            name, element, length = r.choice(self.arrays)
            op = r.choice(["=", "+=", "="]) if element in FLOATS else r.choice(["=", "+=", "^=", "-=", "*="])
            right = self.floating() if element in FLOATS else self.integer()
            self.emit(f"{name}[{self.index(length)}] {op} {right};")
        else:
            self.assign(r.choice(targets))

    def assign(self, v: Variable) -> None:
        if v.floating:
            op = self.r.choice(["=", "+=", "-=", "*=", "/="])
            self.emit(f"{v.name} {op} {self.floating() if self.chance(0.8) else self.integer()};")
        elif v.type == "bool":
            self.emit(f"{v.name} = {self.condition(2)};")
        else:
            op = self.r.choice(["=", "=", "+=", "-=", "*=", "&=", "|=", "^=", "<<=", ">>=", "/=", "%="])
            right = self.integer()
            if op in ("<<=", ">>="):
                right = f"({right} & 7)"
            elif op in ("/=", "%="):
                right = self.divisor(2)
            self.emit(f"{v.name} {op} {right};")

    def used_once(self, counter: Variable, targets: list[Variable]) -> None:
        """++ and assignments inside an expression that names the variable nowhere else."""
        kept, self.variables = self.variables, [v for v in self.variables if v != counter]
        v = self.r.choice([t for t in targets if not t.floating] or targets)
        c = counter.name
        inner = self.r.choice([f"{c}++", f"++{c}", f"{c}--", f"({c} += 3)", f"({c} ^= 5)"])
        form = self.r.randrange(3)
        if form == 0:
            text = f"({inner} * 3)"
        elif form == 1:
            text = f"(({self.condition(1)}) && {inner} > 4)"
        else:
            text = f"(({self.condition(1)}) ? {inner} : 2)"
        self.emit(f"{v.name} = {text};")
        self.variables = kept

    def block(self, room: int) -> None:
        known, arrays = len(self.variables), len(self.arrays)
        self.depth += 1
        for _ in range(self.r.randint(1, 3)):
            self.statement(room - 1)
        self.depth -= 1
        del self.variables[known:], self.arrays[arrays:]

    def branch(self, room: int) -> None:
        self.emit(f"if ({self.condition(2)}) {{")
        self.block(room)
        if self.chance(0.3):
            self.emit(f"}} else if ({self.condition(2)}) {{")
            self.block(room)
        if self.chance(0.6):
            self.emit("} else {")
            self.block(room)
        self.emit("}")

    def loop(self, room: int) -> None:
        i = self.fresh("i")
        bound = self.r.choice(["3", "(tid & 3) + 1", "5", f"({self.integer(1)} & 3)"])
        form = self.r.randrange(4)
        counter = Variable(i, "int", writable=False)
        if form <= 1:
            if form == 0:
                self.emit(f"for (int {i} = 0; {i} < {bound}; {self.r.choice(['++' + i, i + '++', i + ' += 2'])}) {{")
            else:
                j = self.fresh("j")
                self.emit(f"for (int {i} = 0, {j} = {self.integer(1)}; {i} < 4; ++{i}, {j} -= 3) {{")
            self.variables.append(counter)
            self.block(room)
            if self.chance(0.4):
                self.emit(f"    if ({self.condition(1)}) {self.r.choice(['break', 'continue'])};")
                self.emit(f"    {self.assigned_here()}")
        else:
            self.emit(f"int {i} = 0;")
            self.emit(f"while ({i} < 3 && ({self.condition(1)})) {{" if form == 2 else "do {")
            self.variables.append(counter)
            self.block(room)
            self.emit(f"    ++{i};")
            self.emit("}" if form == 2 else f"}} while ({i} < {self.r.randint(1, 3)});")
        if form <= 1:
            self.emit("}")
        self.variables.remove(counter)

    def assigned_here(self) -> str:
        v = self.r.choice([v for v in self.variables if v.writable and not v.floating and v.type != "bool"])
        return f"{v.name} += {self.integer(1)};"

    def switch(self, room: int) -> None:
        self.emit(f"switch ((int)({self.integer(2)}) & 3) {{")
        for case in range(self.r.randint(1, 3)):
            self.emit(f"case {case}: {{")
            self.block(room)
            self.emit("}" + (" break;" if self.chance(0.7) else ""))
        if self.chance(0.5):
            self.emit(f"default: {self.assigned_here()}")
        self.emit("}")

    def array(self) -> None:
        element, length = (
            self.r.choice(["int", "unsigned int", "short", "float", "long long"]),
            self.r.choice([2, 4, 8]),
        )
        name = self.fresh("a")
        if self.chance(0.4):
            values = ", ".join(self.r.choice(["1", "2", "7", "100"]) for _ in range(self.r.randint(1, length)))
            self.emit(f"{element} {name}[{length}] = {{{values}}};")
        else:
            self.emit(f"{element} {name}[{length}];")
            self.emit(f"for (int q = 0; q < {length}; ++q) {name}[q] = q * {self.r.randint(1, 9)} + tid;")
        self.arrays.append((name, element, length))

    def shared(self) -> None:
        """Each thread writes its own cell; after the barrier it reads another's. Rows of a 2-D array likewise."""
        element, name = self.r.choice(["int", "float", "unsigned int", "short", "double"]), self.fresh("s")
        shift = self.r.randint(1, THREADS - 1)
        own = f"{name}[tid]"
        other = f"{name}[(tid + {shift}) % {THREADS}]"
        if self.chance(0.4):
            self.emit(f"__shared__ {element} {name}[3][{THREADS // 3 + 1}];")
            own = f"{name}[tid / 4][tid % 4]"
            other = f"{name}[(tid + {shift}) % {THREADS} / 4][(tid + {shift}) % 4]"
        else:
            self.emit(f"__shared__ {element} {name}[{THREADS}];")
        rounds = self.r.choice([0, 0, 3])
        if rounds:
            i = self.fresh("i")
            self.emit(f"for (int {i} = 0; {i} < {rounds}; ++{i}) {{")
            self.depth += 1
        self.emit(f"{own} = {self.value(element)};")
        self.emit("__syncthreads();")
        targets = [v for v in self.variables if v.writable and (v.floating or element not in FLOATS)]
        v = self.r.choice([t for t in targets if t.type != "bool"])
        self.emit(f"{v.name} {self.r.choice(['=', '+=', '-='])} {other};")
        self.emit("__syncthreads();")
        if rounds:
            self.depth -= 1
            self.emit("}")

    # -- declarations before the kernel

    def above(self) -> None:
        r, n = self.r, self.n
        if self.chance(0.6):
            mixed = r.choice(["((x) * 3 + (y))", "(((x) ^ (y)) >> 1)", "((x) > (y) ? (x) : (y))"])
            self.top.append(f"#define MIX_{n}(x, y) {mixed}")
            self.macros.append(f"MIX_{n}")
        self.top.append(f"#define SIZE_{n} {r.randint(1, 9)}")
        if self.chance(0.4):
            self.top += [f"#if SIZE_{n} > 4 && defined(SIZE_{n})", f"typedef {r.choice(['int', 'short'])} Word_{n};"]
            self.top += ["#else", f"typedef unsigned char Word_{n};", "#endif"]
        else:
            self.top.append(f"typedef {r.choice(['long long', 'unsigned short'])} Word_{n};")
        self.top.append(f"__device__ const int table_{n}[4] = {{3, -1, {r.randrange(99)}, SIZE_{n}}};")
        self.top.append(f"struct Pair_{n} {{ int a; float b; unsigned short c[2]; }};")
        for _ in range(r.randint(0, 2)):
            self.function()
        if self.chance(0.5):
            self.top += [
                f"__device__ void bump_{n}(int& x, unsigned int* p, int count, Pair_{n}& q) {{",
                "    for (unsigned int* e = p + count; p != e; ++p) *p = *p * 2654435761u + x, x ^= (int)(*p >> 7);",
                "    q.b += x; q.c[0] -= count, q.a = -q.a;",
                "}",
                f"__device__ Pair_{n} turned_{n}(Pair_{n} q, bool way) {{",
                f"    Pair_{n} other = {{q.c[0], q.b * 0.5f, {{(unsigned short)q.a, q.c[1]}}}};",
                "    if (way) return other;",
                "    q.a <<= 1; return q;",
                "}",
            ]
        if self.chance(0.4):
            self.top.append(
                f"template <typename T, int R> __device__ T twist_{n}(T x) {{ T y = x; for (int i = 0; i < R; ++i) "
                f"y = y * 3 + (T)i; return y; }}"
            )

    def function(self) -> None:
        outer = self.variables, self.arrays, self.lines
        self.variables, self.arrays, self.lines = [], [], []
        name, result = f"{self.fresh('f')}_{self.n}", self.any_type()
        parameters = [self.any_type() for _ in range(self.r.randint(1, 3))]
        names = [self.fresh("p") for _ in parameters]
        self.variables = [Variable(p, t) for p, t in zip(names, parameters, strict=True)]
        self.variables.append(Variable("tid", "int", writable=False))
        listed = ", ".join(f"{t} {p}" for p, t in zip(names, parameters, strict=True))
        inputs = "const int* in_i, const unsigned int* in_u, const float* in_f, int tid, "
        self.declare("int")
        for _ in range(self.r.randint(1, 3)):
            self.statement(1)
        if self.chance(0.5):
            self.emit(f"if ({self.condition(1)}) return {self.value(result, 1)};")
        self.emit(f"return {self.value(result)};")
        body = self.lines
        self.variables, self.arrays, self.lines = outer
        self.top += [f"__device__ {result} {name}({inputs}{listed}) {{", *body, "}"]
        self.functions.append((f"{name}", result, parameters))

    def _kernel(self) -> str:
        n = self.n
        self.variables.append(Variable("tid", "int", writable=False))
        self.above()
        self.emit("int tid = threadIdx.x;")
        self.emit(f"int gid = blockIdx.x * {THREADS} + tid;")
        self.variables.append(Variable("gid", "int", writable=False))
        for type_ in ("int", "unsigned int", "float", "long long"):
            self.declare(type_)
        self.emit(f"Word_{n} w = {self.integer()}; Pair_{n} pair = {{{self.r.randrange(9)}, 1.5f, {{7, 9}}}};")
        self.emit(f"pair.a {self.r.choice(['=', '+='])} {self.integer()}; pair.b = {self.floating()};")
        self.emit(f"pair.c[tid & 1] = {self.integer()}; Pair_{n} twin = pair; twin.c[1] += w;")
        for _ in range(self.r.randint(4, 9)):
            self.statement(2)
            if self.chance(0.25):
                self.shared()
        if any("bump_" in t for t in self.top):
            self.emit(f"int seen = {self.integer()}; unsigned int ring[3] = {{1, {self.r.randrange(99)}u, 5}};")
            self.emit(f"bump_{n}(seen, ring + {self.r.randrange(2)}, 2, pair);")
            self.emit(f"twin = turned_{n}({self.r.choice(['twin', 'pair'])}, {self.condition(1)});")
            self.emit("int grid2[2][3] = {{1, 2, 3}, {4, 5, 6}}; const int* walk = &grid2[0][0];")
            self.emit("grid2[tid & 1][tid % 3] += seen; long long sum2 = sizeof(short) + sizeof(pair.c);")
            self.emit("for (int z = 0; z < 6; ++z) sum2 += *(walk + z) * (z + 1);")
            for name, type_ in (("seen", "int"), ("sum2", "long long")):
                self.variables.append(Variable(name, type_))
            self.declare("unsigned int", "ring[0] ^ ring[1] ^ ring[2]")
        if any(t.startswith("template") for t in self.top):
            v = self.declare("unsigned int", f"twist_{n}<unsigned int, 3>({self.integer()})")
            self.declare("float", f"twist_{n}<float, 2>({self.floating()}) + {v.name}")
        self.results()
        text = "\n".join([*self.top, f"__global__ void k{n}({PARAMETERS}) {{", *self.lines, "}"])
        return text + "\n"

    def results(self) -> None:
        n = self.n
        whole = [v.name for v in self.variables if not v.floating] + [
            "w",
            "pair.a",
            "twin.c[0]",
            "twin.c[1]",
            f"table_{n}[tid & 3]",
        ]
        real = [v.name for v in self.variables if v.floating] + ["pair.b", "twin.b"]
        for i in range(OUT_EACH):
            share = whole[i::OUT_EACH] or ["0"]
            mixed = " ^ ".join(f"((long long){x} * {j + 3})" for j, x in enumerate(share))
            self.emit(f"out_l[gid * {OUT_EACH} + {i}] = {mixed};")
            self.emit(f"out_i[gid * {OUT_EACH} + {i}] = {' + '.join(f'(int){x}' for x in share)};")
            mine = real[i::OUT_EACH] or ["0.0f"]
            self.emit(f"out_f[gid * {OUT_EACH} + {i}] = {mine[0]};")
            self.emit(f"out_d[gid * {OUT_EACH} + {i}] = {mine[-1]};")


def kernel(seed: int, number: int = 0) -> str:
    """The text of one kernel, `k<number>`."""
    return Kernel(seed, number).text
