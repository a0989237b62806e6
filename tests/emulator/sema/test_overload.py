"""Functions with auto parameters as templates; functions as arguments of templates."""

from __future__ import annotations

from pathlib import Path

from tilewise.emulator.host.process import run_program
from tilewise.emulator.parse import tree
from tilewise.emulator.parse.type_nodes import TypeAuto
from tilewise.emulator.sema.overload import with_auto


def test_a_function_is_never_mistaken_for_a_freed_one_at_the_same_address() -> None:
    """Templates are cached by the identity of the node, which Python reuses once the node is freed."""
    for i in range(50):
        node = tree.Function(f"f{i}", None, [tree.Parameter("x", TypeAuto())], frozenset())
        assert with_auto(node).name == f"f{i}"
        assert with_auto(node) is with_auto(node)
        del node


FORWARDED = """
#include <cstdio>
#include <utility>
int twice(int x) { return 2 * x; }
template <class F, class... A> int call(F&& f, A&&... a) { return f(std::forward<A>(a)...); }
template <class F> int keep(F&& f, int n) { F g = f; return g(n); }
int main() {
  int (*p)(int) = twice;
  printf("%d %d %d %d", call(twice, 4), call(&twice, 5), keep(p, 3), keep(twice, 6));
}
"""


def test_a_function_is_passed_to_a_forwarding_reference(tmp_path: Path) -> None:
    (tmp_path / "p.cu").write_text(FORWARDED)
    report = run_program(tmp_path / "p.cu", capture=True)
    assert (report.message, report.output) == ("", "8 10 6 12")
