"""Files of a program: what it writes without leave goes to memory and is read back; nothing on the disk changes."""

from __future__ import annotations

import json
import os
import threading
import time

from tilewise.engines.simt.check.program_child import Report
from tilewise.engines.simt.host.options import Options
from tilewise.engines.simt.host.process import run_program
from tilewise.engines.simt.host.watch import Watch

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


def test_with_leave_they_are_written(tmp_path):
    (tmp_path / "p.cu").write_text(
        '#include <stdio.h>\nint main() { FILE* f = fopen("o", "w"); fputs("x", f); fclose(f); }\n'
    )
    assert run_program(tmp_path / "p.cu", [], Options(writable=[str(tmp_path)]), capture=True).notes == []
    assert (tmp_path / "o").read_text() == "x"


def test_a_run_reports_once():
    """A limit that is met as the program ends would have written a second report behind the first."""
    reader, writer = os.pipe()
    report = Report(writer)
    report({"ended": "refused"})
    second = threading.Thread(target=report, args=({"ended": "limit"},), daemon=True)
    second.start()
    second.join(0.3)
    assert second.is_alive()
    with os.fdopen(reader) as pipe:
        assert json.loads(pipe.read()) == {"ended": "refused"}


def test_waits_of_every_thread_of_the_program_are_left_out(tmp_path):
    """The program runs in a thread of its own: what the first thread waited says nothing about it."""
    for thread, waited in (("11", 2), ("12", 5)):
        (tmp_path / thread).mkdir()
        (tmp_path / thread / "schedstat").write_text(f"9000000000 {waited}000000000 1\n")
    watch = Watch.__new__(Watch)
    watch._waits, watch._ran, watch.tasks, watch._typed = {}, 0.0, str(tmp_path), False
    watch._files, watch._sealed = {}, False
    assert watch.without_a_core() == 7.0
    watch.began, watch.options = time.monotonic() - 9, Options(seconds=8)
    assert "longer than 8 s" in watch._look()  # a thread had a core for 9 s, whatever others waited
    (tmp_path / "11" / "schedstat").unlink()
    (tmp_path / "11").rmdir()
    assert watch.without_a_core() == 7.0


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
