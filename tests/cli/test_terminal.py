"""On a terminal, control characters of an untrusted file are escaped: in its output, and where commands quote it."""

from __future__ import annotations

import contextlib
import os
import pty
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tilewise
from tilewise.system.terminal import Shown

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a pty is POSIX's")

OBEYED = re.compile("[\x00-\x07\x0b-\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
NOISE = "\x1b[2J\x07\x9b2J\u202e"
PROGRAM = (
    r"""
#include <cstdio>
#include <iostream>
#include <fstream>
#include <stdexcept>
__global__ void k() { printf("device \033[31m %c %s\n", 27, "\033]0;title\007"); }
int main(int argc, char** argv) {
  printf("stdout \033]0;title\007 \033[2J \302\2332J \2332J \016 \177 \a \v\f|\b\r\t caf\303\251 \342\200\256 \n");
  for (int i = 0; i < 3; i++) { putchar("\303\251\n"[i]); fflush(stdout); }
  fwrite("\0\033c\n", 1, 4, stdout);
  std::cout << "cout \033[1m" << (char)27 << "c" << std::endl;
  std::cerr << "cerr \033[1m" << argv[0] << std::endl;
  fprintf(stderr, "stderr \033[3%dm\n", 1);
  perror("\033[5m");
  std::ofstream("\033[7m out") << 1;
  k<<<1, 1>>>();
  cudaDeviceSynchronize();
  int* hidden = new int[2];
  hidden[2] = 1; /* """
    + NOISE
    + r""" */
  putchar(0xc3);
  throw std::runtime_error("what \033[2J");
}
"""
)
KERNEL = f"""
__global__ void k(float* a, int n) {{
  __shared__ float s[2]; /* {NOISE} */
  s[threadIdx.x] = a[threadIdx.x]; a[9] = 1; /* {NOISE} */
  a[threadIdx.x] = s[threadIdx.x + 1]; /* {NOISE} */
}}
"""


def on_a_terminal(folder: Path, *arguments: str) -> tuple[int, bytes]:
    """The command with a terminal for its three streams; everything that came there."""
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "TERM": "dumb",
        "PYTHONPATH": str(Path(tilewise.__file__).parents[1]),
        "LANG": "C.UTF-8",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewise", *arguments], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder,
        env=environment, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):  # EIO, when the last one has closed it
        while data := os.read(ours, 4096):
            output += data
    os.close(ours)
    return process.wait(), output


def obeyed(output: bytes) -> list[str]:
    text = output.decode("utf-8", "surrogateescape")
    return OBEYED.findall(text) + re.findall("[\udc80-\udcff]", text)


def test_what_a_program_prints_is_shown_on_a_terminal(tmp_path):
    (tmp_path / "p.cu").write_text(PROGRAM)
    _, output = on_a_terminal(tmp_path, "run", "p.cu")
    assert obeyed(output) == []
    shown = output.decode().replace("\r\n", "\n")
    assert r"stdout \x1b]0;title\x07 \x1b[2J \x9b2J \x9b2J \x0e \x7f \x07 \x0b\x0c|" + "\b\r\t café \\u202e \n" in shown
    assert "\né\n\\x00\\x1bc\n" in shown
    assert "cout \\x1b[1m\\x1bc\n" in shown
    assert "cerr \\x1b[1m./p\n" in shown
    assert "stderr \\x1b[31m\n" in shown
    assert "device \\x1b[31m \\x1b \\x1b]0;title\\x07\n" in shown
    assert "what \\x1b[2J" in shown


@pytest.mark.drawn(1)
@pytest.mark.parametrize("where", ["stdout", "stderr"])
def test_the_bytes_stay_as_they_are_where_no_terminal_is(tmp_path, where):
    """Into a file or a pipe, also when the other stream is a terminal."""
    (tmp_path / "p.cu").write_text(PROGRAM)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(Path(tilewise.__file__).parents[1])}
    streams = {"stdout": theirs, "stderr": theirs, where: subprocess.PIPE}
    done = subprocess.run([sys.executable, "-m", "tilewise", "run", "p.cu"], cwd=tmp_path, env=environment, **streams)
    os.close(theirs)
    os.close(ours)
    if where == "stdout":
        assert b"stdout \x1b]0;title\x07 \x1b[2J \xc2\x9b2J \x9b2J \x0e \x7f \x07 \x0b\x0c|\b\r\t caf" in done.stdout
        assert b"device \x1b[31m \x1b \x1b]0;title\x07\n" in done.stdout
    else:
        assert b"cerr \x1b[1m./p\n" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"], ["run", "--all", "--lang", "vi"], ["run", "--json"], ["run", "--format", "sarif"],
        ["run", "--format", "sanitizer"],
        ["check", "--limit", "seconds=3"], ["check", "--json"], ["check", "--format", "sarif"],
        ["check", "--format", "sanitizer"], ["check", "--all", "--lang", "pt"],
        ["trace", "--arg", "n=4"], ["trace", "--json"], ["explore", "--no-open", "--limit", "seconds=3"],
        ["grade"], ["grade", "--json"], ["grade", "--format", "csv"], ["grade", "--assignment", "t\x1b[2J.toml"],
        ["run", "missing"], ["check", "missing"], ["trace", "missing"], ["grade", "missing"], ["explore", "missing"],
    ],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("text", [PROGRAM, KERNEL, f"#error {NOISE}\n{KERNEL}"], ids=["program", "kernel", "error"])
@pytest.mark.drawn(3)
def test_what_commands_quote_of_a_file_is_shown(tmp_path, arguments, text):
    """The file's name, its text, its messages, the names it opens and includes."""
    name = f"a{NOISE}.cu"
    (tmp_path / name).write_text(text)
    (tmp_path / "t\x1b[2J.toml").write_text('title = "\\u001b[2J"\n[points]\nproduct = 1\nprogram = 1\n')
    command, *options = arguments
    if options == ["missing"]:
        name, options = f"b{NOISE}.cu", []
    _, output = on_a_terminal(tmp_path, command, *options, name)
    assert output.strip()
    assert obeyed(output) == [], output


@pytest.mark.slow  # three starts on a terminal; test_what_commands_quote_of_a_file_is_shown has the others
def test_what_learn_quotes_is_shown(tmp_path):
    from tilewise.teaching.course.exercises import exercises

    one = exercises()[0]
    (tmp_path / f"c{NOISE}").mkdir()
    (tmp_path / f"c{NOISE}" / one.file_name).write_text(KERNEL)
    for folder, code in ((f"c{NOISE}", 1), (f"d{NOISE}", 0)):
        ended, output = on_a_terminal(tmp_path, "learn", one.name, "--folder", folder)
        assert ended == code
        assert obeyed(output) == [], output
    assert obeyed(on_a_terminal(tmp_path, "learn", NOISE)[1]) == []


def test_bytes_cut_anywhere_are_shown_the_same():
    """Random bytes and characters, sent whole and in pieces."""
    rng = random.Random(7)
    for _ in range(300):
        data = b"".join(
            rng.choice([bytes([rng.randrange(256)]), chr(rng.randrange(0x300)).encode(), "\u202e✓😀".encode()])
            for _ in range(rng.randrange(12))
        )
        whole, pieces = Shown(), Shown()
        made = whole(data, final=True)
        cuts = sorted(rng.randrange(len(data) + 1) for _ in range(4))
        parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert b"".join(map(pieces, parts)) + pieces(b"", final=True) == made
        assert not OBEYED.search(made.decode())
