"""Grading: every typical fault loses its own points, and no file affects another file's grade."""

from __future__ import annotations

import csv
import io
import json
import random
import shlex
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from class_of_submissions import ASSIGNMENT, FULL, TILED, cases
from seeds import next_seed
from tilewise.cli.main import run
from tilewise.errors import UsageError
from tilewise.teaching.course import Assignment, grade_text, read_assignment, reports
from tilewise.teaching.course.summary_page import page_name

CASES = cases()


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    file = tmp_path_factory.mktemp("assignment") / "a.toml"
    file.write_text(ASSIGNMENT, encoding="utf-8")
    return file


def write_class(folder, some):
    for i, case in enumerate(some):
        home = folder / f"{i:03d}-{case.name}"
        home.mkdir()
        data = case.text if isinstance(case.text, bytes) else case.text.encode()
        (home / "product.cu").write_bytes(data)


def wrong(case, grade):
    """The differences from the case's expected grade."""
    points = {item["name"]: item["points"] for item in grade["items"]}
    out = [
        f"{case.name}: {key} {points[key]} for {case.wanted[key]}" for key in FULL if points[key] != case.wanted[key]
    ]
    return out if grade["status"] in case.status else [*out, f"{case.name}: {grade['status']} ({grade['trouble']})"]


@pytest.mark.parametrize("case", [c for c in CASES if c.status == ("graded",)], ids=lambda c: c.name)
def test_each_fault_loses_its_own_points(case, assignment):
    seed = next_seed() % 2**31
    made = grade_text(case.text, read_assignment(assignment), seed)
    assert wrong(case, made.to_json()) == [], f"seed {seed}"


def test_a_bad_file_costs_only_itself(tmp_path, assignment, capsys):
    some = [
        c for c in CASES if c.name in ("right", "unfinished", "endless", "not-text", "markup", "huge-file", "recursion")
    ]
    (tmp_path / "class").mkdir()
    write_class(tmp_path / "class", some)
    command = ["grade", str(tmp_path / "class"), "--assignment", str(assignment), "--json", "-j", "2", "--seconds", "8"]
    assert run([*command, "--html", str(tmp_path / "html")]) == 1
    grades = json.loads(capsys.readouterr().out)["grades"]
    assert [problem for case, grade in zip(some, grades, strict=True) for problem in wrong(case, grade)] == []
    pages = {p.name: p.read_text(encoding="utf-8") for p in (tmp_path / "html").iterdir()}
    assert len(pages) == len(some) + 1
    for text in pages.values():
        assert "<script" not in text
        assert "default-src 'none'" in text
    assert "&lt;/span&gt;&lt;script&gt;alert(1)" in "".join(pages.values())


@pytest.mark.slow
def test_a_class_of_a_hundred_is_graded_within_a_minute_and_every_grade_is_right(tmp_path, assignment, capsys):
    seed = next_seed() % 2**31
    dice = random.Random(seed)
    stoppers = [c for c in CASES if c.status != ("graded",)]
    some = [*stoppers, *dice.choices([c for c in CASES if c.status == ("graded",)], k=100 - len(stoppers))]
    dice.shuffle(some)
    (tmp_path / "class").mkdir()
    write_class(tmp_path / "class", some)
    started = time.monotonic()
    run(["grade", str(tmp_path / "class"), "--assignment", str(assignment), "--json", "-j", "2"])
    took = time.monotonic() - started
    grades = json.loads(capsys.readouterr().out)["grades"]
    problems = [problem for case, grade in zip(some, grades, strict=True) for problem in wrong(case, grade)]
    print(f"{len(grades)} in {took:.1f} s, seed {seed}")
    assert problems == [], f"seed {seed}"
    assert took < 60


def test_a_hard_coded_answer_fails_whatever_it_prints(assignment):
    """Right for one set of operands, and it prints the right product: the grader's operands are others each time."""
    text = TILED.replace("P[row * n + col] = sum;", 'P[row * n + col] = 30; printf("PASSED\\n");')
    made = grade_text(text, read_assignment(assignment), next_seed() % 2**31)
    assert next(i.points for i in made.items if i.name == "product") == 0


def test_the_reference_may_be_python_or_cuda(tmp_path):
    (tmp_path / "ours.py").write_text("def ours(M, N):\n    return 2 * (M @ N)\n")
    (tmp_path / "ours.cu").write_text(TILED.replace("= sum;", "= 2 * sum;"))
    for reference in ("ours.py:ours", "ours.cu"):
        (tmp_path / "a.toml").write_text(f'reference = "{reference}"\ntile = 4\n[points]\nproduct = 1\nfaults = 1\n')
        graded_by = read_assignment(tmp_path / "a.toml")
        assert grade_text(TILED, graded_by, 5).points == 1
        assert grade_text(TILED.replace("= sum;", "= sum + sum;"), graded_by, 5).points == 2


def test_reports_hold_files_that_do_not_parse(tmp_path, assignment, capsys):
    graded_by = read_assignment(assignment)
    texts = {c.name: c.text for c in CASES if c.name in ("right", "no-first-barrier", "unfinished")}
    grades = [grade_text(text, graded_by, 1, name, f"{name}.cu") for name, text in (*texts.items(), ("=cmd", "int x;"))]
    made = {
        "csv": reports.as_csv(grades, graded_by, "pt"), "junit": reports.as_junit(grades, graded_by, "pt"),
        "sarif": reports.as_sarif(grades), "github": reports.as_github(grades),
        "json": reports.as_json(grades, graded_by, 1),
    }  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(made["csv"])))
    assert [row["points"] for row in rows] == ["11", "8", "0", "0"]
    assert rows[3]["name"] == "'=cmd", "a spreadsheet must not run a name"
    suites = ElementTree.fromstring(made["junit"]).findall("testsuite")
    assert [s.get("failures") for s in suites] == ["0", "1", "5", "5"]
    results = made["sarif"]["runs"][0]["results"]
    assert {r["ruleId"] for r in results} == {"race", "not-graded"}
    assert made["github"].count("::notice ") == 4
    assert "title=race::" in made["github"]
    assert made["json"]["grades"][2]["status"] == "refused"
    (tmp_path / "bad.cu").write_text(texts["unfinished"])
    command = ["grade", str(tmp_path / "bad.cu"), "--assignment", str(assignment), "-j", "1", "--lang", "pt"]
    assert run([*command, "-o", str(tmp_path / "out.xml"), "--format", "junit"]) == 1
    assert "não compreendida" in (tmp_path / "out.xml").read_text(encoding="utf-8")
    assert run(command) == 1
    assert "não compreendida" in capsys.readouterr().out


def test_submissions_come_from_folders_patterns_and_standard_input(tmp_path, assignment, capsys, monkeypatch):
    for name in ("an.cu", "binh.cu"):
        (tmp_path / name).write_text(TILED)
    monkeypatch.setattr("sys.stdin", io.StringIO(TILED))
    assert run(["grade", str(tmp_path / "*.cu"), "-", "--assignment", str(assignment), "--json", "-j", "1"]) == 0
    assert [g["name"] for g in json.loads(capsys.readouterr().out)["grades"]] == ["an", "binh", "stdin"]
    assert run(["grade", str(tmp_path / "nobody*.cu")]) == 2
    assert "nothing fits it as a pattern" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("shape = 4", "'shape' is not known; an assignment has title, shapes"),
        ("[points]\nbeauty = 3", "points for 'beauty' are not known; there are parses, product"),
        ("[points]\nproduct = -1", "points.product must be a number from 0 to"),
        ('tile = "4"', "tile must be a whole number, not '4'"),
        ('reference = "gone.py:f"', "the reference gone.py is not beside it"),
        ('reference = "nonsense"', "nonsense"),
        ('shapes = ["4x4"]', "4x4"),
        ("[points]\nfaults = 1\nbank-conflict = 1", "points.bank-conflict is counted for matrix products: it needs"),
        ("block = [0]", "block must be up to three whole numbers"),
        ("= 3", "is not TOML"),
    ],
)
def test_an_invalid_assignment_has_one_message(tmp_path, text, sentence):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(UsageError, match=r"a\.toml|nonsense") as caught:
        read_assignment(tmp_path / "a.toml")
    assert sentence in str(caught.value)


def test_the_default_assignment():
    assert grade_text(TILED, Assignment(), 3).full
    assert page_name(3, "../<b>x/é") == "003-b-x.html"
    assert page_name(4, "…") == "004-submission.html"


MAIN = """
#include <cstdio>
#include <cstdlib>
int main(int argc, char** argv) {
    int m = atoi(argv[1]), k = 7, n = 5;
    float *M = (float*)calloc(m * k, 4), *N = (float*)calloc(k * n, 4), *P = (float*)malloc(m * n * 4);
    float *dM, *dN, *dP;
    cudaMalloc(&dM, m * k * 4); cudaMalloc(&dN, k * n * 4); cudaMalloc(&dP, m * n * 4);
    cudaMemcpy(dM, M, m * k * 4, cudaMemcpyHostToDevice);
    cudaMemcpy(dN, N, k * n * 4, cudaMemcpyHostToDevice);
    dim3 block(TILE_WIDTH, TILE_WIDTH), grid((n - 1) / TILE_WIDTH + 1, (m - 1) / TILE_WIDTH + 1);
    product<<<grid, block>>>(dM, dN, dP, m, k, n);
    cudaMemcpy(P, dP, m * n * 4, cudaMemcpyDeviceToHost);
    printf("PASSED %g\\n", P[0]);
    cudaFree(dM); cudaFree(dN); cudaFree(dP);
    free(M); free(N); free(P);
    return 0;
}
"""


def test_a_whole_program_may_be_required_and_its_product_is_still_the_grader_s(tmp_path, capsys):
    """Printing PASSED earns nothing, and a right kernel in a wrong program only the kernel's points."""
    programs = {
        "right": (TILED + MAIN, 4, 3, "", {}),
        "twice": (TILED + MAIN.replace("free(P);", "free(P); free(P);"), 4, 0, "faults", {"kinds": ["double-free"]}),
        "status": (TILED + MAIN.replace("return 0;", "return 3;"), 4, 0, "ended", {"status": 3, "message": ""}),
        "zeros": (TILED.replace("= sum;", "= 0;") + MAIN, 0, 3, "", {}),
        "no-main": (TILED, 4, 0, "ended", None),
    }
    graded_by = 'shapes = ["8x4x12"]\ntile = 4\narguments = ["6"]\n[points]\nproduct = 4\nprogram = 3\n'
    (tmp_path / "a.toml").write_text(graded_by, encoding="utf-8")
    for name, (text, *_) in programs.items():
        (tmp_path / f"{name}.cu").write_text(text, encoding="utf-8")
    assert run(["grade", str(tmp_path), "--assignment", str(tmp_path / "a.toml"), "-j", "2", "--json"]) == 1
    for graded in json.loads(capsys.readouterr().out)["grades"]:
        _, product, program, why, values = programs[graded["name"]]
        items = {item["name"]: item for item in graded["items"]}
        assert (items["product"]["points"], items["program"]["points"]) == (product, program), graded
        assert items["program"]["why"] == (f"grade.program.{why}" if why else "")
        if values is None:
            assert "main" in items["program"]["values"]["message"]
        else:
            assert items["program"]["values"] == values


def test_the_classroom_s_workflow_runs_as_it_stands(tmp_path, capsys, monkeypatch):
    """Its own command lines, where a repository has one right and one wrong submission."""
    workflow = (Path(__file__).parents[3] / "docs" / "exercises" / "classroom.yml").read_text(encoding="utf-8")
    lines = [shlex.split(line.split("run: ")[1]) for line in workflow.splitlines() if "run: tilewise" in line]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "assignment.toml").write_text(ASSIGNMENT)
    (tmp_path / "right.cu").write_text(TILED)
    (tmp_path / "race.cu").write_text(TILED.replace("__syncthreads();", "", 1))
    for command in lines:
        assert run([*command[1:], "-j", "1", "--lang", "pt"]) == 1
    printed = capsys.readouterr().out
    assert "::error file=race.cu,line=12,title=race::Condição de corrida" in printed
    assert "ponha __syncthreads() depois de carregar o tile" in printed
    assert "::notice file=right.cu::right: 11 of 11" in printed
    assert {p.name for p in (tmp_path / "report").iterdir()} >= {"index.html", "junit.xml"}
