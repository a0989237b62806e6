"""All files of a student are one submission, whatever they come in; archives cannot reach outside, or grow."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import PurePosixPath

import numpy as np
import pytest

from tilewise.errors import UsageError
from tilewise.teaching.course import submissions
from tilewise.teaching.course.programs import combined_source
from tilewise.teaching.course.submissions import collect, unpacked
from tilewise.teaching.trace import check

KERNEL = "__global__ void f(float* a) { a[threadIdx.x] = 1; }\n"
MAIN = '#include "f.cuh"\nint main() { return 0; }\n'


def zipped(files, **attributes):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = attributes.get("mode", 0o100644) << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())


def names(found):
    return {one.name: sorted(one.files) for one in found}


def test_a_student_s_files_are_one_submission(tmp_path):
    write(tmp_path, {"class/an/main.cu": MAIN, "class/an/f.cuh": KERNEL, "class/an/more/g.cu": KERNEL})
    write(tmp_path, {"class/binh.cu": KERNEL, "class/chi.zip": zipped({"work/main.cu": MAIN, "work/f.cuh": KERNEL})})
    write(tmp_path, {"class/two/first.cu": MAIN, "class/two/second.cu": MAIN})
    assert names(collect([str(tmp_path / "class")])) == {
        "an": ["f.cuh", "main.cu", "more/g.cu"], "binh": ["binh.cu"], "chi": ["f.cuh", "main.cu"],
        "two/first": ["first.cu"], "two/second": ["second.cu"],
    }  # fmt: skip
    assert names(collect([str(tmp_path / "class" / "an")])) == {"an": ["f.cuh", "main.cu", "more/g.cu"]}


def test_a_file_brings_what_it_includes_but_no_other_submission(tmp_path):
    write(tmp_path, {"an.cu": '#include "an.cuh"\n#include "binh.cu"\n#include "../up.cuh"\n' + KERNEL, "an.cuh": ""})
    write(tmp_path, {"binh.cu": KERNEL})
    found = collect([str(tmp_path / "*.cu")])
    assert names(found) == {"an": ["an.cu", "an.cuh"], "binh": ["binh.cu"]}


def test_the_names_of_learning_platforms(tmp_path):
    moodle = {"Trần An_41_assignsubmission_file_/main.cu": KERNEL, "Lê Bình_42_assignsubmission_file_/x.cu": KERNEL}
    write(tmp_path, {"moodle.zip": zipped(moodle)})
    found = collect([str(tmp_path / "moodle.zip")])
    assert [(one.name, one.id) for one in found] == [("Lê Bình", "42"), ("Trần An", "41")]
    canvas = {"levanan_77_1234_main.cu": MAIN, "levanan_77_1235_f.cuh": KERNEL, "phamchi_LATE_78_1236_main.cu": KERNEL}
    write(tmp_path, {f"canvas/{name}": text for name, text in canvas.items()})
    found = collect([str(tmp_path / "canvas")])
    assert [(one.name, one.id, sorted(one.files)) for one in found] == [
        ("levanan", "77", ["f.cuh", "main.cu"]), ("phamchi", "78", ["main.cu"]),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["/etc/x.cu", "../x.cu", "a/../../x.cu", "C:/x.cu", "..\\x.cu"])
def test_a_path_that_leaves_the_archive_is_refused(name):
    with pytest.raises(UsageError, match="outside itself"):
        unpacked(zipped({name: KERNEL}))


def test_links_and_devices_are_left_out():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, kind in (("link.cu", tarfile.SYMTYPE), ("hard.cu", tarfile.LNKTYPE), ("fifo.cu", tarfile.FIFOTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)
        info = tarfile.TarInfo("right.cu")
        info.size = len(KERNEL)
        tar.addfile(info, io.BytesIO(KERNEL.encode()))
    assert unpacked(out.getvalue()) == {"right.cu": KERNEL.encode()}
    assert unpacked(zipped({"link.cu": "/etc/passwd"}, mode=0o120777)) == {}


def test_a_bomb_costs_no_more_than_the_limit(tmp_path, monkeypatch):
    bomb = zipped({"zeros.cu": bytes(40 << 20)})
    assert len(bomb) < 100_000
    with pytest.raises(UsageError, match="more than"):
        unpacked(bomb)
    lying = bytearray(zipped({"zeros.cu": bytes(1 << 16)}))
    at = lying.index((1 << 16).to_bytes(4, "little"), lying.index(b"PK\1\2"))
    lying[at : at + 4] = (10).to_bytes(4, "little")  # the directory says ten bytes
    with pytest.raises(UsageError):
        unpacked(bytes(lying))
    monkeypatch.setattr(submissions, "MOST_FILES", 3)
    with pytest.raises(UsageError, match="files"):
        unpacked(zipped({f"{i}.cu": "" for i in range(5)}))
    write(tmp_path, {"an.zip": b"PK\3\4 not a zip"})
    assert "cannot be read" in collect([str(tmp_path / "an.zip")])[0].trouble


def test_several_sources_are_read_together_and_findings_name_their_file():
    files = {
        "main.cu": b'#include <cstdio>\n#include "k.cuh"\nint main() { return 0; }\n',
        "inc/k.cuh": b"#pragma once\n\n" + KERNEL.encode(),
        "g.cu": b'#include "k.cuh"\nint g;\n',
    }
    with combined_source(files) as path:
        report = check(path, args={"a": np.ones(8, np.float32)}, grid=(1,), block=(16,))
    assert [(PurePosixPath(f.place.file).name, f.line > 2) for f in report.faults] == [("k.cuh", True)]
