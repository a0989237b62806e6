"""Files as students write them: encodings, line ends, macros, missing headers."""

from __future__ import annotations

import codecs

import numpy as np
import pytest
from simt_support import course, evaluate

from tilewise.emulator.source.source import decode
from tilewise.errors import KernelError
from tilewise.teaching.trace import check, trace


@pytest.mark.parametrize(
    ("encoding", "comment"),
    [
        ("utf-8", "// nạp ô vào bộ nhớ chia sẻ"),
        ("gbk", "// 矩阵乘法的核函数,使用共享内存"),
        ("cp949", "// 행렬 곱셈 커널 공유 메모리"),
        ("cp1251", "// умножение матриц с разделяемой памятью"),
        ("latin-1", "// multiplicação de matrizes com memória compartilhada"),
        ("utf-16", "// matrices"),
    ],
)
def test_comments_in_any_language(tmp_path, encoding, comment):
    path = tmp_path / "kernel.cu"
    path.write_bytes((comment + "\n" + course("collaborative")).replace("\n", "\r\n").encode(encoding))
    assert trace(path, shape=(4, 4, 4), tile=2).counters["loads"] == 64
    assert comment in decode(path.read_bytes())


def test_a_byte_order_mark_is_no_character(tmp_path):
    path = tmp_path / "kernel.cu"
    path.write_bytes(codecs.BOM_UTF8 + course("tiled_edges").encode())
    assert check(path, shape=(3, 3, 3)).ok


def test_conditionals_and_stringizing():
    top = """
    #define A 1
    #if defined(A) && !defined(B) && (A + 1) * 2 == 4
    #define PICK(x, ...) x##1
    #elif 1
    #error not here
    #endif
    #ifdef B
    #error neither
    #else
    #define SUM(a, b) \\
        ((a) + (b))
    #endif
    """
    assert evaluate("PICK(val) + SUM(3, SUM(4, 5))", before="int val1 = 100;", top=top) == 112


def test_names_of_missing_headers_are_supplied_and_reported():
    run = check(course("matrix_struct"), shape=(3, 3, 3), tile=2).runs[0]
    assert run.grid == (2, 2, 1)
    assert run.block == (2, 2, 1)
    assert "TILE_WIDTH = 2" in run.supplied
    assert any(s.startswith("Matrix = struct") for s in run.supplied)
    assert not run.faults


def test_tile_overrides_the_file():
    run = trace(course("tiled_edges"), shape=(8, 8, 8), tile=4).run
    assert run.block == (4, 4, 1)
    text = "const int BLOCK_SIZE = 16;\n" + course("tiled_edges").replace("#define TILE_WIDTH 2", "").replace(
        "TILE_WIDTH", "BLOCK_SIZE"
    )
    assert trace(text, shape=(8, 8, 8), tile=4).run.block == (4, 4, 1)


def test_defines_of_the_caller_override():
    assert trace(course("tiled_edges"), shape=(8, 8, 8), defines={"TILE_WIDTH": 8}).run.counters["phases"] == 1


def test_wide_strings_and_host_code_are_skipped():
    host = """
    #include <vector>
    using namespace std;
    class Timer { public: Timer() : t(0) {} double t; virtual ~Timer() {} };
    template <class T> void show(const std::vector<T>& v) { for (auto& x : v) std::cout << x << "\\n"; }
    std::vector<float> make(int n) { return std::vector<float>(n, 1.0f); }
    int main(int argc, char** argv) { try { auto f = [&](int a) { return a; }; } catch (...) {} return 0; }
    """
    assert check(host + course("tiled_edges"), shape=(5, 5, 5)).ok


def test_several_kernels_are_all_checked():
    report = check(course("tiled_edges") + course("tiled_unchecked").replace("tiled_edges", "other"), shape=(3, 3, 3))
    assert [r.entry for r in report.runs] == ["tiled_edges", "other"]
    assert not report.runs[0].faults
    assert report.runs[1].faults


def test_arrays_afterwards_are_the_product():
    run = check(course("tiled_edges"), shape=(5, 5, 5)).runs[0]
    arrays = run.arrays
    assert np.array_equal(arrays["P"], arrays["M"] @ arrays["N"])


def test_line_numbers_count_spliced_strings():
    text = '__global__ void k(int* x) {\n  printf("a\\\nb");\n  x[0] = y;\n}'
    with pytest.raises(KernelError) as error:
        check(text, args={"x": np.zeros(1, np.int32)}, grid=(1,), block=(1,))
    assert error.value.line == 4
