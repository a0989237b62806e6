"""Every starter fails, every solution passes, each hint is about what its starter shows; in every language."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from seeds import next_seed
from tilewise.cli.main import run
from tilewise.errors import UsageError
from tilewise.i18n.messages import LANGUAGES, REVIEWED
from tilewise.teaching.course.exercises import exercises, find_exercise, problems_of
from wrong_attempts import attempts, named

NAMES = [one.name for one in exercises()]


def test_there_are_enough_of_them_and_they_are_numbered():
    assert len(NAMES) >= 15
    assert [one.number for one in exercises()] == list(range(1, len(NAMES) + 1))


@pytest.mark.drawn(3)
@pytest.mark.parametrize("name", NAMES)
def test_the_starter_fails_the_solution_passes_and_every_hint_appears(name):
    one = find_exercise(name)
    seed = next_seed() % 2**31
    begun, done = one.grade(one.starter, seed), one.grade(one.solution, seed)
    assert begun.status == done.status == "graded"
    assert not begun.full
    assert done.full, f"{[item for item in done.items if item.why]}, seed {seed}"
    for language in REVIEWED:
        changes = {hint.text for hint in one.hints_for(begun, language)}
        assert changes >= {texts[language] for texts in one.hints.values()}, (
            f"a hint for a fault that is not there: {seed}"
        )
        assert one.hints_for(done, language) == []
    assert problems_of(one, seed) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_text_is_missing_in_any_language(name):
    one = find_exercise(name)
    for texts in (one.titles, one.texts, *one.hints.values()):
        assert set(texts) == set(LANGUAGES)
        assert all(text.strip() for text in texts.values())
        assert len({texts[code] for code in REVIEWED}) == len(REVIEWED), "written in each language, not copied"


def test_learn_goes_from_one_to_the_next_and_knows_how_far_one_is(tmp_path, capsys):
    def learn(*arguments):
        return run(["learn", *arguments, "--folder", str(tmp_path)]), capsys.readouterr().out

    code, printed = learn("--lang", "vi")
    assert (code, "1. Một luồng, một phần tử" in printed) == (0, True)
    file = tmp_path / "01-one-thread-one-element.cu"
    assert file.read_text() == find_exercise("1").starter
    code, printed = learn()
    assert (code, "→ Does every cell of P have a thread that writes it?" in printed) == (1, True)
    assert "P[" in learn()[1], "the second time it names cells"
    assert "→ Some cells of P are never written" in learn()[1]
    assert "→ Does every cell" in learn("--hint", "1")[1]
    assert "int row = blockIdx.y" not in printed, "the solution is hidden until it is requested"
    code, solution = learn("1", "--solution")
    file.write_text(solution)
    code, printed = learn()
    assert (code, "Solved. 1 of " in printed) == (0, True)
    code, printed = learn()
    assert "2. The sum over k" in printed
    code, printed = learn("--list", "--json")
    assert [row["solved"] for row in json.loads(printed)][:2] == [True, False]
    file.write_text("nonsense")
    assert learn("1")[0] == 1
    assert learn("1", "--restart")[0] == 0
    assert file.read_text() == find_exercise("1").starter


def test_when_all_are_solved_it_is_reported(tmp_path, capsys):
    (tmp_path / ".tilewise-learn.json").write_text(json.dumps({"solved": NAMES}))
    assert run(["learn", "--folder", str(tmp_path), "--lang", "pt"]) == 0
    assert f"Todos os {len(NAMES)} exercícios" in capsys.readouterr().out
    (tmp_path / ".tilewise-learn.json").write_text("{broken")
    assert run(["learn", "--folder", str(tmp_path)]) == 0


def test_an_unknown_exercise_names_the_known():
    with pytest.raises(UsageError, match=r"no exercise 'x'; there are 1 \(one-thread"):
        find_exercise("x")


BARRIER = "        __syncthreads();\n"
FIRST, SECOND = BARRIER + "        for (int i", BARRIER + "    }\n"
WRONG = [  # exercise, a fault put into its solution, the cause, and the line that a hint names
    ("6", FIRST, FIRST.replace("__syncthreads", "__syncwarp"), "race.RAW", "sum +="),
    ("6", FIRST, FIRST.removeprefix(BARRIER), "race.RAW", "sum +="),
    ("6", SECOND, SECOND.removeprefix(BARRIER), "race.WAR", "Mds[ty][tx] ="),
    ("6", "col < n)\n            Nds", "col <= n)\n            Nds", "silent-overrun", "Nds[ty][tx] = N"),
    ("6", "tx < k)", "tx <= k)", "silent-overrun", "Mds[ty][tx] = M"),
    ("6", "m && col < n)\n        P", "m + 1 && col < n)\n        P", "out-of-bounds", "P[row * n + col]"),
    ("7", SECOND, SECOND.removeprefix(BARRIER), "race.WAR", "Mds[ty][tx] ="),
    # a row of Mds is read by one warp
    ("7", SECOND, SECOND.replace("__syncthreads", "__syncwarp"), "race.WAR", "Nds[ty][tx] ="),
    ("7", FIRST, FIRST.removeprefix(BARRIER), "race.RAW", "sum +="),
    ("7", FIRST, "        if (col < n)\n    " + FIRST, "divergent-barrier", "__syncthreads"),
    ("9", "row < m && p", "row <= m && p", "out-of-bounds", "M[row * k"),
    ("10", FIRST, FIRST.removeprefix(BARRIER), "race.RAW", "sum +="),
    ("11", "tx < k)", "tx <= k)", "silent-overrun", "Mds[ty][tx] = M"),
    ("1", "row = blockIdx.y * TILE_WIDTH + threadIdx.y", "row = threadIdx.y", "uncovered", ""),
]  # fmt: skip


@pytest.mark.drawn(5)
@pytest.mark.parametrize(("number", "old", "new", "cause", "line"), WRONG)
def test_a_hint_names_cause_and_place(number, old, new, cause, line):
    one = find_exercise(number)
    assert old in one.solution
    text = one.solution.replace(old, new, 1)
    made = one.grade(text, 5)
    assert not made.full
    hints = [hint for hint in one.hints_for(made, "en", 2) if hint.cause == cause]
    assert hints, [(hint.cause, hint.text) for hint in one.hints_for(made, "en", 2)]
    assert line in (text.split("\n")[hints[0].line - 1] if hints[0].line else ""), hints
    steps = [next(h.text for h in one.hints_for(made, "en", step) if h.cause == cause) for step in (1, 2, 3)]
    assert len(set(steps)) == 3


SLIPS = (
    ("threadIdx.x", "threadIdx.y"), ("threadIdx.y", "threadIdx.x"), ("blockIdx.x", "blockIdx.y"), (" < ", " <= "),
    ("blockIdx.y", "blockIdx.x"), ("__syncthreads();", ";"), ("__syncthreads();", "__syncwarp();"), ("i * n", "i * k"),
    ("row * n", "row * k"), ("row * k", "row * n"), ("[ty][tx]", "[tx][ty]"), ("+= ", "= "), ("&&", "||"),
    ("- 1", "- 0"), ("= 0;", "= 1;"), ("[ty][i]", "[i][ty]"), ("[i][tx]", "[tx][i]"),
)  # fmt: skip
RIGHT = (  # a phase or block more, 1 · 0, a row that one warp reads, k = n
    ("", "p < (k"), ("", "dim3 grid("), ("", "Mds[ty][tx] = 0;"), ("16", "__syncthreads();"), ("14", "row * "),
)  # fmt: skip


def slips(one):
    """Each of them at up to three places of the kernel, with the line that it changes."""
    kernel = one.solution.partition("int main")[0]
    for old, new in SLIPS:
        for found in list(re.finditer(re.escape(old), kernel))[:3]:
            line = kernel[: found.start()].count("\n")
            text = one.solution[: found.start()] + new + one.solution[found.end() :]
            if not any(one.name.startswith(name) and part in kernel.split("\n")[line] for name, part in RIGHT):
                yield f"{one.name}, line {line + 1}: {new} for {old}", text


@pytest.mark.slow  # 300 programs
def test_no_typo_is_accepted_and_each_has_a_hint():
    for one in exercises():
        for name, text in slips(one) if "program" not in one.assignment.points else ():
            made = one.grade(text, 5)
            assert not made.full, name
            assert one.hints_for(made, "en", 2), name


def test_swapped_x_and_y_are_not_accepted():
    one = find_exercise("1")
    text = (
        one.solution.replace("blockIdx.y * TILE_WIDTH + threadIdx.y", "ROW")
        .replace(".x", ".y")
        .replace("ROW", "blockIdx.x * TILE_WIDTH + threadIdx.x")
    )
    assert not one.grade(text, 5).full


SOLUTION = """#define TILE_WIDTH 2
__global__ void multiply(const float* M, const float* N, float* P, int m, int k, int n)
{
    int row = blockIdx.y * TILE_WIDTH + threadIdx.y, col = blockIdx.x * TILE_WIDTH + threadIdx.x;
    if (row < m && col < n) {
        float sum = 0;
        // BEGIN SOLUTION
        for (int i = 0; i < k; ++i)
            sum += M[row * k + i] * N[i * n + col];
        // END SOLUTION
        P[row * n + col] = sum;
    }
}
"""


def test_an_exercise_of_one_s_own(tmp_path, capsys):
    (tmp_path / "s.cu").write_text(SOLUTION)
    command = ["exercise", "new", str(tmp_path / "course" / "01-sum"), "--title", "Soma", "--text", "Some."]
    assert run([*command, "--solution", str(tmp_path / "s.cu")]) == 0
    assert "01-sum: the starter fails, the solution passes" in capsys.readouterr().out
    folder = tmp_path / "course" / "01-sum"
    assert "// TODO\n        P[row" in (folder / "starter.cu").read_text()
    assert "SOLUTION" not in (folder / "solution.cu").read_text()
    assert run(["learn", "--from", str(tmp_path / "course"), "--folder", str(tmp_path / "mine"), "--lang", "pt"]) == 0
    assert "1. Soma" in capsys.readouterr().out
    (folder / "starter.cu").write_text((folder / "solution.cu").read_text())
    assert run(["exercise", "check", str(tmp_path / "course")]) == 1
    assert "the starter has all points already" in capsys.readouterr().out


def test_exercises_come_from_an_archive(tmp_path, capsys):
    shutil.make_archive(str(tmp_path / "own"), "gztar", find_exercise("2").folder.parent, "02-the-sum")
    assert run(["learn", "--from", str(tmp_path / "own.tar.gz"), "--list"]) == 0
    assert "2  The sum over k" in capsys.readouterr().out
    assert run(["learn", "--from", str(tmp_path), "--list"]) == 2
    assert "there is no exercise.toml in it" in capsys.readouterr().err


@pytest.mark.slow  # 180 programs; the table above draws from the same slips
def test_of_ten_wrong_attempts_each_none_is_accepted_and_hints_name_cause_and_place():
    results = [(attempt, *named(attempt, find_exercise(attempt.exercise))) for attempt in attempts()]
    assert len(results) == 10 * len(NAMES)
    assert [attempt for attempt, accepted, _, _ in results if accepted] == []
    missed = [(attempt, hints) for attempt, _, right, hints in results if not right]
    assert len(missed) <= 0.15 * len(results), missed
