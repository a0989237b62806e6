"""One budget for a whole command: whatever the source, it ends in time, within its memory, and with a sentence."""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import hostile
import hostile_programs
import hostile_runs
import tilewise as tw
from seeds import next_seed, sample_size
from tilewise.cli.main import guarded, run
from tilewise.emulator import budget
from tilewise.emulator.limits import Limits
from tilewise.errors import LimitError


def checked(folder, make, chance, what):
    """Run one hostile file; everything that must hold for any."""
    ended, wrong = hostile_runs.run_one(folder, make.__name__, make(chance), what, seconds=2.0, memory=1 << 30)
    assert not wrong, (make.__name__, what, wrong)
    return ended


def test_hostile_sources_end_in_time(tmp_path):
    seed = next_seed() % 10**9
    chance = random.Random(seed)
    print("seed", seed)
    for make in chance.sample(hostile.CLASSES, 1):
        checked(tmp_path, make, chance, chance.choice(["check", "trace", "explore"]))
    checked(tmp_path, chance.choice(hostile_programs.CLASSES), chance, "run")


LARGE = """
__device__ float g[SIZE]FIRST;
__global__ void k(float* a, int n) { if (n < 0) g[0] = n; a[0] = g[0] + g[n]; }
int main() {
  float *a, x;
  cudaMalloc(&a, 4);
  k<<<1, 1>>>(a, 4);
  cudaMemcpy(&x, a, 4, cudaMemcpyDeviceToHost);
  cudaFree(a);
  return x == VALUE ? 0 : 3;
}
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize(("size", "first", "value"), [(60_000_000, "", 0), (20_000_000, " = {7.0f}", 7)])
def test_a_large_array_of_the_device_takes_its_bytes_and_their_shadow(tmp_path, size, first, value):
    """It is neither a Python list of its elements nor on the stack."""
    text = LARGE.replace("SIZE", str(size)).replace("FIRST", first).replace("VALUE", str(value))
    ended, wrong = hostile_runs.run_one(tmp_path, "large", text, "run", seconds=60.0, memory=1 << 30)
    assert not wrong
    assert ended.code == 0, ended.err
    assert ended.peak < (24 if first else 12) * size + (200 << 20)  # first values are made on the host
    if first:
        ended, wrong = hostile_runs.run_one(tmp_path, "large", text, "check", memory=1 << 30)
        assert not wrong
        assert "main was run as it stands: status 0" in ended.out, ended.err  # as compiled code alone


@pytest.mark.slow
@pytest.mark.parametrize("make", hostile.CLASSES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("what", ["check", "trace", "explore"])
def test_hostile_sources_of_every_class(tmp_path, make, what):
    seed = next_seed() % 10**9
    print("seed", seed)
    checked(tmp_path, make, random.Random(seed), what)


@pytest.mark.slow
@pytest.mark.parametrize("make", hostile_programs.CLASSES, ids=lambda make: make.__name__)
def test_hostile_programs_of_every_class(tmp_path, make):
    seed = next_seed() % 10**9
    print("seed", seed)
    checked(tmp_path, make, random.Random(seed), "run")


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        (hostile.BODY.format("a[0] = 0x1p999999999999;"), 0, ""),
        (hostile.KERNEL.replace("float sum", 'printf("%*d", NAN, 1); float sum'), 0, ""),
        (hostile.KERNEL + "int main() {float *a; dim3 g(2147483647, 65535, 65535); tiled<<<g, 1>>>(a, a, a, 4, 4, 4);}",
         4, "can be run here"),
        (hostile.KERNEL.replace("float sum", "\x1b[31m float sum"), 2, "a character that is no CUDA C"),
    ],
)  # fmt: skip
def test_former_internal_errors_have_a_message(tmp_path, capsys, text, code, sentence):
    (tmp_path / "k.cu").write_text(text)
    assert run(["check", str(tmp_path / "k.cu")]) == code
    err = capsys.readouterr().err
    assert sentence in err
    assert "\x1b" not in err
    assert "report it" not in err


@pytest.mark.skipif(os.name != "posix", reason="POSIX")
def test_a_fifo_or_a_device_is_no_source(tmp_path, capsys):
    os.mkfifo(tmp_path / "fifo.cu")
    os.symlink("/dev/zero", tmp_path / "zero.cu")
    for what in ("check", "trace", "explore"):
        assert run([what, str(tmp_path / "fifo.cu")]) == 2
        assert "fifo.cu is a FIFO, not a file" in capsys.readouterr().err
        assert run([what, str(tmp_path / "zero.cu")]) == 2
        assert "zero.cu is a device, not a file" in capsys.readouterr().err


def test_a_title_with_a_template_mark_is_inserted_as_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("@@TITLE@@.cu").write_text(hostile.KERNEL)
    assert run(["explore", "@@TITLE@@.cu", "--no-open", "-o", "page.html"]) == 0
    assert "@@TITLE@@" in Path("page.html").read_text()
    assert capsys.readouterr().out


# the stop may come while another library's callback runs, which then reports it; it is sent again
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_budget_is_of_the_whole_call_and_the_error_names_what_used_it():
    text = hostile.many_kernels(random.Random(1))
    start = time.process_time()
    try:  # where some kernels were judged before, the report names the reason for the others
        reasons = list(tw.check(text, limits=Limits(seconds=1.0)).not_judged.values())
    except LimitError as error:
        reasons = [str(error)]
    ended = r"stopped: (1 s were used up .*; [a-z ]+.* took \d+\.\d s of it|the budget of this call was used up)"
    assert any(re.search(ended, reason) for reason in reasons), reasons
    assert time.process_time() - start < 4


def grows():
    held = []
    while True:
        held.append(bytearray(b"x" * (1 << 20)))


def test_memory_is_watched_from_within():
    with pytest.raises(LimitError, match="of memory were used up"), budget.within(Limits(memory=200 << 20)):
        grows()


def asleep():
    while True:
        time.sleep(0.001)


def test_a_swallowed_stop_is_raised_again():
    seen = []
    with budget.within(Limits(seconds=0.1)):
        while len(seen) < 2:
            try:
                asleep()
            except Exception as error:
                seen.append(error)
    assert all(isinstance(error, LimitError) for error in seen)


def busy(seconds):
    """In a separate frame: what CPython 3.13 raises at the end of a loop's iteration skips the `with` of its frame."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_no_stop_is_raised_after_the_budget(monkeypatch):
    monkeypatch.setattr(budget, "FOREIGN_POLLS", 1)  # `busy` is code that is not ours

    def call():
        with budget.within(Limits(seconds=random.random() * 0.02)):
            busy(0.01)

    for _ in range(sample_size(200)):  # a budget that ends while it is used up
        with contextlib.suppress(LimitError):
            call()
        sum(range(1000))
    assert not [thread for thread in threading.enumerate() if thread.name == "tilewise budget" and not thread.daemon]


def test_control_characters_of_a_source_are_escaped(tmp_path, capfd):
    """By commands that quote lines, names and titles: run, grade, learn."""
    noise = "\x1b[2J\x07\x9b2J\u202e"
    (tmp_path / "a\x1b[2J.cu").write_text(f"__global__ void k(float* a) {{ a[0] = {noise} 1; }}\nint main() {{}}\n")
    (tmp_path / "t.toml").write_text('title = "\\u001b[2J"\n')
    for arguments in (["run"], ["run", "--format", "sanitizer"], ["grade", "--assignment", str(tmp_path / "t.toml")]):
        assert run([*arguments, str(tmp_path / "a\x1b[2J.cu")]) in (1, 2), arguments
        shown = "".join(capfd.readouterr())
        assert shown.strip()
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown), (arguments, shown)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child is forked")
def test_the_parent_reports_for_a_child_that_cannot(capfd):
    """Without memory, the child may be unable to print its own message."""

    def used_up(arguments):
        raise MemoryError

    assert guarded(["check", "kernel.cu"], used_up) == 4
    errors = capfd.readouterr().err
    assert "ended without a message" in errors
    assert "2048 MiB were allowed" in errors


@pytest.mark.parametrize("terminal", [True, False])
def test_a_program_run_by_a_person_has_no_time_limit(terminal, monkeypatch):
    """A user at a terminal has Ctrl-C; a pipe and CI have limits of 20 s and 2 GiB."""
    from tilewise.cli import run
    from tilewise.system.memory import total

    monkeypatch.setattr(run.sys, "stderr", SimpleNamespace(isatty=lambda: terminal))
    monkeypatch.delenv("CI", raising=False)
    limits = run._usual_limits()
    assert (limits.seconds, limits.progress) == ((math.inf, True) if terminal else (20.0, False))
    assert limits.memory == (max(2 << 30, total()[0] // 2) if terminal else 2 << 30)
    monkeypatch.setenv("CI", "true")
    assert run._usual_limits().seconds == 20


def test_what_a_program_is_doing_is_shown_until_it_prints(monkeypatch):
    from tilewise.emulator.host.runtime import console as module

    sent = []
    monkeypatch.setattr(module, "_write", lambda descriptor, data: sent.append((descriptor, data)))
    console = module.Console(1000)
    console._watched, console._shown = True, {}
    console.status("3 s · p.cu:7 · multiply 40 %")
    console.write(b"Width? ")
    console.flush()
    console.status("4 s · p.cu:8")  # not over what a person is to answer
    text = "3 s · p.cu:7 · multiply 40 %"
    assert sent == [(2, text.encode()), (2, b"\r" + b" " * len(text) + b"\r"), (1, b"Width? ")]
