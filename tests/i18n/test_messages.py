"""Every language is complete: the same keys, the same placeholders, plurals where a number is filled in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tilewise
from tilewise.errors import UsageError
from tilewise.i18n.messages import LANGUAGES, PLACEHOLDER, chosen_language, engine_messages, is_one, messages, say


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_keys_and_placeholders(language):
    english, texts = messages("en"), messages(language)
    assert texts.keys() == english.keys()
    for key, text in texts.items():
        assert text.strip(), key
        assert names(text) == names(english[key]), key


def names(text):
    """What is filled in; a number that only chooses a form is not needed in a language with one form."""
    return {name for name, forms in PLACEHOLDER.findall(text) if not forms}


def test_a_missing_message_is_named():
    with pytest.raises(UsageError, match="'vi' has no sentence for 'nothing'"):
        say("vi", "nothing")


@pytest.mark.parametrize(
    ("language", "count", "text"),
    [
        ("en", 0, "0 faults"), ("en", 1, "1 fault"), ("en", 3, "3 faults"), ("vi", 1, "1 lỗi"), ("vi", 3, "3 lỗi"),
        ("pt", 0, "0 falha"), ("pt", 1, "1 falha"), ("pt", 2, "2 falhas"),
    ],
)  # fmt: skip
def test_a_noun_takes_the_form_of_its_number(language, count, text):
    assert say(language, "verdict.some", count=count) == text


@pytest.mark.parametrize("number", ["0.5", "1.5", "2", "1,024", "0–3", "?"])
def test_fractions_and_ranges_have_a_form(number):
    assert not is_one("en", number)
    assert is_one("pt", number) == (number in ("0.5", "1.5"))


ONE_FORM = ("vi", "zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_choice_of_forms_is_complete(language):
    for key, text in (messages(language) | engine_messages(language)).items():
        for name, forms in PLACEHOLDER.findall(text):
            assert not forms or (forms.count("|") == 2 and language not in ONE_FORM), (key, name, forms)


NUMBERS = "count|loads|fills|stores|uses|barriers|threads|cells|missing|users|have|ratio|without|put|size"


@pytest.mark.parametrize("language", [code for code in LANGUAGES if code in ("en", "es", "pt")])
def test_no_plural_follows_a_number_that_may_be_one(language):
    """ "{count} threads" would read "1 threads"; "{count} of {threads} threads" is right for any number."""
    plural = re.compile(
        rf"(?<!of )(?<!de )(?<!All )(?<!Os )\{{(?:{NUMBERS})\}} (?!más\b|antes\b|dos\b)[^\W\d_]+s\b(?! \{{)"
    )
    allowed = {"learn.all", "load.text", "table.reuse.part"}
    texts = messages(language) | engine_messages(language)
    assert not [key for key, text in texts.items() if plural.search(text) and key not in allowed]


SOURCE = Path(tilewise.__file__).parent
OPEN = ("finding.", "did.", "hint.", "thread.", "drop.", "why.")  # put together from a finding, an access, a cause


def source_of(*patterns):
    return "\n".join(path.read_text(encoding="utf-8") for pattern in patterns for path in SOURCE.glob(pattern))


def test_every_message_is_used():
    """Named whole, or by a template with one part for each placeholder: f"kind.{kind}"."""
    code = source_of("teaching/**/*.py", "teaching/**/*.js", "cli/*.py")
    whole = set(re.findall(r"[\"'`]([\w.\- ]+)[\"'`]", code))
    templates = {
        re.sub(r"\$?\{[^{}]*\}", "*", text)
        for text in re.findall(r"[f(]?[\"'`]([\w.*{}$\[\]' +-]+)[\"'`]", code)
        if "{" in text
    }
    families = [re.compile(re.escape(t).replace(r"\*", r"[^.]+")) for t in templates if re.search(r"[a-z]{3}", t)]
    assert not [
        key
        for key in messages("en")
        if key not in whole and not key.startswith(OPEN) and not any(f.fullmatch(key) for f in families)
    ]


def test_every_translated_sentence_is_one_of_the_emulator_s():
    """Three words in a row of it are in a text of the code, for most places in the sentence."""
    texts = plain(re.sub(r"\bf?\"", " ", source_of("emulator/**/*.py", "teaching/**/*.py")))
    for sentence in engine_messages("vi"):
        parts = [found for text in PLACEHOLDER.split(sentence)[::3] if (found := plain(text).split())]
        runs = [" ".join(part[i : i + 3]) for part in parts for i in range(max(1, len(part) - 2))]
        assert 2 * sum(run in texts for run in runs) >= len(runs), sentence


def plain(text):
    """Words alone."""
    return re.sub(r"[^\w']+", " ", text)


def test_a_kind_of_fault_is_named_once():
    assert (
        say("en", "grade.item.faults") + ": " + say("en", "grade.faults", kinds="race, line 5")
        == "faults: race, line 5"
    )


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
