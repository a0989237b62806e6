"""Teaching: traces and verdicts of a kernel, the page that shows them, exercises and grading."""
