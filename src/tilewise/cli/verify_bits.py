"""`tilewise verify-bits`: fingerprints of files, and whether known products have theirs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tilewise.cli.output import json_option, show


@click.command("verify-bits")
@click.argument("files", nargs=-1, metavar="[FILE…]", type=click.Path(path_type=Path))
@click.option("--device", default="cpu", show_default=True, help="Where products are made: cpu, cuda, cuda:1.")
@json_option
def command(files: tuple[Path, ...], device: str, as_json: bool) -> int:
    """The fingerprint of each array (.npy); of a document (.json), or of the package without FILE, whether its products
    with --reproducible everywhere have the fingerprints it lists. Exit 1 where one has another."""
    document: dict[str, Any] = {"arrays": {}, "products": 0, "different": []}
    for path in files or (None,):
        if path is not None and path.suffix == ".npy":
            from tilewise.cli.npy import read_matrix
            from tilewise.functions.fingerprint import fingerprint

            document["arrays"][str(path)] = fingerprint(read_matrix(path))
        else:
            _verify(path, device, document)
    rows = [(name, made) for name, made in document["arrays"].items()]
    if document["products"]:
        wrong = document["different"]
        rows.append(("products", f"{document['products'] - len(wrong)} of {document['products']} have their bits"))
        rows += [("different", f"{x['product']}: {x['made']} instead of {x['known']}") for x in wrong]
    show(document, rows, as_json)
    return 1 if document["different"] else 0


def _verify(path: Path | None, device: str, document: dict[str, Any]) -> None:
    from tilewise.cli.npy import opened
    from tilewise.functions.fingerprint import known_products

    text = None
    if path is not None:
        with opened(path) as file:
            text = file.read().decode("utf-8", "replace")
    for known in known_products(text):
        made = known.made(device=device)
        document["products"] += 1
        if made != known.fingerprint:
            product = f"{known.shape} {known.dtype} {known.semiring}, seed {known.seed}"
            document["different"].append({"product": product, "made": made, "known": known.fingerprint})
