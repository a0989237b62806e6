"""A program's files: writes outside of --allow-write go to memory and are read back; the disk is not changed."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest

from tilewise.emulator.check.program_child import Report
from tilewise.emulator.host.options import Options
from tilewise.emulator.host.process import run_program
from tilewise.emulator.host.watch import Watch

pytestmark = pytest.mark.drawn(6)  # each program is compiled in a process, 0.2 to 2 s

PROGRAM = r"""
#include <stdio.h>
#include <fstream>
#include <iostream>
#include <string>
#include <unistd.h>
#include <dirent.h>
#include <sys/stat.h>
main(int argc, char** argv) {
  FILE* f = fopen("out.txt", "w"); if (!f) return 3;
  fprintf(f, "%d %d\n", 4, 5); fclose(f);
  f = fopen("out.txt", "a"); fprintf(f, "%d\n", 6); fclose(f);
  f = fopen("out.txt", "r"); int a, b, c; fscanf(f, "%d %d %d", &a, &b, &c); fclose(f); printf("%d %d %d\n", a, b, c);
  { std::ofstream o("/else/where.txt"); o << "hello " << 3 << std::endl; }
  std::ifstream i("/else/where.txt"); std::string w; int n; i >> w >> n; std::cout << w << n << std::endl;
  f = fopen("given.txt", "r+"); char line[8]; fgets(line, 8, f); fputs("more", f); fclose(f); printf("%s", line);
  int o; while ((o = getopt(argc, argv, "ab:")) != -1) printf("%c %s\n", o, optarg ? optarg : "-");
  DIR* d = opendir("."); struct dirent* e;
  while ((e = readdir(d)) != NULL) if (e->d_type == DT_REG) printf("%s ", e->d_name);
  closedir(d);
  struct stat st; printf("%d ", stat("results", &st)); printf("%d %d ", mkdir("results", 0700), mkdir("results", 0700));
  printf("%d %d %d ", stat("results", &st), S_ISDIR(st.st_mode), stat("given.txt", &st));
  printf("%ld\n", (long)st.st_size);
  printf("%d %d %d\n", remove("out.txt"), fopen("out.txt", "r") == NULL, opendir("..") == NULL);
  return 0;
}
"""


def test_written_files_stay_in_memory_and_are_read_back(tmp_path):
    (tmp_path / "p.cu").write_text(PROGRAM)
    (tmp_path / "given.txt").write_text("as it\n")
    report = run_program(tmp_path / "p.cu", ["-a", "-b", "7", "x"], capture=True)
    assert report.output == "4 5 6\nhello3\nas it\na -\nb 7\ngiven.txt p.cu -1 0 -1 0 1 0 10\n0 1 1\n", report.message
    assert sorted(p.name for p in tmp_path.iterdir()) == ["given.txt", "p.cu"]
    assert (tmp_path / "given.txt").read_text() == "as it\n"
    assert [n.split(" is ")[0] for n in report.notes] == [
        "line 10: out.txt",
        "line 14: /else/where.txt",
        "line 16: given.txt",
    ]


def test_files_are_written_to_an_allowed_folder(tmp_path):
    (tmp_path / "p.cu").write_text(
        '#include <stdio.h>\nint main() { FILE* f = fopen("o", "w"); fputs("x", f); fclose(f); }\n'
    )
    assert run_program(tmp_path / "p.cu", [], Options(writable=[str(tmp_path)]), capture=True).notes == []
    assert (tmp_path / "o").read_text() == "x"


def test_a_run_reports_once():
    """A limit that is exceeded while the program ends once wrote a second report."""
    reader, writer = os.pipe()
    report = Report(writer)
    report({"ended": "refused"})
    second = threading.Thread(target=report, args=({"ended": "limit"},), daemon=True)
    second.start()
    second.join(0.3)
    assert second.is_alive()
    with os.fdopen(reader) as pipe:
        assert json.loads(pipe.read()) == {"ended": "refused"}


def test_waiting_of_any_thread_does_not_count_as_computing(tmp_path):
    """The program runs in its own thread: the waiting time of the first thread is not its own."""
    for thread, waited in (("11", 2), ("12", 5)):
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(f"9000000000 {waited}000000000 1\n")
    watch = Watch.__new__(Watch)
    watch._waits, watch._ran, watch.tasks, watch._typed = {}, 0.0, str(tmp_path), False
    watch._files, watch._sealed, watch._interrupted = {}, False, False
    assert watch.waited() == 7.0
    watch.began, watch.options = time.monotonic() - 9, Options(seconds=8)
    assert "longer than 8 s" in watch._used_up()  # a thread had a core for 9 s, whatever others waited
    (tmp_path / "11" / "schedstat").unlink()
    (tmp_path / "11").rmdir()
    assert watch.waited() == 7.0


STREAM = """
#include <fstream>
#include <iostream>
#include <string>
using namespace std;
void total(istream& in) { int a, s = 0; while (in >> a) s += a; cout << "sum " << s << endl; }
int main() {
  fstream f; f.open("data.txt", ios::in); if (!f.is_open()) return 1;
  int n; char c; string w, line; f >> n >> c >> w; f.ignore(100, '\\n'); getline(f, line);
  cout << n << c << w << "|" << line << endl; total(f); f.close();
  fstream g("out.txt", ios::out); g << "written " << 5 << "\\n"; g.close();
  fstream h("out.txt"); string a; int b; h >> a >> b; cout << a << b << (h ? "y" : "n") << endl;
  fstream missing("nothere.txt", ios::in); cout << missing.is_open() << missing.good() << endl;
  while (getline(h, line)) cout << "[" << line << "]";
  cout << h.eof() << endl; h << "x";
}
"""


def test_an_fstream_reads_or_writes(tmp_path):
    (tmp_path / "p.cu").write_text(STREAM)
    (tmp_path / "data.txt").write_text("12 x word rest of it\nthe line here\n1 2 3\n4")
    report = run_program(tmp_path / "p.cu", [], Options(), capture=True)
    assert report.output == "12xword|the line here\nsum 10\nwritten5y\n00\n[]1\n"
    assert report.ended == "refused"
    assert "writing into the midst of it is not supported" in report.message


WRITERS = {
    "fwrite": 'FILE* f = fopen("o", "w"); for (int i = 0; i < 40; i++) fwrite(block, 1, sizeof block, f);',
    "fputc": 'FILE* f = fopen("o", "w"); for (int i = 0; i < 20000; i++) fputc(1, f);',
    "ofstream": 'std::ofstream o("o"); for (int i = 0; i < 3000; i++) o << "12345678";',
    "seek": 'FILE* f = fopen("o", "w"); fseek(f, 1L << 31, SEEK_SET); fputc(1, f);',
    "seek in a copy": """
        FILE* f = fopen("o", "w"); fputc(1, f); fclose(f);
        f = fopen("o", "r"); fseek(f, 1L << 31, SEEK_SET); fputc(1, f);""",
    "seeks and stdout": """
        for (int i = 0; i < 6000; i++) putchar('x');
        FILE* f = fopen("o", "w"); fseek(f, 5000, SEEK_SET); fputc(1, f);
        f = fopen("p", "w+"); fseek(f, 6000, SEEK_SET); fputc(1, f);""",
    "again": 'for (int i = 0; i < 40; i++) { FILE* f = fopen("o", "w"); fwrite(block, 1, 1000, f); fclose(f); }',
    "appended": 'for (int i = 0; i < 40; i++) { FILE* f = fopen("o", "a"); fwrite(block, 1, 1000, f); fclose(f); }',
    "removed": 'for (int i = 0; i < 40; i++) { FILE* f = fopen("o", "w"); fwrite(block, 1, 1000, f); remove("o"); }',
    "images": 'for (int i = 0; i < 40; i++) stbi_write_bmp("o.bmp", 20, 20, 3, block);',
}
START = """#include <stdio.h>
#include <fstream>
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include "stb_image_write.h"
static char block[4000];
"""


@pytest.mark.parametrize("how", WRITERS)
def test_what_is_written_to_memory_counts_as_output(tmp_path, how):
    """stdout and files together are limited by --limit-output, zeros that a seek adds included."""
    (tmp_path / "p.cu").write_text(f"{START}int main() {{ {WRITERS[how]} return 7; }}\n")
    report = run_program(tmp_path / "p.cu", options=Options(output=1 << 14), capture=True)
    assert (report.status, report.ended) == (4, "limit"), report.message
    assert "more than 16384 bytes (--limit-output)" in report.message
    if "1L << 31" not in WRITERS[how]:
        assert run_program(tmp_path / "p.cu", options=Options(output=1 << 20), capture=True).status == 7


def test_what_is_written_to_an_allowed_folder_counts_as_output(tmp_path):
    (tmp_path / "p.cu").write_text(
        "#include <stdio.h>\nstatic char block[1000];\n"
        'int main() { FILE* f = fopen("o", "w"); for (int i = 0; i < 40; i++) fwrite(block, 1, sizeof block, f); }\n'
    )
    report = run_program(tmp_path / "p.cu", options=Options(output=1 << 14, writable=[str(tmp_path)]), capture=True)
    assert "more than 16384 bytes (--limit-output)" in report.message
    assert (tmp_path / "o").stat().st_size <= 1 << 14


def test_a_seek_before_the_beginning_fails_as_in_c(tmp_path):
    (tmp_path / "p.cu").write_text(
        '#include <stdio.h>\nint main() { FILE* f = fopen("o", "w"); fputs("abc", f);\n'
        'printf("%d ", fseek(f, -9, SEEK_SET)); printf("%d %ld\\n", fseek(f, -1, SEEK_END), ftell(f)); }\n'
    )
    assert run_program(tmp_path / "p.cu", capture=True).output == "-1 0 2\n"


def test_a_file_that_is_not_closed_is_written_at_exit(tmp_path):
    (tmp_path / "p.cu").write_text(
        "#include <stdio.h>\n#include <fstream>\n"
        'int main() { fputs("x", fopen("o", "w")); static std::ofstream q("q"); q << "yy"; return 0; }\n'
    )
    run_program(tmp_path / "p.cu", [], Options(writable=[str(tmp_path)]), capture=True)
    assert [(tmp_path / name).read_text() for name in "oq"] == ["x", "yy"]


def test_a_report_that_cannot_be_sent_ends_the_process(tmp_path):
    """Its parent is gone: the process once hung."""
    reader, writer = os.pipe()
    os.close(reader)  # before the fork: the pipe must be closed in both processes
    child = os.fork()
    if child == 0:
        Report(writer)({"ended": "exit"})
        os._exit(0)
    os.close(writer)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux's full device")
def test_output_that_cannot_be_written_fails_with_a_message(tmp_path, capfd):
    (tmp_path / "p.cu").write_text('#include <stdio.h>\nint main() { printf("x"); return 0; }\n')
    usual = os.dup(1)
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        os.dup2(full, 1)
        report = run_program(tmp_path / "p.cu")
    finally:
        os.dup2(usual, 1)
        os.close(usual)
        os.close(full)
    assert (report.status, report.ended) == (4, "failed")
    assert report.message == "what the program wrote cannot be written: No space left on device"
    assert "Traceback" not in capfd.readouterr().err


def test_a_folder_may_be_named_like_a_keyword(tmp_path):
    """A string that contains __global__ is a kernel's text; here it is a path."""
    folder = tmp_path / "my __global__ kernels"
    folder.mkdir()
    (folder / "p.cu").write_text("int main() { return 5; }\n")
    report = run_program(folder / "p.cu", [], Options(), capture=True)
    assert (report.ended, report.status) == ("exit", 5), report.message
