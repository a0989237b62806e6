"""A Firefox without a window, by WebDriver BiDi, which it speaks itself: scripts in a page, with Selenium's names."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

from websocket import create_connection


class Firefox:
    def __init__(self, program: str, profile: Path, seconds: float = 100) -> None:
        command = [program, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        named, until = profile / "WebDriverBiDiServer.json", time.monotonic() + seconds
        while not (named.exists() and named.stat().st_size):
            assert self.process.poll() is None, "Firefox ended"
            assert time.monotonic() < until, "Firefox names no port"
            time.sleep(0.05)
        server = json.loads(named.read_text())
        address = f"ws://{server['ws_host']}:{server['ws_port']}/session"
        self.socket = create_connection(address, suppress_origin=True, timeout=seconds)
        self.number = 0
        self.version = self.call("session.new", capabilities={})["capabilities"]["browserVersion"]
        self.page = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method: str, **given: Any) -> Any:
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": given}))
        while (answer := json.loads(self.socket.recv())).get("id") != self.number:
            pass
        if "result" not in answer:
            raise RuntimeError(f"{method}: {answer['message']}")
        return answer["result"]

    def get(self, address: str) -> None:
        self.call("browsingContext.navigate", context=self.page, url=address, wait="complete")

    def execute_script(self, code: str, *given: Any) -> Any:
        called = f"const made = (function () {{ {code} }})(...arguments);"
        return self.execute_async_script(f"{called} arguments[arguments.length - 1](made);", *given)

    def execute_async_script(self, code: str, *given: Any) -> Any:
        arguments = f"...{json.dumps(given)}, (made) => done(JSON.stringify(made))"
        text = f"new Promise((done) => (function () {{ {code} }})({arguments}))"
        made = self.call("script.evaluate", expression=text, target={"context": self.page}, awaitPromise=True)
        if made["type"] != "success":
            raise RuntimeError(made["exceptionDetails"]["text"])
        return json.loads(made["result"].get("value", "null"))

    def set_script_timeout(self, seconds: float) -> None:
        self.socket.settimeout(seconds)

    def quit(self) -> None:
        self.socket.close()
        self.process.terminate()
        self.process.wait(20)
