"""Each platform's file has the fields that its documentation lists, no others, and the points add up."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import zipfile

import nbformat
import pytest

from class_of_submissions import ASSIGNMENT, TILED
from tilewise.cli.grade import command
from tilewise.cli.main import run
from tilewise.errors import UsageError
from tilewise.teaching.course import grade_text, read_assignment
from tilewise.teaching.course.class_report import common_faults, fingerprints, similar, suspicious
from tilewise.teaching.course.exports import FORMATS, KITS, kit
from tilewise.teaching.course.grading import Grade
from tilewise.teaching.course.magic import register

RACE = TILED.replace("__syncthreads();", "", 1)
# gradescope-autograders.readthedocs.io/en/latest/specs/#output-format
GRADESCOPE = {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility", "stdout_visibility", "extra_data", "tests", "leaderboard"}  # noqa: E501  # fmt: skip
GRADESCOPE_TEST = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags", "visibility", "extra_data"}  # noqa: E501  # fmt: skip
VISIBILITY = {"hidden", "after_due_date", "after_published", "visible"}
# prairielearn.readthedocs.io/en/latest/externalGrading/#grading-results
PRAIRIELEARN = {"gradable", "format_errors", "score", "message", "output", "images", "tests"}
PRAIRIELEARN_TEST = {"name", "description", "points", "max_points", "message", "output", "images"}
OPTIONS = {"enabled", "image", "entrypoint", "timeout"}
# docs.moodle.org, "Offline grading worksheet", and the folders of "Download all submissions"
MOODLE = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum grade", "Grade can be changed", "Last modified (submission)", "Last modified (grade)", "Feedback comments"]  # noqa: E501  # fmt: skip
# community.canvaslms.com, "How do I import grades in the Gradebook?": these columns, in this order
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# github.com/classroom-resources/autograding-grading-reporter: what it reads of a runner's result
CLASSROOM_TEST = {"name", "status", "score", "max_score", "message", "test_code", "filename", "line_no", "duration"}


@pytest.fixture(scope="module")
def rules(tmp_path_factory):
    file = tmp_path_factory.mktemp("a") / "assignment.toml"
    file.write_text(ASSIGNMENT)
    return read_assignment(file)


@pytest.fixture(scope="module")
def grades(rules):
    texts = {"=an": TILED, "binh": RACE, "chi": "x"}
    made = [grade_text(text, rules, 3, name, f"{name}.cu") for name, text in texts.items()]
    return [Grade(**{**vars(grade), "id": str(i)}) for i, grade in enumerate(made, 41)]


def test_gradescope(grades, rules):
    made = json.loads(FORMATS["gradescope"](grades[1:2], rules, "en", 3))
    assert made.keys() <= GRADESCOPE
    assert made["score"] == 8 == sum(test["score"] for test in made["tests"])
    assert {made["visibility"], made["stdout_visibility"]} <= VISIBILITY
    for test in made["tests"]:
        assert test.keys() <= GRADESCOPE_TEST
        assert test["status"] in ("passed", "failed")
        assert test["visibility"] in VISIBILITY
        assert test["output_format"] in ("text", "html", "simple_format", "md", "ansi")
    assert [t["name"] for t in made["tests"] if t["status"] == "failed"] == ["faults"]


def test_prairielearn(grades, rules):
    made = json.loads(FORMATS["prairielearn"](grades[1:2], rules, "en", 3))
    assert made.keys() <= PRAIRIELEARN
    assert made["gradable"] is True
    assert made["score"] == pytest.approx(8 / 11)
    assert all(test.keys() <= PRAIRIELEARN_TEST for test in made["tests"])
    assert "no __global__" in json.loads(FORMATS["prairielearn"](grades[2:], rules, "en", 3))["message"]


def test_a_platform_that_takes_one_submission_refuses_three(grades, rules):
    for form in ("gradescope", "prairielearn", "classroom"):
        with pytest.raises(UsageError, match="there are 3"):
            FORMATS[form](grades, rules, "en", 3)


def test_moodle_and_canvas(grades, rules):
    rows = list(csv.reader(io.StringIO(FORMATS["moodle"](grades, rules, "en", 3))))
    assert rows[0] == MOODLE
    assert [(r[0], r[1], r[4], r[5]) for r in rows[1:]] == [
        ("Participant 41", "'=an", "11", "11"), ("Participant 42", "binh", "8", "11"),
        ("Participant 43", "chi", "0", "11"),
    ]  # fmt: skip
    assert "race" in rows[2][9]
    rows = list(csv.reader(io.StringIO(FORMATS["canvas"](grades, rules, "en", 3))))
    assert rows[0] == [*CANVAS, "Tiled product"]
    assert rows[1][0].strip() == "Points Possible"
    assert [(r[1], r[5]) for r in rows[1:]] == [("", "11"), ("41", "11"), ("42", "8"), ("43", "0")]


def test_github_classroom(grades, rules):
    made = json.loads(base64.b64decode(FORMATS["classroom"](grades[1:2], rules, "en", 3)))
    assert made.keys() == {"version", "status", "max_score", "tests"}
    assert (made["version"], made["status"], made["max_score"]) == (1, "fail", 11)
    assert all(test.keys() <= CLASSROOM_TEST and test["status"] in ("pass", "fail", "error") for test in made["tests"])


def test_every_format_is_an_option_and_every_option_a_format():
    choices = next(p for p in command.params if p.name == "form").type.choices
    assert set(choices) - {"table"} == set(FORMATS)
    assert set(next(p for p in command.params if p.name == "kit").type.choices) == set(KITS)


@pytest.mark.parametrize("platform", KITS)
def test_a_platform_s_kit_has_its_files_the_assignment_and_the_wheel(platform, tmp_path):
    (tmp_path / "assignment.toml").write_text('provided = ["main.cu"]\n[[test]]\npoints = 4\nexpected = "1"\n')
    (tmp_path / "main.cu").write_text("int main() { return 0; }")
    (tmp_path / "tilewise-1.whl").write_bytes(b"PK")
    given = ["--assignment", str(tmp_path / "assignment.toml"), "-o", str(tmp_path / "kit.zip")]
    assert run(["grade", str(tmp_path / "tilewise-1.whl"), "--kit", platform, *given]) == 0
    with zipfile.ZipFile(tmp_path / "kit.zip") as archive:
        files = {info.filename: archive.read(info) for info in archive.infolist()}
        executable = {info.filename for info in archive.infolist() if info.external_attr >> 16 & 0o100}
    needed = {
        "gradescope": {"setup.sh", "run_autograder", "assignment.toml", "main.cu", "tilewise-1.whl"},
        "prairielearn": {"Dockerfile", "info.json", "tests/run.sh", "tests/assignment.toml", "tests/main.cu", "grader/tilewise-1.whl"},  # noqa: E501
        "classroom": {".github/workflows/classroom.yml", ".github/classroom/assignment.toml", ".github/classroom/main.cu", ".github/classroom/tilewise-1.whl"},  # noqa: E501
        "nbgrader": {"assignment.ipynb", "nbgrader_config.py", "assignment.toml", "main.cu", "tilewise-1.whl"},
    }[platform]  # fmt: skip
    assert set(files) == needed
    if platform == "gradescope":
        assert executable == {"setup.sh", "run_autograder"}
        assert b"--format gradescope" in files["run_autograder"]
        assert b"-o /autograder/results/results.json" in files["run_autograder"]
    if platform == "prairielearn":
        assert json.loads(files["info.json"])["externalGradingOptions"].keys() <= {
            "enabled",
            "image",
            "entrypoint",
            "timeout",
        }


# github.com/jupyter/nbgrader, nbgrader/nbgraderformat/v3.json: the metadata of a cell, and no other keys
NBGRADER = {"schema_version": int, "grade": bool, "locked": bool, "solution": bool, "task": bool, "grade_id": str, "points": float}  # noqa: E501  # fmt: skip


def notebook_of(tmp_path):
    (tmp_path / "assignment.toml").write_text(ASSIGNMENT)
    with zipfile.ZipFile(io.BytesIO(kit("nbgrader", tmp_path / "assignment.toml", None, "en"))) as archive:
        return nbformat.reads(archive.read("assignment.ipynb").decode(), as_version=4)


def test_nbgrader_s_cells_have_its_metadata(tmp_path):
    notebook = notebook_of(tmp_path)
    nbformat.validate(notebook)
    cells = [cell.metadata.nbgrader for cell in notebook.cells]
    for cell in cells:
        assert cell.keys() <= NBGRADER.keys()
        assert all(isinstance(value, (NBGRADER[key], int)) for key, value in cell.items())
        assert re.fullmatch(r"[a-zA-Z0-9_\-]+", cell.grade_id)
        assert (cell.schema_version, "points" in cell) == (3, cell.grade)
    assert len({cell.grade_id for cell in cells}) == len(cells)
    assert [cell.points for cell in cells if cell.grade] == [11]


@pytest.mark.parametrize(("text", "points"), [(TILED, 11), (RACE, 8), ("x", 0)])
def test_nbgrader_reads_the_points_of_the_autograded_cell(tmp_path, monkeypatch, text, points):
    """The notebook run as nbgrader runs it, with its own reader and its own count of partial credit."""
    grader, reader = pytest.importorskip("nbgrader.utils"), pytest.importorskip("nbgrader.nbgraderformat")
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    register()
    notebook = notebook_of(tmp_path)
    reader.reads(nbformat.writes(notebook), as_version=4)
    stub = notebook.cells[1]
    stub.source = stub.source.replace("// BEGIN SOLUTION", f"// BEGIN SOLUTION\n{text}")
    monkeypatch.chdir(tmp_path)
    for cell in notebook.cells:
        done = shell.run_cell(cell.source)
        assert done.success, done
    data = {"text/plain": repr(done.result)}
    cell.outputs = [nbformat.v4.new_output("execute_result", data, execution_count=1)]
    assert grader.determine_grade(cell) == (points, 11)
    shell.clear_instance()


def test_the_csv_has_one_reason_a_column(grades, rules):
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](grades, rules, "en", 3))))
    assert rows[1]["faults: why"] == "faults: race" or "race" in rows[1]["faults: why"]
    assert (rows[1]["product: why"], rows[1]["findings"]) == ("", "race:12")


def test_common_faults_have_counts_and_an_example(grades):
    common = common_faults([*grades, grades[1]])
    assert [(c.kind, c.count, c.name, c.line) for c in common] == [("race", 2, "binh", 12)]


def test_calls_to_look_at_are_named():
    text = '#include "../x.h"\n// system("ls")\nint main() { system("ls"); fopen("/etc/hosts", "r"); puts("fork("); }\n'
    found = suspicious([Grade("an", "a.cu", "graded", sources={"a.cu": text})])
    assert [(c.line, c.what) for c in found] == [(3, "system()"), (3, '"/etc/hosts"')]


def test_a_copy_is_found_under_other_names_and_layout_and_own_work_is_not():
    copy = TILED.replace("sum", "acc").replace("Ms", "left").replace("    ", "\t").replace("product", "mine")
    copy = copy.replace("float acc = 0;", "// mine!\nfloat acc = 0.0f;")
    own = """
__global__ void rows(const float* a, const float* b, float* c, int n) {
    unsigned who = blockDim.x * blockIdx.x + threadIdx.x;
    while (who < n * n) {
        float* target = c + who;
        *target = 0;
        int k = n;
        do { --k; *target += a[who / n * n + k] * b[k * n + who % n]; } while (k);
        who += gridDim.x * blockDim.x;
    }
}
"""
    made = [
        Grade(name, f"{name}.cu", "graded", sources={"x.cu": text})
        for name, text in (("an", TILED), ("binh", copy), ("chi", own))
    ]
    pairs = similar(made)
    assert [(p.one, p.two) for p in pairs] == [("an", "binh")]
    assert pairs[0].share > 0.8
    assert fingerprints({"x.cu": "int x;"}) == {}


def test_feedback_for_moodle_goes_into_its_own_folders(tmp_path, rules, grades):
    from tilewise.teaching.course.summary_page import save_feedback

    save_feedback(grades, rules, tmp_path / "feedback.zip", "vi")
    with zipfile.ZipFile(tmp_path / "feedback.zip") as archive:
        names = archive.namelist()
        assert names[1] == "binh_42_assignsubmission_file_/feedback.html"
        assert "tranh chấp" in archive.read(names[1]).decode()
