"""Whole programs that would never end, or take all memory: a generator for each class, for `tilewise run`."""

from __future__ import annotations

import hostile

HEAD = "#include <cstdio>\n#include <cstdlib>\n#include <cstring>\n#include <vector>\n#include <string>\n"
KERNEL = "__global__ void k(float* a, int n) { a[threadIdx.x] = n; }\n"


def _main(body, before=""):
    return f"{HEAD}{KERNEL}{before}int main() {{ {body} return 0; }}\n"


def endless(chance):
    return _main(
        chance.choice(
            [
                "for (;;) {}", "volatile int x = 0; while (1) x++;", 'while (1) printf("x\\n");', "for (;;) getchar();",
                "for (;;) { float* d; cudaMalloc(&d, 64); cudaFree(d); }",
                "float* d; cudaMalloc(&d, 4096); for (;;) { k<<<1, 32>>>(d, 1); cudaDeviceSynchronize(); }",
                "for (;;) { char* p = (char*)malloc(1000); free(p); }", "std::string s; for (;;) s = s + \"x\";",
            ]
        )
    )  # fmt: skip


def greedy(chance):
    size = chance.choice(["1000", "1 << 20", "1 << 30", "(size_t)-1", "(size_t)1 << 40", "-1"])
    return _main(
        chance.choice(
            [
                f"for (;;) {{ char* p = (char*)malloc({size}); if (p) memset(p, 1, 1000); }}",
                f"for (;;) {{ float* d; cudaMalloc(&d, {size}); }}",
                "std::vector<int> v; for (;;) v.push_back(1);",
                "std::vector<std::vector<int>> v; for (;;) v.push_back(std::vector<int>(1000));",
                f"char* p = (char*)calloc({size}, {size}); p[0] = 1;",
                f"float* d; cudaMallocManaged(&d, {size}); d[0] = 1;",
            ]
        )
    )


def recursive(chance):
    text = chance.choice(
        [
            "int f(int n) { return f(n + 1) + 1; }\n",
            "int g(int);\nint f(int n) { int a[1000]; a[n % 9] = 1; return g(n + 1); }\nint g(int n) { return f(n);}\n",
            "int f(int n) { return n > 60 ? 1 : f(n + 1) + f(n + 1); }\n",
        ]
    )
    return _main('printf("%d\\n", f(1));', text)


def many_statements(chance):
    count = chance.choice([1000, 20000, 100000])
    return _main(
        chance.choice(
            [
                "int x = 0; " + "x += 1; " * count,
                "".join(f"int v{i} = {i};" for i in range(count)),
                "int x = " + "+".join(["1"] * count) + ";",
                "{" * min(count, 30000) + "}" * min(count, 30000),
                'printf("' + "%d " * count + '\\n"' + ", 1" * min(count, 5000) + ");",
            ]
        )
    )


def large_static(chance):
    size = chance.choice([10**7, 10**9, 2**31 - 1, 2**40])
    return _main("a[0] = 1; local();", f"float a[{size}]; void local() {{ float b[{size}]; b[0] = 1; }}\n")


LIES = (
    "int* p = (int*)8; *p = 1;",
    "int a[4]; a[1 << 28] = 1;",
    "int* p = new int[4]; delete[] p; p[0] = 1; delete[] p;",
    'char b[4]; strcpy(b, "0123456789012345678901234567890123456789");',
    "memset((void*)main, 0, 100);",
    "void (*f)() = (void (*)())12345; f();",
    'int x = 1 / (int)0; printf("%d", x);',
    'printf("%s", (char*)7);',
    'printf("%n", (int*)7);',
    "exit(-1);",
    "abort();",
    'system("touch never");',
    'FILE* f = fopen("/etc/passwd", "w");',
    "float* d; cudaMalloc(&d, 4); d[0] = 1;",
    "cudaMemcpy((void*)8, (void*)16, 1 << 30, cudaMemcpyDeviceToHost);",
)


def lying_addresses(chance):
    return _main(chance.choice(LIES))


def kernel_with_main(chance):
    """A hostile kernel, launched."""
    text = chance.choice(hostile.CLASSES)(chance)
    if "int main" in text:
        return text
    launch = "float* a; cudaMalloc(&a, 4096); k<<<1, 32>>>(a, 4); cudaDeviceSynchronize();"
    return f"{text}\nint main() {{ {launch} return 0; }}\n"


CLASSES = (endless, greedy, recursive, many_statements, large_static, lying_addresses, kernel_with_main)
