"""A program's files as one stream of tokens: conditionals on the architecture."""

from __future__ import annotations

import pytest

from tilewise.emulator.host.translation_unit import read_unit

CHOICE = "\n#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700\nyes\n#else\nno\n#endif\n"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        (CHOICE, "no"),
        ("__global__ void k(int* a) { if (a) { a[0] = 1; }" + CHOICE + "}", "yes"),
        ("__device__ int f() {" + CHOICE + "}", "yes"),
        ("__host__ __device__ int f() {" + CHOICE + "}", "no"),
        ("__global__ void k() {}\nint main() { int x = 1;" + CHOICE + "}", "no"),
        ("__device__ int v;\nint main() {" + CHOICE + "}", "no"),
    ],
)
def test_the_architecture_is_defined_where_code_runs_on_the_card_alone(tmp_path, text, chosen):
    (tmp_path / "p.cu").write_text(text)
    tokens = read_unit(tmp_path / "p.cu", [], {}).tokens
    assert [t.text for t in tokens if t.text in ("yes", "no")] == [chosen]
