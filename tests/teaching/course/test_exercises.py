"""Every starter fails, every solution passes, each hint is about what its starter shows; in every language."""

from __future__ import annotations

import json

import pytest

from seeds import next_seed
from tilewise.cli.main import run
from tilewise.errors import UsageError
from tilewise.i18n.messages import LANGUAGES
from tilewise.teaching.course.exercises import exercises, find_exercise

NAMES = [one.name for one in exercises()]


def test_there_are_enough_of_them_and_they_are_numbered():
    assert len(NAMES) >= 15
    assert [one.number for one in exercises()] == list(range(1, len(NAMES) + 1))


@pytest.mark.drawn(6)
@pytest.mark.parametrize("name", NAMES)
def test_the_starter_fails_the_solution_passes_and_every_hint_appears(name):
    one = find_exercise(name)
    seed = next_seed() % 2**31
    begun, done = one.grade(one.starter, seed), one.grade(one.solution, seed)
    assert begun.status == done.status == "graded"
    assert not begun.full
    assert done.full, f"{[item for item in done.items if item.why]}, seed {seed}"
    for language in LANGUAGES:
        hints = one.hints_for(begun, language)
        assert hints == [texts[language] for texts in one.hints.values()], (
            f"a hint for a fault that is not there: {seed}"
        )
        assert one.hints_for(done, language) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_text_is_missing_in_any_language(name):
    one = find_exercise(name)
    for texts in (one.titles, one.texts, *one.hints.values()):
        assert set(texts) == set(LANGUAGES)
        assert all(text.strip() for text in texts.values())
        assert len(set(texts.values())) == len(LANGUAGES), "written in each language, not copied"


def test_learn_goes_from_one_to_the_next_and_knows_how_far_one_is(tmp_path, capsys):
    def learn(*arguments):
        return run(["learn", *arguments, "--folder", str(tmp_path)]), capsys.readouterr().out

    code, printed = learn("--lang", "vi")
    assert (code, "1. Một luồng, một phần tử" in printed) == (0, True)
    file = tmp_path / "01-one-thread-one-element.cu"
    assert file.read_text() == find_exercise("1").starter
    code, printed = learn()
    assert (code, "→ Some cells of P are never written" in printed) == (1, True)
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
