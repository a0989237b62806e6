"""Random host programs with defined behaviour: no signed overflow, no unspecified order of evaluation."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import random

INTEGERS = ("int", "unsigned int", "long", "unsigned long", "short", "unsigned char", "signed char", "unsigned short")
FORMATS = {
    "int": "%d", "unsigned int": "%u", "long": "%ld", "unsigned long": "%lu", "short": "%d", "unsigned char": "%d",
    "signed char": "%d", "unsigned short": "%d", "float": "%.6g", "double": "%.10g", "bool": "%d", "char": "%d",
}  # fmt: skip
INCLUDES = "\n".join(f"#include <{name}>" for name in ("cstdio", "vector", "algorithm", "string"))


class Draw:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def pick(self, *choices):
        return self.random.choice(choices)

    def integer(self, names, depth=0):
        """An expression in unsigned arithmetic (which wraps), over variables of mixed types."""
        r = self.random
        if depth > 2 or r.random() < 0.25:
            if names and r.random() < 0.7:
                return r.choice(names)
            return self.pick(
                str(r.randrange(100)), f"{r.randrange(1 << 31)}u", f"'{r.choice('azAZ09')}'", "0x7f", "3ul"
            )
        a, b = self.integer(names, depth + 1), self.integer(names, depth + 1)
        op = r.choice("+-*/%&|^<>?!~c")
        if op in "+-*":
            return f"((unsigned)({a}) {op} (unsigned)({b}))"
        if op in "/%":
            return f"((unsigned)({a}) {op} ((unsigned)({b}) | 1u))"
        if op in "&|^":
            return f"(({a}) {op} ({b}))"
        if op == "<":
            return f"((unsigned)({a}) << (({b}) & 15))"
        if op == ">":
            return f"(({a}) >> (({b}) & 7))"
        if op == "?":
            return f"(({a}) < ({b}) ? ({a}) : ({b}))"
        if op == "!":
            return f"(!({a}) + (({a}) == ({b})))"
        if op == "~":
            return f"(~(unsigned)({a}))"
        return f"(({self.pick(*INTEGERS)})({a}))"

    def function(self, index: int) -> str:
        r = self.random
        types = [r.choice(INTEGERS) for _ in range(3)]
        names = ["a", "b", "c"]
        result = r.choice(INTEGERS)
        parameters = ", ".join(f"{t} {n}" for t, n in zip(types, names, strict=True))
        body = [f"{result} f{index}({parameters}) {{", f"    {r.choice(INTEGERS)} x = {self.integer(names)};"]
        names.append("x")
        body.append(f"    for (int i = 0; i < {r.randrange(1, 9)}; i++) {{")
        body.append(f"        x = {self.integer([*names, 'i'])};")
        body.append(
            f"        if ({self.integer([*names, 'i'])} % 3u == 0) {self.pick('continue;', 'x ^= 5;', 'break;')}"
        )
        body.append("    }")
        body.append(
            f"    switch ((unsigned)x % 4u) {{ case 0: x = {self.integer(names)}; case 1: x += 1; break; default: x ^= 3; }}"
        )
        body.append(f"    return {self.integer(names)};")
        return "\n".join([*body, "}"])

    def program(self) -> str:
        return f"{INCLUDES}\n{self.body('main')}"

    def body(self, entry: str) -> str:
        """The program after its includes; `entry` is the name of its main."""
        r = self.random
        parts = [
            "struct Point { int x; double y; short z[3]; Point(int a = 0, double b = 0.5) : x(a), y(b) { for (int i = 0; i < 3; i++) z[i] = (short)(a + i); } };"
        ]
        parts.append("template <typename T> T twice(T v) { return (T)(v + v); }")
        parts.append("void change(int& r, int* p, const Point& q) { r += q.x & 7; *p ^= q.z[1]; }")
        count = r.randrange(2, 5)
        parts += [self.function(i) for i in range(count)]
        main = [f"int {entry}() {{"]
        for i in range(count):
            arguments = ", ".join(str(r.randrange(-100, 1000)) for _ in range(3))
            main.append(f'    printf("%ld\\n", (long)f{i}({arguments}));')
        main.append(f"    int table[{r.randrange(3, 9)}][4] = {{ {{1, 2}}, {{3}} }}; int total = 0;")
        main.append("    for (auto& row : table) for (int v : row) total = total * 3 % 1009 + v;")
        main.append(
            f"    Point p({r.randrange(50)}, {r.random():.3f}); Point q = p; q.x += 3; int k = {r.randrange(100)}; change(total, &k, q);"
        )
        main.append('    printf("%d %d %d %.6f %zu %d\\n", total, k, q.x, q.y * 3 / 7, sizeof(Point), (int)p.z[2]);')
        main.append(
            f"    std::vector<int> v; for (int i = 0; i < {r.randrange(3, 30)}; i++) v.push_back((i * {r.randrange(1, 999)}) % 101);"
        )
        main.append("    std::sort(v.begin(), v.end(), [k](int a, int b) { return (a ^ k) < (b ^ k); });")
        main.append("    for (size_t i = 0; i < v.size(); i++) printf(\"%d%c\", v[i], i + 1 < v.size() ? ',' : '\\n');")
        for _ in range(3):
            kind = r.choice(list(FORMATS))
            value = f"{r.uniform(-50, 50):.4f}" if kind in ("float", "double") else str(r.randrange(0, 120))
            main.append(
                f'    {{ {kind} t = ({kind}){value}; printf("{FORMATS[kind]} {FORMATS["int" if kind in ("char", "bool") else kind]}\\n", t, ({"int" if kind in ("char", "bool") else kind})twice(t)); }}'
            )
        main.append(
            '    std::string s = "ab"; for (int i = 0; i < 3; i++) s += (char)(\'a\' + (k + i) % 26); printf("%s %d\\n", s.c_str(), (int)s.find("b"));'
        )
        main.append(
            "    unsigned char* bytes = (unsigned char*)&k; unsigned sum = 0; for (size_t i = 0; i < sizeof k; i++) sum = sum * 31 + bytes[i];"
        )
        main.append(
            f'    float f = {r.uniform(0, 9):.3f}f; double d = f / 3; printf("%u %d %d %.9g %g\\n", sum, (int)(f * 10), (int)(-d), d, (double)(float)d);'
        )
        main.append(f"    return {r.randrange(200)};")
        return "\n".join([*parts, *main, "}"]) + "\n"
