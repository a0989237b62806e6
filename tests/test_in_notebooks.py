"""Results, plans and traces show themselves in a notebook."""

from __future__ import annotations

import numpy as np

import tilewise as tw


def test_a_plan_is_a_table_of_its_rows():
    plan = tw.plan(np.ones((10, 20)), np.ones((20, 30)))
    shown = plan._repr_html_()
    assert shown.startswith("<table")
    assert shown.count("<tr>") == len(plan.rows())
    assert "-&gt;" in shown, "what it says is escaped"


def test_a_check_is_what_the_command_prints():
    report = tw.check("tiled", shape=(3, 3, 3), tile=2)
    assert "silent-overrun" in repr(report)
    assert report._repr_html_().startswith("<pre>")
    assert "silent-overrun" in report._repr_html_()
    assert "no faults" in repr(tw.check("tiled_edges", shape=(3, 3, 3), tile=2))


def test_a_trace_is_the_page_to_step_through():
    shown = tw.trace("tiled_edges", shape=(3, 3, 3), tile=2)._repr_html_()
    assert shown.startswith("<iframe")
    assert "srcdoc=" in shown
