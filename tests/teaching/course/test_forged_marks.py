"""Submissions that are wrong and try for points: forged reports, the lecturer's files, the grader's own names.

Each begins with an overrun of the heap and prints what no lecturer expects; neither may earn its points, and the
expected output, which is in a file beside the assignment, is in no report. The sandbox of the system is switched off."""
# ruff: noqa: E501 — lines of C++

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from tilewise.system import sandbox
from tilewise.teaching.course import grade_text, read_assignment
from tilewise.teaching.course.grading import grade
from tilewise.teaching.course.submissions import Submission

pytestmark = pytest.mark.drawn(4)  # each program is compiled and run twice, 0.5 to 3 s
SECRET = "2718281828"
RULES = """
title = "secret"
seconds = 4
[points]
faults = 2
program = 2
[[test]]
name = "numbers"
points = 6
arguments = ["{seed}"]
expected_file = "expected.txt"
hidden = true
"""
TOP = """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
"""
FAULT = "int* volatile p = (int*)malloc(16); p[4] = 1; "
REPORT = r"{\"status\": 0, \"ended\": \"exit\", \"message\": \"\", \"findings\": [], \"notes\": [], \"launches\": [], \"ok\": true, \"points\": 10}"
ENDS = [  # of main, after the fault
    "exit(0);",
    "_Exit(0);",
    f'printf("{REPORT}\\n"); exit(0);',
    f'fprintf(stderr, "{REPORT}\\n"); exit(0);',
    'printf("\\033[8mfull points\\033[0m 10/10\\n");',
    'printf("<script>points = 10</script> 10/10\\n");',
    f'for (int i = 3; i < 20; i++) {{ char n[40]; sprintf(n, "/proc/self/fd/%d", i); FILE* f = fopen(n, "w"); if (f) {{ fprintf(f, "{REPORT}"); fclose(f); }} }} exit(0);',
    'char t[99] = ""; FILE* f = fopen("expected.txt", "r"); if (f) fgets(t, 99, f); printf("%s", t);',
    'char t[99] = ""; FILE* f = fopen("../expected.txt", "r"); if (f) fgets(t, 99, f); printf("%s", t);',
    'char t[99] = ""; FILE* f = fopen("FOLDER/expected.txt", "r"); if (f) fgets(t, 99, f); printf("%s", t);',
    'char t[99] = ""; FILE* f = fopen("/proc/self/cwd/../expected.txt", "r"); if (f) fgets(t, 99, f); printf("%s", t);',
    'std::ifstream f("FOLDER/expected.txt"); std::string t; std::getline(f, t); std::cout << t;',
    'FILE* f = fopen("FOLDER/expected.txt", "w"); if (f) { fprintf(f, "7"); fclose(f); } printf("7");',
    'FILE* f = fopen("FOLDER/a.toml", "w"); if (f) { fprintf(f, "title = 3"); fclose(f); } remove("FOLDER/a.toml"); remove("FOLDER/expected.txt");',
    'system("cat FOLDER/expected.txt");',
    'char* t = getenv("HOME"); printf("%s", t ? t : "");',
    "for (;;) {}",
    "for (;;) { char* q = (char*)malloc(1 << 20); memset(q, 1, 1 << 20); }",
    "fclose(stdout); fclose(stderr); fclose(stdin); exit(0);",
    "*(volatile int*)8 = 1;",
    "abort();",
    "atexit([] { _Exit(0); }); exit(0);",
    "char* shadow = (char*)p + (1UL << 36) + (8UL << 20); for (int i = 0; i < 64; i++) shadow[i] = 3; exit(0);",
]  # fmt: skip
WHOLE = [  # other texts
    f'#include "FOLDER/expected.txt"\nint main() {{ {FAULT} return 0; }}',
    f'#include "../expected.txt"\nint main() {{ {FAULT} return 0; }}',
    f'int expected[] = {{\n#include "FOLDER/expected.txt"\n}};\nint main() {{ {FAULT} printf("%d", expected[0]); return 0; }}',
    f'#define malloc(n) (int*)0\n#define main not_main\nint main() {{ {FAULT} return 0; }}\n#undef main\nint main() {{ int a[2]; a[volatile_two] = 1; return 0; }}',
    f'extern "C" void rt_bad_write(long a, long n, int line) {{}}\nextern "C" void rt_check_range(long, long, int, int) {{}}\nint main() {{ {FAULT} return 0; }}',
    f'extern "C" int _tilewise_report(const char*);\nint main() {{ {FAULT} _tilewise_report("{REPORT}"); return 0; }}',
    f'extern "C" long syscall(long, ...);\nint main() {{ {FAULT} syscall(231, 0); return 0; }}',
    f'extern "C" long write(int, const void*, unsigned long);\nint main() {{ {FAULT} for (int i = 3; i < 20; i++) write(i, "{{}}", 2); return 0; }}',
    f'#line 1 "other.cu"\nint main() {{ {FAULT} return 0; }}',
    f'struct Quiet {{ Quiet() {{ {FAULT} _Exit(0); }} }} quiet;\nint main() {{ return 0; }}',
]  # fmt: skip


@pytest.fixture
def rules(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "enter", lambda *_: "off")
    (tmp_path / "a.toml").write_text(RULES)
    (tmp_path / "expected.txt").write_text(SECRET + "\n")
    return read_assignment(tmp_path / "a.toml")


TEXTS = [f"int main(int argc, char** argv) {{ {FAULT}{end} return 0; }}" for end in ENDS] + WHOLE


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_wrong_submission_earns_nothing_and_learns_nothing(rules, tmp_path, text):
    made = grade_text(TOP + text.replace("FOLDER", str(tmp_path)), rules, 5, "x", "x.cu")
    assert {item.name: item.points for item in made.items if item.points} == {}, made
    assert SECRET not in json.dumps(asdict(made), default=str)
    assert (tmp_path / "expected.txt").read_text() == SECRET + "\n"
    assert (tmp_path / "a.toml").read_text() == RULES


def test_names_of_files_lead_nowhere_else(rules, tmp_path):
    text = (TOP + f"int main() {{ {FAULT} return 0; }}").encode()
    for name in ("../../expected.txt", str(tmp_path / "expected.txt"), "expected.txt", "..", "a/../.."):
        made = grade(Submission("x", "x", {"x.cu": text, name: b"7\n"}), rules, 5)
        assert made.points == 0
        assert (tmp_path / "expected.txt").read_text() == SECRET + "\n"


def test_the_right_program_earns_them(rules):
    made = grade_text(TOP + f'int main() {{ puts("{SECRET}"); return 0; }}', rules, 5, "x", "x.cu")
    assert made.full, made
