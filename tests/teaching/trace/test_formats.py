"""Findings as people and programs read them: text, compute-sanitizer's form, SARIF, JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewise.teaching.trace import check
from tilewise.teaching.trace.grouping import by_place, names, thread_lines
from tilewise.teaching.trace.sanitizer import report_sanitizer
from tilewise.teaching.trace.sarif import report_sarif

KERNELS = Path(__file__).parents[2] / "emulator" / "kernels"


@pytest.fixture(scope="module")
def unchecked():
    return check(KERNELS / "tiled_unchecked.cu", shape=(3, 3, 3), tile=2)


@pytest.fixture(scope="module")
def many():
    return check(KERNELS / "wrong" / "stride_of_the_other_matrix.cu")


class TestText:
    def test_a_silent_overrun_is_quoted_with_its_thread_and_the_cell_reached(self, unchecked):
        text = unchecked.text(everything=True)
        assert "   12 | ds_M[ty][tx] = M[Row * Width + p * TILE_WIDTH + tx];\n" in text
        assert "      |                ^^^^^^" in text
        assert "  threads (x 1, y 0) (x 1, y 1) of blocks (x 0, y 0) (x 1, y 0)\n    silent-overrun: 4 loads" in text
        assert "(x 1, y 1) of block (x 0, y 0), phase 1: asks M[1][3], gets M[2][0]" in text
        assert "(x 1, y 1) of block (x 0, y 1), phase 0: asks M[3][1], which is outside" in text
        assert "change: M is 3 x 3: load only where p * TILE_WIDTH + tx < Width" in text
        assert "2 faults in 1 launch" in text.splitlines()[-1]

    def test_a_line_is_quoted_once_however_many_findings_it_has(self, unchecked):
        text = unchecked.text()
        assert text.count("P[Row * Width + Col] = Pvalue;") == 1
        assert text.count("tiled_unchecked.cu:19:5") == 1

    def test_the_same_fault_at_several_shapes_is_reported_once(self, many):
        text = many.text()
        assert len(many.runs) == 4
        assert text.count("out-of-bounds:") == 1
        assert "at 17x31x19, 8x9x7" in text

    @pytest.mark.parametrize("width", [60, 80, 100])
    def test_it_fits_the_width_but_for_quoted_lines(self, unchecked, width):
        for line in unchecked.text(width).splitlines():
            assert len(line) <= width or "|" in line or ".cu" in line

    def test_a_clean_kernel_has_no_faults(self):
        text = check(KERNELS / "tiled_edges.cu").text()
        assert "no faults in 3 launches" in text

    def test_costs_are_shown_on_request(self):
        report = check(KERNELS / "right" / "x_as_the_row.cu", shape=(64, 64, 64), tile=32)
        assert "bank-conflict" not in report.text()
        assert "--costs shows them" in report.text()
        assert "uncoalesced" in report.text(costs=True)


def test_threads_are_named_shortly():
    square = [(x, y) for y in range(4) for x in range(4)]
    assert names(square) == "(x 0–3, y 0–3)"
    assert names([(1, 0), (1, 1)]) == "(x 1, y 0) (x 1, y 1)"
    assert names([(3, y) for y in range(16)]) == "(x 3, y 0–15)"
    assert names([(y, y) for y in range(9)]).endswith("(x 5, y 5) … 3 more")
    lines = thread_lines(frozenset(((b, 0), (0, b)) for b in range(9)))
    assert len(lines) == 3
    assert "7 more blocks" in lines[-1]


class TestSanitizer:
    def test_it_has_the_form_people_know(self, unchecked):
        lines = report_sanitizer(unchecked).splitlines()
        assert all(line.startswith("=========") for line in lines)
        assert "========= Invalid __global__ read" in lines
        assert "=========     by thread (0,1,0) in block (0,1,0)" in lines
        assert any(line.endswith("tiled_unchecked.cu:12") for line in lines)
        assert "=========     asks for M[0][3], reaches M[1][0]" in lines
        assert lines[-1] == f"========= ERROR SUMMARY: {sum(f.count for f in unchecked.seen)} errors"

    def test_a_clean_kernel_has_no_errors(self):
        assert report_sanitizer(check(KERNELS / "tiled_edges.cu")).endswith("ERROR SUMMARY: 0 errors")

    def test_every_wrong_kernel_has_a_report(self):
        for path in (KERNELS / "wrong").glob("[a-h]*.cu"):
            if path.stem in ("index_overflow", "shared_sum_without_a_barrier", "race_between_blocks"):
                continue
            report = check(path)
            printed = report_sanitizer(report)
            assert ("ERROR SUMMARY: 0" in printed) == report.ok
            assert "only at other sizes" in printed or not report.ok


class TestSarif:
    def test_it_has_what_the_schema_requires(self, unchecked):
        document = json.loads(json.dumps(report_sarif(unchecked)))
        assert document["version"] == "2.1.0"
        assert document["$schema"].endswith("sarif-schema-2.1.0.json")
        (run,) = document["runs"]
        driver = run["tool"]["driver"]
        assert driver["name"] == "tilewise"
        assert len(run["results"]) == len(by_place(unchecked.runs)) == 8
        for result in run["results"]:
            assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
            assert result["level"] == "error"
            assert result["message"]["text"]
            place = result["locations"][0]["physicalLocation"]
            region = place["region"]
            assert place["artifactLocation"]["uri"].endswith("tiled_unchecked.cu")
            assert 1 <= region["startLine"] <= 20
            assert 1 <= region["startColumn"] < region["endColumn"]
        assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
        assert all(rule["shortDescription"]["text"] for rule in driver["rules"])

    def test_a_race_points_at_both_places(self):
        report = check(KERNELS / "wrong" / "second_barrier_missing.cu")
        results = report_sarif(report)["runs"][0]["results"]
        race = next(r for r in results if r["ruleId"] == "race")
        related = race["relatedLocations"][0]["physicalLocation"]["region"]
        assert "sum +=" in related["snippet"]["text"]

    def test_names_with_blanks_and_letters_become_a_uri(self, tmp_path):
        path = tmp_path / "bài tập 1.cu"
        path.write_text((KERNELS / "tiled_unchecked.cu").read_text(encoding="utf-8"), encoding="utf-8")
        uri = report_sarif(check(path, shape=(3, 3, 3)))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        assert uri["artifactLocation"]["uri"].endswith("b%C3%A0i%20t%E1%BA%ADp%201.cu")
