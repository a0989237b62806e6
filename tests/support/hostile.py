"""Sources that are small and would never end: a generator for each class, and mutations of an honest kernel.

What is done with them is in `hostile_runs.py`; whole programs for `run` are in `hostile_programs.py`."""

from __future__ import annotations

KERNEL = """
#define TILE_WIDTH 4
__global__ void tiled(const float* M, const float* N, float* P, int m, int k, int n) {
    __shared__ float Ms[TILE_WIDTH][TILE_WIDTH];
    __shared__ float Ns[TILE_WIDTH][TILE_WIDTH];
    int row = blockIdx.y * TILE_WIDTH + threadIdx.y, col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    float sum = 0.0f;
    for (int p = 0; p < (k + TILE_WIDTH - 1) / TILE_WIDTH; ++p) {
        Ms[threadIdx.y][threadIdx.x] = row < m && p * TILE_WIDTH + threadIdx.x < k ? M[row * k + p * TILE_WIDTH + threadIdx.x] : 0;
        Ns[threadIdx.y][threadIdx.x] = col < n && p * TILE_WIDTH + threadIdx.y < k ? N[(p * TILE_WIDTH + threadIdx.y) * n + col] : 0;
        __syncthreads();
        for (int i = 0; i < TILE_WIDTH; ++i) sum += Ms[threadIdx.y][i] * Ns[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && col < n) P[row * n + col] = sum;
}
"""  # noqa: E501
BODY = "__global__ void k(float* a, int n) {{ {} }}\n"


def device_array(chance):
    kind = chance.choice(["__device__", "__constant__", "static __device__"])
    return f"{kind} float g[{chance.choice([10**7, 10**8, 10**9, 2**31 - 1])}];\n" + BODY.format("a[0] = g[n];")


def stringize(chance):
    depth = chance.randint(24, 40)
    lines = ["#define S(x) #x", "#define T(x) S(x)", "#define E0(x) x x"]
    lines += [f"#define E{i}(x) E{i - 1}(x) E{i - 1}(x)" for i in range(1, depth)]
    return "\n".join(lines) + f"\nconst char* p = T(E{depth - 1}(a));\n" + BODY.format("")


def doubling_macro(chance):
    depth = chance.randint(18, 60)
    lines = [f"#define M{i} M{i + 1} M{i + 1}" for i in range(depth)]
    return "\n".join(lines) + f"\n#define M{depth} 1 +\n" + BODY.format("a[0] = M0 0;")


def macro_chain(chance):
    depth = chance.randint(2000, 20000)
    lines = [f"#define M{i} M{i + 1}" for i in range(depth)]
    return "\n".join(lines) + f"\n#define M{depth} 1\n" + BODY.format("a[0] = M0;")


def device_functions(chance):
    depth = chance.randint(20, 60)
    lines = ["__device__ float f0(float x) { return x; }"]
    lines += [f"__device__ float f{i}(float x) {{ return f{i - 1}(x) + f{i - 1}(x); }}" for i in range(1, depth)]
    return "\n".join(lines) + "\n" + BODY.format(f"a[threadIdx.x] = f{depth - 1}(1.0f);")


def many_kernels(chance):
    count = chance.randint(100, 600)
    return "".join(KERNEL.replace("tiled", f"k{i}", 1).replace("#define TILE_WIDTH 4", "") for i in range(count)).join(
        ["#define TILE_WIDTH 4\n", ""]
    )


def much_punctuation(chance):
    return BODY.format(chance.choice(";({[") * chance.choice([10**4, 10**6, 8 * 2**20 - 100]))


def long_loop(chance):
    body = chance.choice(
        [
            "while (1) a[0] += 1;",
            "for (long i = 0; i < 1000000000000; ++i) a[0] += i;",
            "for (;;) for (;;) for (;;) n++;",
            "do { a[n] = n; } while (n == n);",
        ]
    )
    return KERNEL.replace("float sum = 0.0f;", f"float* a = P; float sum = 0.0f; {body}")


def deep(chance):
    depth = chance.choice([50, 1000, 100000])
    left, right = chance.choice(
        [("(", ")"), ("{", "}"), ("-(", ")"), ("a[", "]"), ("if (n) {", "}"), ("n ? 1 : (", ")")]
    )
    return BODY.format(f"a[0] = {left * depth} 1 {right * depth};")


def local_array(chance):
    size = chance.choice([10**6, 10**8, 2**31, 2**62])
    return KERNEL.replace("float sum", f"float big[{size}]; __shared__ float more[{size}]; float sum")


def odd_numbers(chance):
    number = chance.choice(
        ["0x1p999999999999", "1e99999999", "0x" + "f" * 10**5, "9" * 10**5, "0b" + "1" * 10**4, "1'" * 10**4 + "1",
         "0xp5", "1e+-5", "08", "'\\x'", "''", "1.0.0"]
    )  # fmt: skip
    return BODY.format(f"a[0] = {number};")


def odd_printf(chance):
    call = chance.choice(
        ['printf("%*d", NAN, 1);', 'printf("%.*f", 1e30, 1.0);', 'printf("%999999999d", 1);', 'printf("%n%s", a, a);',
         'printf("%*.*d", -2147483648, -5, 1);', 'printf("%c", 1e300);', 'printf("\\x1b[2J\\a");']
    )  # fmt: skip
    return KERNEL.replace("float sum = 0.0f;", f"float sum = 0.0f; {call}")


def huge_grid(chance):
    grid = chance.choice(
        ["2147483647, 65535, 65535", "2147483647", "1, 65535, 65535", "-1, 3", "0", "99999999999999999999"]
    )
    block = chance.choice(["1024", "1", "32, 32", "1024, 1024, 64", "0"])
    host = f"int main() {{ dim3 g({grid}); dim3 b({block}); float *a, *b2, *c; tiled<<<g, b>>>(a, b2, c, 8, 8, 8); }}"
    return KERNEL + host


def huge_shift_or_size(chance):
    value = chance.choice(["1 << 62", "1 / 0", "-5", "2147483647 * 2147483647", "0"])
    return f"#define N ({value})\n" + KERNEL.replace("float sum", "float here[N]; float sum")


def terminal(chance):
    noise = chance.choice(["\x1b[31m", "\x07", "\x9b2J", "\x1b]0;gone\x07", "\u202e", "\x00", "\x7f"])
    return KERNEL.replace("float sum", f"/* {noise} */ float {chance.choice(['', noise])} sum")


def mutated(chance):
    text = KERNEL
    for _ in range(chance.randint(1, 12)):
        at = chance.randrange(len(text))
        what = chance.randrange(5)
        if what == 0:
            text = text[:at] + text[at + chance.randint(1, 9) :]
        elif what == 1:
            text = text[:at] + chance.choice("(){}[];,*&<>#\"'\\0x\n") + text[at:]
        elif what == 2:
            end = min(len(text), at + chance.randint(1, 60))
            text = text[:end] + text[at:end] * chance.randint(1, 4) + text[end:]
        elif what == 3:
            text = text.replace(
                chance.choice(["m", "k", "n", "4", "0", "float", "int"]),
                chance.choice(["-1", "n", "long", "2147483647", "x"]),
                1,
            )
        else:
            text = text[:at] + chr(chance.randrange(1, 0x3000)) + text[at:]
    return text


def includes(chance):
    line = chance.choice(
        ['#include "include.cu"', '#include "/dev/zero"', "#include <" + "../" * 2000 + "x>", "#include"]
    )
    return f"{line}\n" * chance.choice([1, 40, 3000]) + KERNEL  # the file's own name is include.cu


def conditions(chance):
    depth = chance.choice([10, 3000, 100000])
    inside = chance.choice(
        ["#if 1\n", "#ifdef X\n#else\n", "#if defined(X) || (1 << 70) / 0\n", "#if " + "(" * 3000 + "\n"]
    )
    return inside * depth + KERNEL + "#endif\n" * depth


def pasting(chance):
    depth = chance.randint(12, 30)
    lines = ["#define C(x, y) x##y", "#define D(x) C(x, x)", "#define E0 a"]
    lines += [f"#define E{i} D(E{i - 1})" for i in range(1, depth)] + ["#define V(...) __VA_ARGS__, __VA_ARGS__"]
    return "\n".join(lines) + "\n" + BODY.format(f"int E{depth - 1} = {'V(' * depth}1{')' * depth};")


def long_token(chance):
    count = chance.choice([10**4, 10**6, 8 * 2**20 - 200])
    return chance.choice(
        [
            lambda: BODY.format('const char* s = "' + "x" * count + '";'),
            lambda: BODY.format("int " + "x" * count + ";"),
            lambda: KERNEL + "/*" + "*" * count,
            lambda: KERNEL + "//" + "\\\n" * (count // 2),
            lambda: BODY.format("a[0] = '" + "y" * count + "';"),
            lambda: " " * count + KERNEL,
            lambda: "#define A " + "1 + " * (count // 4) + "1\n" + BODY.format("a[0] = A;"),
        ]
    )()


def many_things(chance):
    count = chance.choice([1000, 30000, 200000])
    return chance.choice(
        [
            lambda: BODY.format("".join(f"int v{i} = {i};" for i in range(count))),
            lambda: "__constant__ int t[] = {" + "1," * count + "};\n" + BODY.format("a[0] = t[n];"),
            lambda: BODY.format("switch (n) {" + "".join(f"case {i}: a[{i}] = 1;" for i in range(count)) + "}"),
            lambda: "".join(f"struct S{i} {{ int x; }};\n" for i in range(count)) + KERNEL,
            lambda: "enum E {" + "".join(f"e{i}," for i in range(count)) + "};\n" + KERNEL,
            lambda: "__global__ void k(" + ",".join(f"float* a{i}" for i in range(count)) + ") { a0[0] = 1; }",
            lambda: BODY.format("a[0] = " + " + ".join(["n"] * count) + ";"),
            lambda: BODY.format(
                "".join(f"__shared__ float s{i}[8]; s{i}[threadIdx.x] = n;" for i in range(count // 20))
            ),
            lambda: BODY.format("if (n) a[0] = 1; else " * (count // 10) + ";"),
            lambda: BODY.format("n = " * count + "1;"),
        ]
    )()


def templates(chance):
    depth = chance.choice([30, 1000, 100000])
    return chance.choice(
        [
            "template <int N> __device__ int f() { return f<N - 1>() + f<N - 1>(); }\n"
            + BODY.format(f"a[0] = f<{depth}>();"),
            "template <class T> " * depth + KERNEL,
            "__device__ int f(int n) { return f(n + 1) * f(n); }\n" + BODY.format("a[0] = f(1);"),
            "__device__ int g(int);\n"
            "__device__ int f(int n) { return g(n); }\n__device__ int g(int n) { return f(n); }\n"
            + BODY.format("a[0] = f(1);"),
            "struct S { S s; };\n" + BODY.format("S x; a[0] = 1;"),
            f"typedef int T0[9]; {' '.join(f'typedef T{i} T{i + 1}[9];' for i in range(min(depth, 400)))}\n"
            + BODY.format(f"T{min(depth, 400)} x; a[0] = 1;"),
        ]
    )  # fmt: skip


def wide_launch(chance):
    """Threads, barriers and shared memory in plenty, in a launch that is allowed."""
    grid, block = chance.choice([(65535, 1024), (2**31 - 1, 1), (4096, 1024)]), chance.choice(["", "__syncthreads();"])
    body = f"for (int i = 0; i < n; ++i) {{ {block} a[i % 8] += i; }}"
    return (
        BODY.format(body)
        + f"int main() {{ float* a; k<<<{grid[0]}, {grid[1]}>>>(a, {chance.choice([1, 10**6, 2**31 - 1])}); }}"
    )


def noise(chance):
    """No text at all: bytes of any kind, in any encoding."""
    data = chance.randbytes(chance.choice([10, 1000, 10**5]))
    start = chance.choice([b"", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"MZ", b"\x7fELF", KERNEL.encode()])
    return (start + data).decode("utf-8", "surrogateescape")


CLASSES = (
    device_array, stringize, doubling_macro, macro_chain, device_functions, many_kernels, much_punctuation, long_loop,
    deep, local_array, odd_numbers, odd_printf, huge_grid, huge_shift_or_size, terminal, mutated, includes, conditions,
    pasting, long_token, many_things, templates, wide_launch, noise,
)  # fmt: skip
