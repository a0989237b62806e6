"""Runs of the emulator that a page's computed runs are compared with."""

from __future__ import annotations

import tilewise as tw
from tilewise.teaching.page.variants import drops_of, without


def variant(page, drops, **settings):
    """The trace of a page's kernel without these checks and barriers, of all blocks."""
    made = page.trace
    chosen = tuple(d for d in drops_of(made) if d.name in drops)
    assert len(chosen) == len(drops)
    run = made.run
    own = {"shape": run.shape, "tile": run.tile, "grid": run.grid, "block": run.block, "entry": run.entry}
    return tw.trace(without(made.source, chosen), **{"blocks": "all", "adversarial": True, **own, **settings})


RECTANGULAR = [(3, 3, 3), (5, 6, 7), (9, 5, 2), (1, 1, 1), (16, 16, 16)]
SQUARE = [(3, 3, 3), (5, 5, 5), (1, 1, 1), (8, 8, 8), (16, 16, 16)]
COMPUTE = """
const [shape, options, done] = arguments;
window.tilewise.compute(shape, options)
  .then((run) => done({ ...run, findings: run.findings.map((f) => ({ ...f, touches: f.touches.slice(0, 1) })) }))
  .catch((error) => done({ error: String(error) }));
"""


def of_check(finding, run):
    """Kind, line, array and count of a finding, with the block, thread, phase and cell of its first touch."""
    first = finding.touches[0] if finding.touches and finding.touches[0].thread else None
    if first is None:
        return str(finding.kind), finding.line, finding.array, finding.count, None
    numbers = [
        sum(at * side for at, side in zip(name, (1, sides[0], sides[0] * sides[1]), strict=False))
        for name, sides in ((first.block, run.grid), (first.thread, run.block))
    ]
    return (
        str(finding.kind),
        finding.line,
        finding.array,
        finding.count,
        [*numbers, first.phase, list(first.requested or ())],
    )


def of_page(finding):
    touch = finding["touches"][0] if finding["touches"] else None
    first = None
    if touch is not None and touch["thread"] is not None:
        first = [touch["block"], touch["thread"], touch["phase"], touch["asked"]]
    return finding["kind"], finding["line"], finding["array"], finding["count"], first


def computed(driver, shape, **options):
    driver.set_script_timeout(60)
    made = driver.execute_async_script(COMPUTE, list(shape), options)
    assert "error" not in made, made
    return made


def agrees(driver, page):
    shapes = SQUARE if page.compute["square"] else RECTANGULAR
    some = [(), *((name,) for name in page.drops)]
    cases = [(shape, left_out, {}) for shape in shapes for left_out in some]
    cases += [(shapes[1], (), {"tile": tile}) for tile in page.compute["tiles"] if tile != page.trace.run.tile]
    for shape, left_out, tile in cases:
        at = f"{shape} {tile} without {left_out}"
        expected = variant(page, left_out, shape=shape, grid=None, block=None, adversarial=False, **tile).run
        made = computed(driver, shape, drops=list(left_out), **tile)
        found = sorted(of_page(f) for f in made["findings"])
        assert found == sorted(of_check(f, expected) for f in expected.faults), at
        for name in ("loads", "stores", "uses", "fills", "barriers", "phases", "loads without tiles"):
            assert made["counters"][name] == expected.counters[name], f"{name} at {at}"
