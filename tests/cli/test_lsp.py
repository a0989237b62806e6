"""The language server, spoken to over stdin and stdout as an editor does."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys

import pytest

from tilewise.cli.lsp import _path
from tilewise.cli.main import run

WRONG = """__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = 2 * x[i];
}
int main() {
    float* x;
    cudaMalloc(&x, 100 * sizeof(float));
    cudaMemset(x, 0, 400);
    scale<<<1, 128>>>(x, 100);
    cudaDeviceSynchronize();
    cudaFree(x);
}
"""


class Client:
    def __init__(self, process):
        self.process, self.number = process, 0

    def send(self, method, params, answered=True):
        self.number += 1
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({"id": self.number} if answered else {})
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()
        return self.until(lambda m: m.get("id") == self.number)["result"] if answered else None

    def until(self, wanted):
        while True:
            length = 0
            while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            assert length, "the server has ended"
            message = json.loads(self.process.stdout.read(length))
            if wanted(message):
                return message

    def diagnostics(self):
        return self.until(lambda m: m.get("method") == "textDocument/publishDiagnostics")["params"]["diagnostics"]


@pytest.fixture
def client():
    pytest.importorskip("pygls", reason="pip install 'tilewise[lsp]'")
    process = subprocess.Popen(
        [sys.executable, "-m", "tilewise", "lsp", "--lang", "en"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with contextlib.closing(process.stdout), contextlib.closing(process.stdin):
        yield Client(process)
        process.kill()
        process.wait()


@pytest.mark.slow  # starts a process that imports everything; test_diagnostics has the same answers without it
def test_findings_come_while_typing_and_traffic_on_hover(client, tmp_path):
    uri = (tmp_path / "scale.cu").as_uri()
    assert client.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
    client.send("initialized", {}, answered=False)
    document = {"uri": uri, "languageId": "cuda-cpp", "version": 1, "text": WRONG}
    client.send("textDocument/didOpen", {"textDocument": document}, answered=False)
    found = client.diagnostics()
    assert ("out-of-bounds", 2) in {(d["code"], d["range"]["start"]["line"]) for d in found}
    right = WRONG.replace("    x[i] =", "    if (i < n) x[i] =")
    change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": right}]}
    client.send("textDocument/didChange", change, answered=False)
    assert not [d for d in client.diagnostics() if d["severity"] == 1]
    broken = {"textDocument": {"uri": uri, "version": 3}, "contentChanges": [{"text": WRONG.replace("2 *", "2 * *")}]}
    client.send("textDocument/didChange", broken, answered=False)
    assert client.diagnostics()[0]["range"]["start"]["line"] == 2
    client.send("shutdown", None)


def test_without_pygls_the_error_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    assert run(["lsp"]) != 0
    assert "pip install 'tilewise[lsp]'" in capsys.readouterr().err


def test_a_file_is_named_by_its_uri():
    assert _path("file:///home/a%20b/x.cu") == "/home/a b/x.cu"
    assert _path("untitled:1") == ""
