"""What `kernels/hopper/thin_edges.cuh` needs: a last row and column of P beside its whole tiles.

P's last column is all of M times N's last column, its last row M's last row times all of N. Where both operands are
realigned they are multiplied with each other's edge on the way, and leave planes of sums. Else the edge is copied side
by side, and the kernel reads it and the operand.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from tilewise.engines.cuda.placed import Placed
from tilewise.engines.cuda.queue import Launch
from tilewise.engines.cuda.realign import Edge, Lines, Sums, launch_with_edges, lines_of, planes_of
from tilewise.tensor_tiles import REALIGNED, TensorWay, along_columns


class _Side(ctypes.Structure):
    """The kernel's `Side`: an operand and the other one's edge, or the sums of their products."""

    _fields_ = (
        ("source", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("lines", ctypes.c_int),
        ("length", ctypes.c_int),
        ("lead", ctypes.c_longlong),
        ("along_k", ctypes.c_int),
        ("edge", ctypes.c_void_p),
        ("edges", ctypes.c_int),
        ("planes", ctypes.c_void_p),
        ("count", ctypes.c_int),
        ("pitch", ctypes.c_longlong),
    )


class ThinEdgesArgument(ctypes.Structure):
    """The kernel's `ThinEdges`."""

    _fields_ = (("of_cols", _Side), ("of_rows", _Side))


@dataclass(frozen=True)
class _Half:
    """All of one operand, and the other's last row or column."""

    role: str
    source: Placed
    along_k: bool
    moves: bool
    form: str  # how its edge is made, as `TensorWay.edge_forms` names it
    edge: Any  # an Edge that goes nowhere yet

    @property
    def summed(self) -> bool:
        return self.form == "planes"

    @property
    def planes(self) -> tuple[int, int]:
        return planes_of(self.source, self.along_k)

    @property
    def scratch(self) -> str:
        return f"edge beside {self.role}"

    @property
    def scratch_bytes(self) -> int:
        count, pitch = self.planes
        return 4 * count * pitch if self.summed else 2 * self.edge.k * self.edge.count

    def sums(self, address: int) -> Sums:
        return Sums(self.edge.source, self.edge.step, address, self.planes[1])

    def copied(self, address: int) -> Edge:
        e = self.edge
        return Edge(e.source, address, e.k, e.count, e.step, e.next)

    def side(self, address: int, ready: Placed) -> _Side:
        """`ready`: the operand where the kernel finds it."""
        if self.summed:
            count, pitch = self.planes
            return _Side(edges=self.edge.count, planes=address, count=count, pitch=pitch)
        lines, length, lead = lines_of(ready)
        end = ready.pointer + 2 * ((lines - 1) * lead + length)
        return _Side(ready.pointer, end, lines, length, lead, self.along_k, address, self.edge.count)


class ThinEdges:
    """The thin edges of one product; both halves are there, one of them perhaps of no edge."""

    def __init__(self, M: Placed, N: Placed, way: TensorWay) -> None:
        last_row = M.pointer + 2 * (M.rows - way.edge_rows) * M.layout.row
        last_col = N.pointer + 2 * (N.cols - way.edge_cols) * N.layout.col
        cols = Edge(last_col, 0, M.cols, way.edge_cols, N.layout.row, N.layout.col)
        rows = Edge(last_row, 0, M.cols, way.edge_rows, M.layout.col, M.layout.row)
        m_along_k = not along_columns(M.layout, M.rows, M.cols)
        n_along_k = along_columns(N.layout, N.rows, N.cols)
        forms = way.edge_forms(m_along_k, n_along_k) or ("nothing", "nothing")
        self._halves = (
            _Half("M", M, m_along_k, way.routes[0] == REALIGNED, forms[0], cols),
            _Half("N", N, n_along_k, way.routes[1] == REALIGNED, forms[1], rows),
        )

    @property
    def needs(self) -> dict[str, int]:
        """Bytes of scratch."""
        return {half.scratch: half.scratch_bytes for half in self._halves if half.edge.count}

    def launch(self, jobs: dict[str, Lines], addresses: dict[str, int], dtype: str, device: str, stream: Any) -> Launch:
        """Moves operands by their `jobs`, with what the edges need of them on the way."""
        sums, copies = [], []
        for half in self._halves:
            address = addresses.get(half.scratch, 0)
            if half.moves:
                sums.append(half.sums(address) if address and half.summed else Sums())
            copies.append(half.copied(address) if address and not half.summed else Edge())
        moved = [jobs[half.role] for half in self._halves if half.moves]
        along_k = all(half.along_k for half in self._halves if half.summed)
        return launch_with_edges(moved, sums, copies, along_k, dtype, device, stream)

    def argument(self, addresses: dict[str, int], ready: dict[str, Placed]) -> ThinEdgesArgument:
        """`ready`: the operands where the kernel finds them."""
        return ThinEdgesArgument(
            *(h.side(addresses[h.scratch], ready[h.role]) if h.edge.count else _Side() for h in self._halves)
        )
