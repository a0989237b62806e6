"""What `thin_edges.cuh` needs: a last row and column of P beside its whole tiles.

P's last column is all of M times N's last column, its last row M's last row times all of N. Where both operands are
realigned they are multiplied with each other's edge on the way, and leave planes of sums. Else the edge is copied side
by side, and the kernel reads it and the operand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tilewise.core.recipe import Address, Argument, Launch, structure
from tilewise.kernels.shared.layouts import REALIGNED, along_columns
from tilewise.kernels.shared.placed import Placed
from tilewise.kernels.shared.structs import struct_of
from tilewise.kernels.transforms.realign import NO_LINES, Realigned
from tilewise.kernels.wgmma_gemm.wgmma_half.text import SUMMED_ACROSS, SUMMED_ALONG, render_realign_with_edges
from tilewise.kernels.wgmma_gemm.wgmma_half.tiles import TensorConfig

EdgeCopy = struct_of("Edge", "wgmma_gemm/wgmma_half/realign_with_edges.cu")
Sums = struct_of("Sums", "wgmma_gemm/wgmma_half/realign_with_edges.cu")
Side = struct_of("Side", "wgmma_gemm/wgmma_half/thin_edges.cuh")
BothSides = struct_of("ThinEdges", "wgmma_gemm/wgmma_half/thin_edges.cuh")
NO_COPY, NO_SUMS, NO_SIDE, NO_EDGES = (structure(kind) for kind in (EdgeCopy, Sums, Side, BothSides))


@dataclass(frozen=True)
class Edge:
    """The last row of M or column of N: where it starts, its `k` elements `step` apart, and how many there are."""

    source: Address
    k: int
    count: int
    step: int
    next: int


def planes_of(source: Placed, along_k: bool) -> tuple[int, int]:
    """(planes, their pitch) of an operand's sums."""
    lines, length, _ = source.lines
    if along_k:
        return math.ceil(length / SUMMED_ALONG[0]), -(-lines // 4) * 4
    return math.ceil(lines / SUMMED_ACROSS[1]), -(-length // 4) * 4


@dataclass(frozen=True)
class _Half:
    """All of one operand, and the other's last row or column."""

    role: str
    source: Placed
    along_k: bool
    moves: bool
    form: str  # how its edge is made, as `TensorWay.edge_forms` names it
    edge: Edge

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

    def sums(self, address: Address) -> Argument:
        return structure(Sums, self.edge.source, self.edge.step, address, self.planes[1])

    def copied(self, address: Address) -> Argument:
        e = self.edge
        return structure(EdgeCopy, e.source, address, e.k, e.count, e.step, e.next)

    def side(self, address: Address, ready: Placed) -> Argument:
        """`ready`: the operand where the kernel finds it."""
        if self.summed:
            count, pitch = self.planes
            return structure(Side, None, None, 0, 0, 0, 0, None, self.edge.count, address, count, pitch)
        lines, length, lead = ready.lines
        end = ready.pointer + 2 * ((lines - 1) * lead + length)
        return structure(Side, ready.pointer, end, lines, length, lead, self.along_k, address, self.edge.count)


class ThinEdges:
    """The thin edges of one product; both halves are there, one of them perhaps of no edge."""

    def __init__(self, M: Placed, N: Placed, config: TensorConfig) -> None:
        last_row = M.pointer + 2 * (M.rows - config.edge_rows) * M.layout.row
        last_col = N.pointer + 2 * (N.cols - config.edge_cols) * N.layout.col
        cols = Edge(last_col, M.cols, config.edge_cols, N.layout.row, N.layout.col)
        rows = Edge(last_row, M.cols, config.edge_rows, M.layout.col, M.layout.row)
        m_along_k = not along_columns(M.layout, M.rows, M.cols)
        n_along_k = along_columns(N.layout, N.rows, N.cols)
        forms = config.edge_forms(m_along_k, n_along_k) or ("nothing", "nothing")
        self._halves = (
            _Half("M", M, m_along_k, config.routes[0] == REALIGNED, forms[0], cols),
            _Half("N", N, n_along_k, config.routes[1] == REALIGNED, forms[1], rows),
        )

    @property
    def needs(self) -> dict[str, int]:
        """Bytes of scratch."""
        return {half.scratch: half.scratch_bytes for half in self._halves if half.edge.count}

    def launch(self, moved: dict[str, Realigned], held: dict[str, Address], dtype: str) -> Launch:
        """Moves operands, with what the edges need of them on the way; stacks have no thin edges."""
        sums, copies = [], []
        for half in self._halves:
            address = held.get(half.scratch)
            if half.moves:
                sums.append(half.sums(address) if address and half.summed else NO_SUMS)
            copies.append(half.copied(address) if address and not half.summed else NO_COPY)
        operands = [moved[half.role] for half in self._halves if half.moves]
        along_k = all(half.along_k for half in self._halves if half.summed)
        segment, lines = SUMMED_ALONG if along_k else SUMMED_ACROSS
        across = math.ceil(max((x.count for x in operands), default=1) / lines)
        along = math.ceil(max((x.length for x in operands), default=1) / segment)
        deep = len(operands) + any(half.edge.count and not half.summed for half in self._halves)
        jobs = [x.lines for x in operands]
        arguments = (*(*jobs, NO_LINES, NO_LINES)[:2], *(*sums, NO_SUMS, NO_SUMS)[:2], *copies)
        shared = lines * (2 * segment + 16 + 8) + 4 * segment  # lines, between boundaries, barriers, and an edge
        source = render_realign_with_edges.key(dtype, along_k)
        return Launch.of(source, "realign_with_edges", (across, along, deep), (256,), arguments, shared)

    def argument(self, held: dict[str, Address], ready: dict[str, Placed]) -> Argument:
        """`ready`: the operands where the kernel finds them."""
        return structure(
            BothSides,
            *(h.side(held[h.scratch], ready[h.role]) if h.edge.count else NO_SIDE for h in self._halves),
        )
