"""Every example in the docstrings of the public names, run by doctest alone: `.ci/versions` calls it where pytest is
not installed, `tests/docs` where it is."""

from __future__ import annotations

import doctest
import inspect

import numpy as np

import tilewise as tw

CARD = "# with a card"


def examples(module, names):
    finder = doctest.DocTestFinder(recurse=False)
    for name in names:
        thing = getattr(module, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            for test in finder.find(thing, f"{module.__name__}.{name}", globs={"tw": tw, "np": np}):
                if test.examples:
                    yield test


def run_examples(module, names, on_card=False):
    """How many names have examples, all of which gave what they show."""
    ran = 0
    for test in examples(module, names):
        if (CARD in test.docstring) == on_card:
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            assert runner.run(test).failed == 0, test.name
            ran += 1
    return ran


if __name__ == "__main__":
    print(f"the examples of {run_examples(tw, tw.__all__)} public names run")
