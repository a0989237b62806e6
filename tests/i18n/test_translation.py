"""Every sentence of the emulator is translated: sentences read from its source, and reports of programs that run."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from seeds import next_seed
from sentences import FILLED, every_refusal, every_sentence
from tilewise.cli.main import run
from tilewise.emulator.machine.findings import Severity
from tilewise.i18n.messages import PLACEHOLDER, REVIEWED, engine_messages
from tilewise.i18n.translation import translated, translation

KERNELS = Path(__file__).parents[1] / "emulator" / "kernels"
LITERAL = 12  # letters a form must have outside its placeholders before those match anything
RUNTIME = ("terminate called after throwing",)  # what a C++ program itself prints

FORMS = {text: PLACEHOLDER.sub(FILLED, text) for text in engine_messages("vi")}
LOOSE = [
    re.compile("(?:.+)".join(re.escape(part) for part in PLACEHOLDER.sub(FILLED, text).split(FILLED)), re.DOTALL)
    for text in FORMS
    if len(PLACEHOLDER.sub("", text)) >= LITERAL
]


def is_translated(plain, spelt):
    if plain <= set(FORMS.values()):
        return True
    return all(any(form.fullmatch(text) for form in LOOSE) or text.startswith(RUNTIME) for text in spelt)


def test_languages_translate_the_same_sentences_with_the_same_placeholders():
    sentences = engine_messages("vi").keys()
    for language in set(REVIEWED) - {"en"}:
        assert engine_messages(language).keys() == sentences
        for english, text in engine_messages(language).items():
            printed = {name for name, forms in PLACEHOLDER.findall(text) if not forms}
            assert {name for name, _ in PLACEHOLDER.findall(english)} == printed, (language, english)
            assert text.strip()
    assert not engine_messages("en")


def test_every_sentence_of_the_emulator_is_translated():
    found = [*every_sentence(), *every_refusal()]
    assert len(found) > 250
    missing = [f"{where}: {sorted(plain)}" for where, plain, spelt in found if not is_translated(plain, spelt)]
    assert missing == [], "add them to languages/*.json under engine"


def test_a_sentence_without_translation_is_noticed():
    assert not is_translated({f"the tile {FILLED} is on fire"}, {f"the tile {FILLED} is on fire"})
    assert not is_translated({f"{FILLED} is blue"}, {f"{FILLED} is blue"})


def test_a_sentence_without_translation_stays_english():
    assert translated("the tile M is on fire", "vi") == "the tile M is on fire"
    assert translation("the tile M is on fire", "vi") is None


@pytest.mark.parametrize("language", sorted(set(REVIEWED) - {"en"}))
def test_names_and_numbers_are_carried_over(language):
    rng = np.random.default_rng(seed := next_seed() % 2**32)
    a, b, c = (int(x) for x in rng.integers(1, 10**6, 3))
    for text in (
        f"read of {a} bytes {b} bytes past the end of h_A ({c} bytes from malloc at line 3)",
        f"d_P is {a} x {b}: store only where row < {a} && col < {b}",
        f"index {a} of an array of {b}: 0 to {c} are there",
        f"this launch fails: a block of {a} threads: a card takes at most 1024",
    ):
        made = translated(text, language)
        assert made != text, seed
        assert sorted(re.findall(r"\d+|d_P|h_A", made)) == sorted(re.findall(r"\d+|d_P|h_A", text)), seed


def test_reports_of_wrong_kernels_have_no_english_left():
    """Three of them by the seed: every hint and ground matches a form."""
    rng = np.random.default_rng(seed := next_seed() % 2**32)
    for path in rng.choice(sorted((KERNELS / "wrong").glob("*.cu")), 3, replace=False):
        report = tw.check(path)
        faults = [f for f in report.findings if f.severity is Severity.FAULT]
        texts = [f.hint for f in faults] + list(report.grounds.values())
        assert [text for text in texts if text and translation(text, "vi") is None] == [], (path.name, seed)


PROGRAM = """
#include <cstdio>
#include <cstdlib>
__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }
int main() {
    float* h = (float*)malloc(8 * sizeof(float));
    float* d;
    cudaMalloc(&d, 8 * sizeof(float));
    cudaMemcpy(d, h, 8 * sizeof(float), cudaMemcpyDeviceToHost);
    twice<<<1, 2048>>>(d, 8);
    printf("%f\\n", h[9]);
    free(h);
    free(h);
    return 0;
}
"""


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("vi", ("bộ nhớ của host", "thất bại: một khối 2048 luồng", "giải phóng hai lần", "lỗi trong p.cu")),
        ("pt", ("memória do host", "falha: um bloco de 2048 threads", "liberado duas vezes", "falhas em p.cu")),
    ],
)
def test_run_uses_the_requested_language(tmp_path, capfd, language, expected):
    file = tmp_path / "p.cu"
    file.write_text(PROGRAM, encoding="utf-8")
    assert run(["run", str(file), "--lang", language]) == 1
    printed = capfd.readouterr().err
    for text in expected:
        assert text in " ".join(printed.split()), printed
    for english in ("change:", "memory of", "freed at", "faults in", "bytes past", "launch fails"):
        assert english not in printed, printed


def test_check_groups_its_causes_in_every_language(capsys):
    counts = set()
    for language in REVIEWED:
        assert run(["check", str(KERNELS / "tiled_unchecked.cu"), "--shape", "3x3x3", "--lang", language]) == 1
        printed = capsys.readouterr().out
        counts.add(printed.splitlines()[-1].split()[0])
        if language != "en":
            for english in ("change:", "the same slip", "with it", "outside", "launch", "blocks"):
                assert english not in printed, (language, english)
    report = tw.check(KERNELS / "tiled_unchecked.cu", shape=(3, 3, 3))
    assert counts == {str(len(report.faults))}, "the command and tw.check count the same"


def test_a_syntax_error_is_reported_in_the_language_of_the_command(tmp_path, capsys):
    file = tmp_path / "bad.cu"
    file.write_text("__global__ void f(float* a) {\n    a[0] = ;\n}\n", encoding="utf-8")
    assert run(["check", str(file), "--lang", "vi"]) == 2
    printed = capsys.readouterr().err
    assert f"lỗi: {file}:2:12: ở đây cần một biểu thức, không phải ;\n    a[0] = ;" in printed
    assert run(["check", str(file), "--lang", "en"]) == 2
    assert "an expression is expected here, not ;" in capsys.readouterr().err
    assert run(["trace", "--shape", "100000x100000x100000", "--lang", "pt"]) == 4
    assert "erro: M de 100000x100000 passa do limite" in capsys.readouterr().err
    assert run(["multiply", "--shape", "4x4x4", "-o", "C.txt"]) == 2
    assert capsys.readouterr().err.startswith("error: "), "a command without translations uses English"
