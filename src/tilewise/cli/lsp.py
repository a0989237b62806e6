"""`tilewise lsp`: a language server over stdio: findings of `check` while typing, memory traffic on hover."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

PAUSE = 0.3  # seconds without a change before a document is checked
SECONDS = 5.0  # time limit of a check


@click.command("lsp")
@click.option("--lang", "language", help="Language of the messages; the locale's by default.")
def command(language: str | None) -> int:
    """Serve an editor over stdin and stdout: pip install 'tilewise[lsp]'. editors/vscode starts it from VS Code."""
    from tilewise.errors import EngineError
    from tilewise.i18n.messages import chosen_language

    try:
        import pygls.lsp.server  # noqa: F401
    except ImportError as error:
        raise EngineError("the language server needs pygls: pip install 'tilewise[lsp]'") from error
    serve(chosen_language(language))
    return 0


def serve(language: str) -> None:
    from functools import partial

    from tilewise.teaching.page.edits import Edits

    checks = Edits(partial(_checked, language))  # forked before the server has threads
    try:
        _server(checks).start_io()
    finally:
        checks.close()


def _checked(language: str, document: str) -> dict[str, Any]:
    from tilewise.emulator import budget
    from tilewise.emulator.limits import DEFAULT
    from tilewise.teaching.trace.diagnostics import diagnosed

    given, limits = json.loads(document), replace(DEFAULT, seconds=SECONDS)
    with budget.within(limits):
        return diagnosed(given["text"], Path(given["path"]) if given["path"] else None, language, limits)


def _server(checks: Any) -> Any:
    from lsprotocol import types
    from pygls.lsp.server import LanguageServer

    from tilewise.system.version import __version__

    server = LanguageServer("tilewise", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
    levels = {
        "error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning,
        "information": types.DiagnosticSeverity.Information, "hint": types.DiagnosticSeverity.Hint,
    }  # fmt: skip
    hovers: dict[str, dict[str, str]] = {}
    latest: dict[str, int] = {}  # the number of the last change of each document

    async def publish_findings(uri: str) -> None:
        latest[uri] = number = latest.get(uri, 0) + 1
        await asyncio.sleep(PAUSE)
        if latest[uri] != number:
            return
        document = server.workspace.get_text_document(uri)
        request = json.dumps({"text": document.source, "path": _path(uri)})
        answer = await asyncio.to_thread(checks.run, request)
        if latest[uri] != number:  # changed again meanwhile
            return
        hovers[uri] = answer.get("hovers", {})
        found = answer.get("diagnostics") or ([{"message": answer["error"]}] if "error" in answer else [])
        made = [
            types.Diagnostic(
                _range(types, document.lines, one), one["message"], levels[one.get("level", "error")],
                code=one.get("code"), source="tilewise",
            )
            for one in found
        ]  # fmt: skip
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, made, document.version))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await publish_findings(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await publish_findings(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def saved(params: types.DidSaveTextDocumentParams) -> None:
        await publish_findings(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        text = hovers.get(params.text_document.uri, {}).get(str(params.position.line + 1))
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    return server


def _path(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else ""


def _range(types: Any, source: Any, one: dict[str, Any]) -> Any:
    """The range of a finding; the protocol counts columns in UTF-16 units."""
    line = min(one.get("line", 1), max(1, len(source))) - 1
    text = source[line] if source else ""
    first = one.get("column", 1) - 1

    def units(count: int) -> int:
        return len(text[:count].encode("utf-16-le")) // 2

    ends = units(first), max(units(first + one.get("length", 1)), units(first) + 1)
    return types.Range(*(types.Position(line, at) for at in ends))
