"""Courses: assignments, grading, and the exercises of `tilewise learn`."""

from tilewise.teaching.course.assignment import Assignment, read_assignment
from tilewise.teaching.course.grading import Grade, Item, grade_text

__all__ = ["Assignment", "Grade", "Item", "grade_text", "read_assignment"]
