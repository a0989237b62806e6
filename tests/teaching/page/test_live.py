"""The live page answers only requests from its own address; a change is run, an error names its line."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

import tilewise
from tilewise.emulator.limits import DEFAULT, Limits
from tilewise.teaching.page import edits, live
from tilewise.teaching.page.live import Server, Workbench
from tilewise.teaching.page.recording import COURSE


@pytest.fixture
def server(tmp_path, monkeypatch):
    """In this process, edits too: it may have threads of other tests, and a copy of it their locks. The tests of the
    command fork as the command does."""
    file = tmp_path / "mine.cu"
    file.write_text(COURSE.read_text(encoding="utf-8"), encoding="utf-8")
    settings = {"shape": (4, 4, 4), "limits": replace(DEFAULT, seconds=20.0)}
    with monkeypatch.context() as alone:
        alone.delattr(os, "fork", raising=False)
        made = Server(Workbench(file, watch=True, settings=settings), "en")
    worker = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
    worker.start()
    yield made, file
    made.shutdown()
    made.server_close()
    worker.join()


def request(server, path, body=None, **headers):
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    line.request("GET" if body is None else "POST", path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    answer = line.getresponse()
    made = answer.status, answer.read().decode()
    line.close()
    return made


def test_the_page_and_a_change(server):
    server, file = server
    path = f"/{server.token}/"
    status, page = request(server, path)
    assert (status, "connect-src 'self'" in page) == (200, True)
    text = file.read_text(encoding="utf-8")
    racing = text.replace("__syncthreads();\n    }", "}")
    status, answer = request(server, f"{path}run", racing)
    made = json.loads(answer)
    assert "scenes" in made, made
    assert [f["kind"] for f in made["scenes"][0]["trace"]["findings"] if f["severity"] == "fault"].count("race") >= 1
    assert [s["schedule"] for s in made["settings"]] == [False]
    made = json.loads(request(server, f"{path}order", racing)[1])
    assert [s["schedule"] for s in made["settings"]] == [False, True]
    broken = text.replace("float pValue = 0;", "float pValue = ;")
    made = json.loads(request(server, f"{path}run", broken)[1])
    assert made["line"] == 1 + text[: text.index("float pValue")].count("\n")
    assert "scenes" not in made
    assert json.loads(request(server, f"{path}run", "int x;")[1])["error"]


def test_a_saved_file_is_run_again(server):
    server, file = server
    path = f"/{server.token}/news?known=0"
    text = file.read_text(encoding="utf-8")
    timer = threading.Timer(0.3, lambda: file.write_text(text.replace("pValue", "sum"), encoding="utf-8"))
    timer.start()
    status, answer = request(server, path)
    made = json.loads(answer)
    assert (status, made["number"]) == (200, 1)
    assert "float sum = 0;" in made["text"]
    assert made.get("scenes"), made


ENDLESS = """
__global__ void mine(float* A, float* B, float* C, int Width) {
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    while (Width > 0) C[row * Width + col] += 1;
}
"""


@pytest.fixture
def command(tmp_path):
    """The live page by the command line, with half a second for each edit."""
    file = tmp_path / "mine.cu"
    file.write_text(COURSE.read_text(encoding="utf-8"), encoding="utf-8")
    command = ["explore", str(file), "--watch", "--no-open", "--shape", "4x4x4"]
    command += ["--limit", "seconds=0.5", "--limit", "steps=1000000000"]
    environment = {**os.environ, "PYTHONPATH": str(Path(tilewise.__file__).parents[1])}
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewise", *command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    address = urlsplit(process.stdout.readline().decode().strip())
    yield SimpleNamespace(
        server=SimpleNamespace(server_port=address.port), path=address.path, file=file, process=process
    )
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    assert process.communicate(timeout=10)[1].decode().splitlines()[-1] == "ended"


def save(file, text):
    """As an editor does: whole, under its name."""
    file.with_suffix(".new").write_text(text, encoding="utf-8")
    file.with_suffix(".new").replace(file)


def test_limits_count_for_each_edit_and_not_for_the_server(command):
    """It was ended when the limit of one command was used up; now an edit that is endless ends alone."""
    text = command.file.read_text(encoding="utf-8")
    began = time.monotonic()
    request(command.server, command.path)
    for number in range(1, 8):
        endless = number % 3 == 0
        save(command.file, ENDLESS if endless else f"// {number}\n{text}")
        status, answer = request(command.server, f"{command.path}news?known={number - 1}")
        made = json.loads(answer)
        assert (status, made["number"]) == (200, number)
        if endless:
            assert "after 0.5 s" in made["error"] or "0.5 s were used up" in made["error"], made["error"]
        else:
            assert made["text"].startswith(f"// {number}\n")
            assert made["scenes"], made
        time.sleep(0.3)
    assert time.monotonic() - began > 2.5, "longer than the limit and the second of grace"
    assert command.process.poll() is None


def test_a_page_opened_later_shows_the_present_file(command):
    """It was of the file as it was first; and of the lecture notes' kernel, once the limit was used up."""
    time.sleep(2)
    text = command.file.read_text(encoding="utf-8").replace("pValue", "total")
    save(command.file, text)
    _, page = request(command.server, command.path)
    settings = json.loads(re.search(r'id="settings">(.*?)</script>', page, re.S)[1])
    assert settings["live"]["text"] == text
    assert settings["live"]["number"] == 1
    made = json.loads(request(command.server, f"{command.path}run", text)[1])
    assert "total" in made["scenes"][0]["trace"]["source"]


def unstoppable(settings, text, order):
    """As a step in C that holds the interpreter's lock: nothing in the process can end it."""
    if "endless" in text:
        with edits.budget.within(settings["limits"]):
            re.match("(a+)+$", "a" * 60 + "b")
    return {"scenes": [text]}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a child is forked")
def test_an_edit_that_cannot_be_stopped_is_killed_and_the_next_one_runs():
    made = edits.Edits(partial(unstoppable, {"limits": Limits(seconds=0.2)}))
    try:
        assert made.run("one") == {"scenes": ["one"]}
        assert "0.2 s were used up" in made.run("endless")["error"]
        assert made.run("two") == {"scenes": ["two"]}
        os.kill(made._child, signal.SIGKILL)
        assert made.run("three")["error"] == edits.GONE
    finally:
        made.close()


def test_two_saves_with_one_mtime_are_both_run(server):
    server, file = server
    bench, text = server.workbench, file.read_text(encoding="utf-8")
    before = file.stat()
    for number, name in enumerate(("aaaaaa", "bbbbbb"), 1):
        file.write_text(text.replace("pValue", name), encoding="utf-8")
        os.utime(file, ns=(before.st_atime_ns, time.time_ns() // 10**9 * 10**9))
        assert bench.now() == (number, text.replace("pValue", name))


@pytest.mark.parametrize(
    "sent", [b"", b"GET /", b"POST /TOKEN/run HTTP/1.0\r\nHost: HERE\r\nContent-Length: 9\r\n\r\nabc", None]
)
def test_a_slow_client_is_disconnected(server, monkeypatch, sent):
    """Nothing, half a line, half a text, or a byte now and then (None): the connection is closed all the same."""
    server, _ = server
    usual = live.REQUEST
    monkeypatch.setattr(live, "REQUEST", 0.4)
    before = threading.active_count()
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=usual) as line:
        here = f"127.0.0.1:{server.server_port}"
        if sent is None:
            with contextlib.suppress(OSError):
                while time.monotonic() - began < usual:
                    line.sendall(b"G")
                    time.sleep(0.1)
        else:
            line.sendall(sent.replace(b"TOKEN", server.token.encode()).replace(b"HERE", here.encode()))
            assert line.recv(100) == b""
    assert time.monotonic() - began < usual
    while threading.active_count() > before and time.monotonic() - began < 5:
        time.sleep(0.02)
    assert threading.active_count() <= before
    assert request(server, f"/{server.token}/")[0] == 200


def test_other_requests_are_refused(server):
    server, _ = server
    path, here = f"/{server.token}/", f"127.0.0.1:{server.server_port}"
    wrong = [
        request(server, "/"),
        request(server, "/run", ""),
        request(server, f"/{server.token[:-1]}/"),
        request(server, f"/{'x' * len(server.token)}/run", ""),
        request(server, path, Host="evil.example"),
        request(server, path, Host=f"evil.example:{server.server_port}"),
        request(server, f"{path}run", "", Origin="http://evil.example"),
        request(server, f"{path}run", "", Origin="null"),
        request(server, f"{path}news?known=0", Sec_Fetch_Site="cross-site"),
    ]
    assert wrong == [(403, "refused")] * len(wrong)
    assert request(server, path, Host=here, Origin=f"http://{here}")[0] == 200
    assert request(server, f"{path}../etc/passwd")[0] == 404
    assert request(server, f"{path}run", "x" * 200_001)[0] == 413
    assert server.server_address[0] == "127.0.0.1", "no other machine reaches it"
