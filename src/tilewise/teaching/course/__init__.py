"""For a course: assignments, grading a class, and the exercises that `tilewise learn` walks through."""

from tilewise.teaching.course.assignment import Assignment, read_assignment
from tilewise.teaching.course.grading import Grade, Item, grade_text

__all__ = ["Assignment", "Grade", "Item", "grade_text", "read_assignment"]
