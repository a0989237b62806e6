"""Programs of several files: definitions in other files, headers of the project."""

from __future__ import annotations

import os

import pytest

from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.project import folders_above

pytestmark = pytest.mark.drawn(5)  # each program is compiled in a process, 0.2 to 2 s

HEADER = """
#ifndef TWICE_H
#define TWICE_H
#define COUNT 8
struct Pair { float x, y; Pair(float a, float b); float sum() const; };
__global__ void twice(float* x, int n);
void on_the_card(float* h, int n);
extern int calls;
#endif
"""
DEFINED = """
#include "twice.h"
static float bias = 1;
int calls = 5;
Pair::Pair(float a, float b) : x(a), y(b) {}
float Pair::sum() const { return x + y; }
__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }
void on_the_card(float* h, int n) {
  float* d; cudaMalloc(&d, n * 4); cudaMemcpy(d, h, n * 4, cudaMemcpyHostToDevice);
  twice<<<1, 32>>>(d, n); cudaMemcpy(h, d, n * 4, cudaMemcpyDeviceToHost); cudaFree(d); calls++; h[0] += bias;
}
"""
MAIN = """
#include <cstdio>
#include "twice.h"
#include "../../common/three.h"
int main(int argc, char** argv) {
  float h[COUNT]; for (int i = 0; i < COUNT; i++) h[i] = i;
  on_the_card(h, COUNT);
  printf("%g %g %d %g %d %d\\n", h[0], h[7], calls, Pair(3, 4).sum(), three(), argc);
}
"""


@pytest.fixture
def project(tmp_path):
    for folder in ("lab/src", "lab/include", "common"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "lab/include/twice.h").write_text(HEADER)
    (tmp_path / "lab/src/twice.cu").write_text(DEFINED)
    (tmp_path / "common/three.h").write_text("inline int three() { return 3; }\n")
    (tmp_path / "lab/src/main.cu").write_text(MAIN)
    return tmp_path


def test_definitions_and_headers_of_the_project_are_found(project):
    report = run_program(project / "lab/src/main.cu", capture=True)
    assert report.output == "1 14 6 7 3 1\n", report.message
    assert report.notes == ["twice.cu was read as part of the program: it defines what is declared here"]


def test_given_files_are_used_and_their_kernels_checked(project):
    (project / "lab/src/twice.cu").write_text(DEFINED.replace("if (i < n)", ""))
    options = Options(sources=[str(project / "lab/src/twice.cu")])
    report = run_program(project / "lab/src/main.cu", ["7"], options, capture=True)
    assert report.output == "1 14 6 7 3 2\n"
    assert report.notes == []
    assert [(f.kind.value, f.place.file.rpartition("/")[2], f.place.line) for f in report.faults][:1] == [
        ("out-of-bounds", "twice.cu", 7)
    ]


def test_the_built_in_helper_replaces_a_copy_of_the_samples(project):
    """The real helper_cuda.h defines its macros only after CUDA's own headers."""
    copy = "/* Copyright NVIDIA Corporation. */\n#ifdef __DRIVER_TYPES_H__\n#define checkCudaErrors(v) (v)\n#endif\n"
    main = project / "lab/src/main.cu"
    main.write_text(
        '#include "helper_cuda.h"\nint main() { int* d; checkCudaErrors(cudaMalloc(&d, 4)); cudaFree(d); }\n'
    )
    for folder in ("common", "lab/src"):
        (project / folder / "helper_cuda.h").write_text(copy)
        assert run_program(main, capture=True).ended == "exit", folder
    (project / "lab/src/helper_cuda.h").write_text("#define checkCudaErrors(v) (v)\n")  # a student's own
    assert run_program(main, capture=True).ended == "exit"


OWN_HELPER = """
#include <stdio.h>
#define checkCudaErrors(v) report((v), #v)
inline void report(cudaError_t e, const char* call) { if (e) printf("own: %s\\n", call); }
inline int FindCudaDevice(int wanted) { return wanted + 40; }
"""
USES_OWN = """
#include "helper_cuda.h"
int main() { int* d; checkCudaErrors(cudaMalloc(&d, 4)); printf("%d\\n", FindCudaDevice(2)); cudaFree(d); }
"""


@pytest.mark.parametrize("folder", ["lab/src", "lab/include", "common", "common/inc"])
@pytest.mark.parametrize("heading", ["", "/* Copyright NVIDIA Corporation. All rights reserved. */\n"])
def test_a_projects_own_helper_is_read_if_the_built_in_one_is_not_enough(project, folder, heading):
    (project / folder).mkdir(exist_ok=True)
    (project / folder / "helper_cuda.h").write_text(heading + OWN_HELPER)
    (project / "lab/src/main.cu").write_text(USES_OWN)
    report = run_program(project / "lab/src/main.cu", capture=True)
    assert (report.output, report.faults) == ("42\n", []), report.message


def test_the_built_in_helper_is_used_if_the_projects_own_cannot_be_read(project):
    (project / "common/helper_cuda.h").write_text("#define checkCudaErrors(v) (v)\nstruct { constexpr operator ~;\n")
    main = project / "lab/src/main.cu"
    main.write_text('#include "helper_cuda.h"\nint main() { return findCudaDevice(0, 0); }\n')
    assert run_program(main, capture=True).ended == "exit"
    main.write_text('#include "helper_cuda.h"\nint main() { return nowhere(); }\n')
    refused = run_program(main, capture=True)
    assert refused.ended == "refused"
    assert "helper_cuda.h:2" in refused.message  # the message of the first attempt


def test_two_definitions_are_ambiguous(project):
    (project / "lab/include/twice.h").rename(project / "lab/include/api.h")
    for name in ("one", "two"):
        (project / f"lab/src/{name}.cu").write_text(DEFINED.replace("twice.h", "api.h"))
    (project / "lab/src/twice.cu").unlink()
    (project / "lab/src/main.cu").write_text(MAIN.replace("twice.h", "api.h"))
    report = run_program(project / "lab/src/main.cu", capture=True)
    assert report.ended == "refused"
    assert report.status == 2
    assert "one.cu, two.cu define it" in report.message
    assert "tilewise run main.cu one.cu" in report.message


def test_files_outside_the_project_and_other_files_are_not_read(project):
    main = project / "lab/src/main.cu"
    (project / "secret.txt").write_text("int secret;\n")
    main.write_text('#include "../../secret.txt"\nint main() { return 0; }\n')
    refused = run_program(main, capture=True)
    assert refused.ended == "refused"
    assert "lies outside the program's folder" in refused.message
    (project / "lab/src/link.h").symlink_to("/etc/passwd")
    main.write_text('#include "link.h"\nint main() { return 0; }\n')
    assert run_program(main, capture=True).ended == "refused"


def test_the_project_ends_at_its_repository_at_home_and_at_world_writable_folders(tmp_path, monkeypatch):
    deep = tmp_path / "a/b/c/d/e/f"
    deep.mkdir(parents=True)
    assert folders_above(deep) == [deep.parent, deep.parent.parent, deep.parent.parent.parent]
    (tmp_path / "a/.git").mkdir()
    assert folders_above(deep)[-1] == tmp_path / "a"
    assert len(folders_above(deep)) == 5
    os.chmod(tmp_path / "a/b/c", 0o777)
    assert folders_above(deep) == [deep.parent, deep.parent.parent]
    monkeypatch.setenv("HOME", str(deep.parent))
    assert folders_above(deep) == []


def test_a_header_in_a_folder_of_its_name(tmp_path):
    """<parts.cuh> of a project that gives its compiler a path: found in parts/, with the headers it names itself."""
    (tmp_path / "one" / "src").mkdir(parents=True)
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "parts.cuh").write_text("#include <vector>\nusing Row = std::vector<int>;\n")
    program = tmp_path / "one" / "src" / "main.cu"
    program.write_text("#include <parts.cuh>\nint main() { Row r(3, 2); return r[0] + r[2]; }\n")
    report = run_program(program, [], Options(), capture=True)
    assert (report.ended, report.status) == ("exit", 4), report.message


def test_a_header_in_an_unusual_folder_is_found_if_it_is_the_only_one(tmp_path):
    folder = tmp_path / "transpose" / "src"
    folder.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    program = folder / "main.cu"
    program.write_text('#include <cstdio>\n#include "sizes.cuh"\nint main() { printf("%d\\n", SIDE); }\n')
    shared = tmp_path / "shared_by_all" / "Include" / "sizes.cuh"
    shared.parent.mkdir(parents=True)
    shared.write_text("#define SIDE 32\n")
    report = run_program(program, [], Options(), capture=True)
    assert (report.message, report.output) == ("", "32\n")
    other = tmp_path / "other" / "sizes.cuh"
    other.parent.mkdir()
    other.write_text("#define SIDE 64\n")
    assert "sizes.cuh is neither beside the program" in run_program(program, [], Options(), capture=True).message


def test_a_header_declares_what_its_file_defines_below_the_use(tmp_path):
    (tmp_path / "fill.h").write_text("void fill(float* a, int n);\n")
    program = tmp_path / "main.cu"
    program.write_text(
        '#include <cstdio>\n#include "fill.h"\nint main() { float a[2]; fill(a, 2); printf("%g", a[1]); }\n'
        "void fill(float* a, int n) { for (int i = 0; i < n; i++) a[i] = i; }\n"
    )
    report = run_program(program, [], Options(), capture=True)
    assert (report.message, report.output) == ("", "1")
    program.write_text(program.read_text().replace('#include "fill.h"', ""))
    assert "fill is declared at line 4, below its use" in run_program(program, [], Options(), capture=True).message
