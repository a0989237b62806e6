"""Properties proved for every size: the right kernels are, the broken ones are refuted by the smallest size."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from mutant_kernels import EXERCISES, SQUARE, STEPPING, compare, mutant, right_kernels
from proof_programs import LAUNCH, program
from seeds import next_seed
from tilewise.cli.check import command
from tilewise.emulator.check.loading import choose, load
from tilewise.emulator.check.prepared import Prepared
from tilewise.emulator.check.simulate import AtShape, simulate
from tilewise.emulator.limits import DEFAULT
from tilewise.emulator.prove.claim import BOUNDS
from tilewise.emulator.prove.prove import Verdict, claims, prove
from tilewise.errors import LimitError
from tilewise.teaching.course.assignment import Assignment
from tilewise.teaching.course.grading import grade_text
from tilewise.teaching.trace.proofs import prove_file

pytest.importorskip("z3")
NO_CHECK = SQUARE.replace("if (Row < Width && Col < Width)\n        P", "P")
BROKEN = {
    "no boundary check": (NO_CHECK, "global bounds"),
    "wrong check": (SQUARE.replace("if (Row < Width && ph", "if (Row < Width + 1 && ph"), "global bounds"),
    "only the row is checked": (SQUARE.replace(" && ph * TILE_WIDTH + tx < Width)", ")"), "rows"),
    "first barrier missing": (SQUARE.replace("__syncthreads();", "", 1), "shared races"),
    "second barrier missing": (SQUARE[::-1].replace("__syncthreads();"[::-1], "", 1)[::-1], "shared races"),
    "divergent barrier": (SQUARE.replace("__syncthreads();", "if (Row < Width) __syncthreads();", 1), "barriers"),
    "off by one": (SQUARE.replace("if (Row < Width && Col", "if (Row <= Width && Col"), "global bounds"),
    "grid rounded down": (SQUARE.replace("blocks = (Width + TILE_WIDTH - 1) / ", "blocks = Width / "), "launch"),
}  # fmt: skip
KINDS = {"global bounds": "out-of-bounds", "rows": "silent-overrun", "shared races": "race",
         "barriers": "divergent-barrier", "launch": "launch"}  # fmt: skip


def proof_of(text):
    loaded = load(text, None, None, DEFAULT)
    return prove(Prepared(loaded, choose(loaded, None)[0]), DEFAULT)


def verdicts(text):
    return {a.name: a for a in proof_of(text).answers}


@pytest.mark.drawn(1)
@pytest.mark.parametrize("rung", ["naive", "tiled_edges", "coarsened"])
def test_every_property_of_a_rung_is_proved(rung):
    report = prove_file(rung, limits=DEFAULT)
    assert report.proved, report.text()
    assert {a.name for a in report.proofs[0].answers} >= {
        "launch",
        "global bounds",
        "rows",
        "global races",
        "arithmetic",
    }


@pytest.mark.slow  # its quads make questions of a second
def test_register_tiled_is_proved():
    report = prove_file("register_tiled", limits=replace(DEFAULT, seconds=60.0))
    assert report.proved, report.text()


@pytest.mark.parametrize("text", [SQUARE, STEPPING])
def test_the_courses_kernels_are_proved(text):
    proof = proof_of(text)
    assert proof.proved, proof
    assert "launched as in line" in proof.assumption


@pytest.mark.drawn(2)  # each takes a second or more: the smallest size is searched for
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_form_is_refuted_by_the_smallest_size(name):
    text, refuted = BROKEN[name]
    answer = verdicts(text)[refuted]
    assert answer.verdict is Verdict.REFUTED, answer
    smallest = next(n for n in range(1, 41) if fails(text, n, KINDS[refuted], answer.witness.finding.array))
    assert answer.witness.sizes == {"Width": smallest}


def fails(text, size, kind, array):
    loaded = load(text, None, None, DEFAULT)
    prepared = Prepared(loaded, choose(loaded, None)[0])
    done = simulate(prepared, AtShape((size,) * 3), seed=0, limits=DEFAULT)
    return any(f.kind == kind and f.array == array for f in done.findings)


UNFILLED = {
    "a block smaller than the tile": (SQUARE.replace("dim3(TILE_WIDTH, TILE_WIDTH)>>>", "dim3(TILE_WIDTH, 3)>>>"),
                                      "shared reads"),
    "an edge that is not filled": (SQUARE.replace("        else\n            Mds[ty][tx] = 0;\n", ""), "shared reads"),
    "the last column": (SQUARE.replace("Col < Width)\n        P", "Col + 1 < Width)\n        P"), "coverage"),
    "a grid of one block": (SQUARE.replace("dim3(blocks, blocks)", "dim3(1, blocks)"), "coverage"),
}  # fmt: skip


@pytest.mark.drawn(2)
@pytest.mark.parametrize("name", UNFILLED)
def test_cells_that_nothing_is_stored_to_are_found(name):
    text, where = UNFILLED[name]
    assert verdicts(text)[where].verdict is not Verdict.PROVED


NOT_MODELLED = {
    "a data-dependent index": ("P[Row * Width + Col]", "P[(int)Pvalue]", "global bounds"),
    "a data-dependent barrier": ("__syncthreads();", "if (Pvalue > 3) __syncthreads();", "barriers"),
    "a barrier behind break": ("        __syncthreads();", "if (Pvalue > 3) break;\n__syncthreads();", "barriers"),
    "switch": ("float Pvalue = 0;", "float Pvalue = 0; switch (Width) { case 1: return; }", "all"),
    "a pointer in memory": ("float Pvalue = 0;", "float Pvalue = 0; float* a[1]; a[0] = P;", "all"),
    "bits": ("int Row = by * TILE_WIDTH + ty;", "int Row = (by * TILE_WIDTH + ty) ^ Width;", "global races"),
}  # fmt: skip


@pytest.mark.drawn(1)  # seconds: every size that the solver names is run
@pytest.mark.parametrize("name", NOT_MODELLED)
def test_what_is_not_modelled_is_not_proved(name):
    old, new, where = NOT_MODELLED[name]
    answer = verdicts(SQUARE.replace(old, new, 1))[where]
    assert answer.verdict is not Verdict.PROVED
    assert answer.line
    assert answer.reason or answer.witness


def test_an_assert_is_part_of_the_assumption():
    fitting = NO_CHECK.replace("float Pvalue = 0;", "float Pvalue = 0; assert(Row < Width && Col < Width);")
    proof = proof_of("#include <assert.h>\n" + fitting)
    assert "where its asserts hold" in proof.assumption
    assert {a.name: a for a in proof.answers}["global bounds"].verdict is Verdict.PROVED


def test_a_pointer_into_an_array_is_not_its_start():
    moved = SQUARE.replace(">>>(M, N, P, Width)", ">>>(M + 1, N, P, Width)")
    answer = verdicts(moved)["global bounds"]
    assert answer.verdict is Verdict.OPEN
    assert "how long M is" in answer.reason


def test_sizes_at_which_a_length_is_negative_are_left_out():
    shorter = "int n = 1000; float *a, *b; cudaMalloc(&a, (n - 5) * 4); cudaMalloc(&b, (n - 5) * 4);"
    loaded = load(program(shorter + LAUNCH, kernel="if (i < n - 5) y[i] = x[i];"), None, None, DEFAULT)
    claim = next(claims(Prepared(loaded, choose(loaded, None)[0]), DEFAULT, None))
    assert claim.launch({"n": 1}) is None
    assert claim.launch({"n": 9}).arguments[0].bytes == 16
    assert "from 0 to" in claim.sentence(BOUNDS[0])


def test_arithmetic_that_may_overflow_lowers_the_bound():
    unguarded = SQUARE.replace("float Pvalue = 0;", "float Pvalue = 0; int cell = Row * Width + Col;")
    proof = proof_of(unguarded)
    assert proof.proved
    assert "from 1 to 1,073,741,824" in proof_of(SQUARE).assumption
    assert "from 1 to 1,073,741,824" not in proof.assumption


@pytest.mark.slow  # three bounds on the sizes are tried
def test_unsigned_arithmetic_that_wraps_is_no_proof():
    wraps = SQUARE.replace("M[Row * Width + ph * TILE_WIDTH + tx]", "M[Row * Width + (threadIdx.x - 1u) / 2]")
    assert verdicts(wraps)["global bounds"].verdict is not Verdict.PROVED


@pytest.mark.slow  # forty sizes of each mutant are run
def test_no_mutant_that_fails_is_proved():
    rng = random.Random(next_seed())
    for text in rng.choices(right_kernels(), k=4):
        verdict, wrong = compare(mutant(text, rng), rng)
        assert not [w for w in wrong if w.startswith("FALSE")], (verdict, wrong)


def test_the_command_prints_a_table_with_the_assumption_first(tmp_path):
    file = tmp_path / "kernel.cu"
    file.write_text(SQUARE, encoding="utf-8")
    done = CliRunner().invoke(command, [str(file), "--prove", "--strict"], standalone_mode=False)
    assert done.return_value == 0
    assert "for every Width from 1 to" in done.output.splitlines()[0]
    assert "launched as in line 31" in done.output.splitlines()[0]
    assert done.output.count("proved") == 10


def test_json_and_sarif_carry_property_assumption_and_witness():
    report = prove_file(BROKEN["second barrier missing"][0], limits=DEFAULT)
    assert "fails at Width = 5" in report.text()
    refuted = [p for p in report.to_json()["proofs"][0]["properties"] if p["verdict"] == "refuted"]
    assert refuted[0]["witness"]["sizes"] == {"Width": 5}
    results = report.sarif()["runs"][0]["results"]
    assert {r["kind"] for r in results} >= {"pass", "fail"}
    assert all({"assumption", "property"} <= r["properties"].keys() for r in results)
    failed = [r for r in results if r["kind"] == "fail"]
    assert failed[0]["properties"]["witness"]["sizes"] == {"Width": 5}
    assert failed[0]["properties"]["witness"]["threads"]


def test_a_check_says_that_it_holds_for_every_size_or_where_it_fails(tmp_path):
    file = tmp_path / "kernel.cu"
    for text, said in ((SQUARE, "MatrixMulKernel: and proved for every size"), (NO_CHECK, "fails at Width = 1: ")):
        file.write_text(text, encoding="utf-8")
        done = CliRunner().invoke(command, [str(file)], standalone_mode=False)
        assert said in done.output


@pytest.mark.parametrize(("name", "points"), [("solution.cu", 2.0), ("starter.cu", 0.0)])
def test_an_assignment_may_have_points_for_the_proof(name, points):
    file = EXERCISES / "09-edges" / name
    assignment = replace(Assignment(), points={"proof": 2.0}, shapes=((9, 5, 10),), tile=8)
    grade = grade_text(file.read_text(encoding="utf-8"), assignment, seed=1)
    assert grade.items[0].points == points, grade
    assert bool(grade.items[0].why) == (points == 0)


def test_memory_that_the_solver_takes_counts(monkeypatch):
    taken = []

    def check(solver):
        taken.append(b"x" * (200 << 20))
        time.sleep(30)

    monkeypatch.setattr("z3.Solver.check", check)
    begun = time.monotonic()
    with pytest.raises(LimitError, match="memory"):
        prove_file("naive", limits=replace(DEFAULT, memory=100 << 20))
    assert time.monotonic() - begun < 20  # of the 30 that it would sleep: the machine may be busy


def test_ctrl_c_ends_a_proof_at_once():
    sent = []

    def interrupt():
        sent.append(time.process_time())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.7, interrupt)
    timer.start()

    def prove_on():
        while True:
            prove_file("register_tiled", limits=DEFAULT)

    with pytest.raises(KeyboardInterrupt):
        prove_on()
    assert time.process_time() - sent[0] < 0.5


def test_without_z3_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "z3", None)
    with pytest.raises(Exception, match=r"tilewise\[prove\]"):
        prove_file(Path("nothing.cu"), limits=DEFAULT)


def test_an_index_read_from_an_array_is_not_refuted_by_values_that_nobody_gave():
    text = """
    __global__ void count(const int* labels, int* counts, int n, int k) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) atomicAdd(&counts[labels[i]], 1);
    }
    void f(int n, int k) {
        int *labels, *counts;
        cudaMalloc(&labels, n * sizeof(int)); cudaMalloc(&counts, k * sizeof(int));
        count<<<(n + 255) / 256, 256>>>(labels, counts, n, k);
    }
    """
    (proof,) = prove_file(text, limits=DEFAULT).proofs
    bounds = next(a for a in proof.answers if a.name == "global bounds")
    assert (bounds.verdict, bounds.reason) == (Verdict.OPEN, "a value of labels decides, line 4")
    (proof,) = prove_file(text.replace("counts[labels[i]]", "counts[i]"), limits=DEFAULT).proofs
    assert proof.refuted


def test_a_launch_that_main_computes_from_the_card_is_not_refuted(tmp_path):
    program = tmp_path / "program.cu"
    program.write_text("""
    __global__ void set(float* a, int n) { if (threadIdx.x < n) a[threadIdx.x] = 1; }
    int main() {
        cudaDeviceProp p;
        cudaGetDeviceProperties(&p, 0);
        int threads = p.major < 2 ? 2048 : 32;
        float *a, h[32];
        cudaMalloc(&a, 32 * sizeof(float));
        set<<<1, threads>>>(a, 32);
        cudaMemcpy(h, a, 32 * sizeof(float), cudaMemcpyDeviceToHost);
        cudaFree(a);
    }
    """)
    done = CliRunner().invoke(command, [str(program)])
    assert (done.exit_code, "fails at" in done.output) == (0, False), done.output
