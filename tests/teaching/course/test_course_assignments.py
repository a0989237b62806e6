"""Twelve kinds of assignments, 480 submissions: every mark is as written beside its program."""

from __future__ import annotations

import time

import pytest

from course_assignments import courses, graded, write
from tilewise.teaching.course.assignment import read_assignment
from tilewise.teaching.course.grading import grade
from tilewise.teaching.course.submissions import collect

COURSES = {made.name: made for made in courses()}
CASES = [(name, variant) for name, made in COURSES.items() for variant in made.variants]


def test_there_are_twelve_kinds_with_forty_submissions_each():
    assert len(COURSES) == 12
    assert [len(list(made.submissions())) for made in COURSES.values()] == [40] * 12


@pytest.mark.drawn(2)  # a program runs for half a second; `python tests/support/course_assignments.py` grades all 480
@pytest.mark.parametrize(("name", "variant"), CASES, ids=["-".join(case) for case in CASES])
def test_a_variant_has_its_marks(name, variant, tmp_path):
    made = COURSES[name]
    marks = dict(write(tmp_path, made))
    rules = read_assignment(tmp_path / "assignment.toml")
    style = made.styles[CASES.index((name, variant)) % len(made.styles)]
    (found,) = collect([str(tmp_path / "class" / f"{variant}-{style}")])
    result = grade(found, rules, 7)
    assert {item.name: item.points for item in result.items} == marks[f"{variant}-{style}"], result


@pytest.mark.slow  # minutes: the whole class of every assignment
def test_every_mark_is_right_within_six_minutes(tmp_path):
    started = time.monotonic()
    problems = []
    for name, made in COURSES.items():
        (tmp_path / name).mkdir()
        problems += graded(tmp_path / name, made)
    took = time.monotonic() - started
    assert problems == []
    assert took < 360, f"{took:.0f} s"
