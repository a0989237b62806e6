"""The live page answers its own address and nobody else; a change is run, an error names its line."""

from __future__ import annotations

import http.client
import json
import threading
import time

import pytest

from tilewise.page.live import Server, Workbench
from tilewise.page.recording import COURSE


@pytest.fixture
def server(tmp_path):
    file = tmp_path / "mine.cu"
    file.write_text(COURSE.read_text(encoding="utf-8"), encoding="utf-8")
    made = Server(Workbench(file, watch=True, settings={"shape": (4, 4, 4)}), "en")
    worker = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
    worker.start()
    yield made, file
    made.shutdown()
    made.server_close()
    worker.join()


def ask(server, path, body=None, **headers):
    line = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    line.request("GET" if body is None else "POST", path, body, {k.replace("_", "-"): v for k, v in headers.items()})
    answer = line.getresponse()
    made = answer.status, answer.read().decode()
    line.close()
    return made


def test_the_page_and_a_change(server):
    server, file = server
    path = f"/{server.token}/"
    status, page = ask(server, path)
    assert (status, "connect-src 'self'" in page) == (200, True)
    text = file.read_text(encoding="utf-8")
    started = time.monotonic()
    status, answer = ask(server, f"{path}run", text.replace("__syncthreads();\n    }", "}"))
    took = time.monotonic() - started
    made = json.loads(answer)
    assert [f["kind"] for f in made["scenes"][0]["trace"]["findings"] if f["severity"] == "fault"].count("race") >= 1
    assert [s["schedule"] for s in made["settings"]] == [False, True]
    assert took < 10, "well under a second where nothing else runs; the browser's tests time it"
    broken = text.replace("float pValue = 0;", "float pValue = ;")
    made = json.loads(ask(server, f"{path}run", broken)[1])
    assert made["line"] == 1 + text[: text.index("float pValue")].count("\n")
    assert "scenes" not in made
    assert json.loads(ask(server, f"{path}run", "int x;")[1])["error"]


def test_a_file_that_is_saved_is_news(server):
    server, file = server
    path = f"/{server.token}/news?known=0"
    text = file.read_text(encoding="utf-8")
    timer = threading.Timer(0.3, lambda: file.write_text(text.replace("pValue", "sum"), encoding="utf-8"))
    timer.start()
    status, answer = ask(server, path)
    made = json.loads(answer)
    assert (status, made["number"]) == (200, 1)
    assert "float sum = 0;" in made["text"]
    assert made["scenes"]


def test_nobody_else_is_answered(server):
    server, _ = server
    path, here = f"/{server.token}/", f"127.0.0.1:{server.server_port}"
    wrong = [
        ask(server, "/"),
        ask(server, "/run", ""),
        ask(server, f"/{server.token[:-1]}/"),
        ask(server, f"/{'x' * len(server.token)}/run", ""),
        ask(server, path, Host="evil.example"),
        ask(server, path, Host=f"evil.example:{server.server_port}"),
        ask(server, f"{path}run", "", Origin="http://evil.example"),
        ask(server, f"{path}run", "", Origin="null"),
        ask(server, f"{path}news?known=0", Sec_Fetch_Site="cross-site"),
    ]
    assert wrong == [(403, "refused")] * len(wrong)
    assert ask(server, path, Host=here, Origin=f"http://{here}")[0] == 200
    assert ask(server, f"{path}../etc/passwd")[0] == 404
    assert ask(server, f"{path}run", "x" * 200_001)[0] == 413
    assert server.server_address[0] == "127.0.0.1", "no other machine reaches it"
