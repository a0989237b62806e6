"""Random nests of three loops, twice in one program: as usual, and with a `while` as the innermost loop.

The sums of the second are never vectorised: both must give the same bytes, counters and output."""

from __future__ import annotations

import random

HEAD = "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <vector>\n"
FLOATS = ("float", "double")
WHOLE = ("int", "unsigned", "long")
INDICES = (
    ("{i} * k + {t}", "{t} + k * {i}", "{t} * m + {i}", "({i}) * k + ({t})"),
    ("{t} * n + {j}", "{j} * k + {t}", "{t} * n + n - 1 - {j}"),
    ("{i} * n + {j}", "{j} * m + {i}"),
)


class Nest:
    def __init__(self, seed: int) -> None:
        r = self.r = random.Random(seed)
        self.seed = seed
        self.m, self.n, self.k = r.randrange(3, 150), r.randrange(10, 130), r.randrange(20, 90)
        self.a = r.choice([*FLOATS, *WHOLE, "short", "unsigned char"])
        self.b = r.choice([self.a] * 3 + [*FLOATS, *WHOLE])
        real = self.a in FLOATS or self.b in FLOATS
        self.c = r.choice(FLOATS) if real else r.choice([*FLOATS, *WHOLE])
        self.way = r.choice(["pointer", "pointer", "vector", "static", "rows", "member"])
        self.form = r.choice(["sum", "sum", "place", "place again", "locals", "assigned"])
        self.odd = r.choice(["", "", "", "store", "alias", "break", "print", "from 5"])
        self.outside = r.random() < 0.4
        self.large = r.random() < 0.15
        self.names = r.choice([("i", "j", "t"), ("row", "col", "q"), ("y", "x", "z")])
        i, j, t = self.names
        if self.way in ("static", "rows"):
            places = [f"A[{i}][{t}]", f"B[{t}][{j}]", f"C[{i}][{j}]"]
        else:
            before = "s." if self.way == "member" else ""
            chosen = [r.choice(forms).format(i=i, j=j, t=t) for forms in INDICES]
            places = [f"{before}{name}[{index}]" for name, index in zip("ABC", chosen, strict=True)]
        self.A, self.B, self.C = places
        self.more = r.choice(["", "", f" - {self.B}", " * 2"]) if self.c in FLOATS else ""
        self.zeroed = r.random() < 0.5
        self.filled = r.choice(["0", "q % 3"])
        self.aliased = self.odd == "alias" and self.a == self.b == self.c and self.way == "pointer"
        self.closed = r.random() < 0.2

    def inner(self, body: str, quick: bool) -> str:
        t = self.names[2]
        kind = "" if self.outside else "int "
        first = 5 if self.odd == "from 5" else 0
        if quick:
            return f"for ({kind}{t} = {first}; {t} < k; {t}++) {body}"
        return f"{{ {kind}{t} = {first}; while ({t} < k) {{ {body} {t}++; }} }}"

    def loop(self, name: str, bound: str) -> str:
        test = f"{name} <= {bound} - 1" if self.closed else f"{name} < {bound}"
        return f"for ({'' if self.outside else 'int '}{name} = 0; {test}; ++{name})"

    def after(self) -> str:
        i, j, _ = self.names
        first = "B[0][0]" if self.way in ("static", "rows") else "s.B[0]" if self.way == "member" else "B[0]"
        return {
            "store": f" if ({i} == {self.m // 2} && {j} == {self.n // 2}) {first} = 3;",
            "break": f" if ({j} == {self.n // 2}) break;",
            "print": f' if ({j} == 3 && {i} % 5 == 0) printf(" ");',
        }.get(self.odd, "")

    def function(self, name: str, quick: bool) -> str:
        i, j, t = self.names
        term = f"{self.A} * {self.B}{self.more}"
        if self.form.startswith("place"):
            body = f"{self.C} += {term};" if self.form == "place" else f"{self.C} = {self.C} + {term};"
            inside = (f"{self.C} = 0; " if self.zeroed else "") + self.inner(body, quick)
        else:
            body = {
                "sum": f"sum += {term};",
                "locals": f"{{ {self.a} one = {self.A}; {self.b} two = {self.B}; sum += one * two; }}",
                "assigned": f"sum = sum + {term};",
            }[self.form]
            inside = f"{'' if self.outside else self.c + ' '}sum = 1; {self.inner(body, quick)} {self.C} = sum;"
        head = f"int {i}, {j}, {t}; {self.c} sum = 7; " if self.outside else ""
        tail = f' printf("%d %d %d %.17g ", {i}, {j}, {t}, (double)sum);' if self.outside else ""
        nest = f"{self.loop(i, 'm')} {{ {self.loop(j, 'n')} {{ {inside}{self.after()} }} }}"
        return f"void {name}({self.parameters()}int m, int n, int k) {{ {head}{nest}{tail} }}\n"

    def parameters(self) -> str:
        each = list(zip((self.a, self.b, self.c), "ABC", (self.k, self.n, self.n), strict=True))
        if self.way == "vector":
            return "".join(f"std::vector<{type_}>& {name}, " for type_, name, _ in each)
        if self.way == "rows":
            return "".join(f"{type_} {name}[][{length}], " for type_, name, length in each)
        if self.way == "member":
            return "S s, "
        return "" if self.way == "static" else "".join(f"{type_}* {name}, " for type_, name, _ in each)

    def arrays(self) -> tuple[str, str, str]:
        """Global declarations, main's first statements, and the arguments before m, n, k."""
        each = [(self.a, "A", "m", "k"), (self.b, "B", "k", "n"), (self.c, "C", "m", "n")]
        sizes = {"m": self.m, "n": self.n, "k": self.k}
        if self.way in ("static", "rows"):
            made = "".join(f"static {type_} {x}[{sizes[p]}][{sizes[q]}]; " for type_, x, p, q in each)
            flat = "".join(f"{type_}* P{x} = &{x}[0][0]; " for type_, x, _, _ in each)
            return made + "\n", flat, "A, B, C, " if self.way == "rows" else ""
        if self.way == "vector":
            made = "".join(
                f"std::vector<{type_}> {x}({p} * {q}); {type_}* P{x} = {x}.data(); " for type_, x, p, q in each
            )
            return "", made, "A, B, C, "
        made = "".join(f"{type_}* P{x} = ({type_}*)malloc(20000 * sizeof({type_})); " for type_, x, _, _ in each)
        if self.aliased:
            made += f"PC = {self.r.choice(['PA', 'PB'])}; "
        if self.way == "member":
            fields = "".join(f"{type_}* {x}; " for type_, x, _, _ in each)
            return f"struct S {{ {fields}}};\n", made + "S s = {PA, PB, PC}; ", "s, "
        return "", made, "PA, PB, PC, "

    def program(self) -> str:
        outside, first, given = self.arrays()
        value = {
            type_: "rand() / 3e7 - 20" if type_ in FLOATS else "rand()" if self.large else "rand() % 9"
            for type_ in (self.a, self.b)
        }
        fill = (
            f"srand({self.seed}); for (int q = 0; q < m * k; q++) PA[q] = {value[self.a]}; "
            f"for (int q = 0; q < k * n; q++) PB[q] = {value[self.b]}; "
            f"for (int q = 0; q < m * n; q++) PC[q] = {self.filled};\n"
        )
        return (
            HEAD + outside + self.function("one", True) + self.function("two", False)
            + f"int main() {{ int m = {self.m}, n = {self.n}, k = {self.k}; {first}\n"
            f"{fill}one({given}m, n, k); static {self.c} kept[20000]; memcpy(kept, PC, m * n * sizeof({self.c}));\n"
            f'printf("\\n");\n{fill}two({given}m, n, k);\n'
            f'printf("\\n%d\\n", memcmp(kept, PC, m * n * sizeof({self.c})));\n'
            "return 0; }\n"
        )  # fmt: skip
