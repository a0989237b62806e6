"""Three languages, each complete: the same keys and the same placeholders."""

from __future__ import annotations

import pytest

from tilewise.errors import UsageError
from tilewise.i18n.messages import LANGUAGES, PLACEHOLDER, chosen_language, counted, messages, say


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_keys_and_placeholders(language):
    english, texts = messages("en"), messages(language)
    assert texts.keys() == english.keys()
    for key, text in texts.items():
        assert text.strip(), key
        assert set(PLACEHOLDER.findall(text)) == set(PLACEHOLDER.findall(english[key])), key


def test_a_missing_message_is_named():
    with pytest.raises(UsageError, match="'vi' has no sentence for 'nothing'"):
        say("vi", "nothing")


def test_one_and_many_have_their_messages():
    assert counted("en", "verdict", 1) == "1 fault"
    assert counted("en", "verdict", 3) == "3 faults"


def test_an_unknown_language_is_refused_in_one_sentence():
    with pytest.raises(UsageError, match="language 'xx' is not known; there are en"):
        messages("xx")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"LANG": "pt_BR.UTF-8"}, "pt"),
        ({"LC_ALL": "C.UTF-8", "LANG": "vi_VN"}, "en"),
        ({"LANG": "de_DE"}, "en"),
        ({}, "en"),
    ],
)
def test_the_locale_chooses(monkeypatch, values, code):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    assert chosen_language(None) == code
    assert chosen_language("vi") == "vi"
