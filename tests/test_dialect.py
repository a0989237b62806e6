"""No identifier of the private dialect, and few of its phrases: `python tests/support/dialect.py --list` shows them."""

from __future__ import annotations

from dialect import identifiers, phrases

MOST_PHRASES = 100


def test_no_identifier_is_private():
    found = [f"{path}:{line}: {name}" for path, line, name in identifiers()]
    assert not found, found


def test_sentences_are_plain():
    found = [f"{path}:{line}: {text}" for path, line, _, text in phrases()]
    assert len(found) <= MOST_PHRASES, found
