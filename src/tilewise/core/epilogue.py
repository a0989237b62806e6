"""The epilogue of a product: activation(alpha · M·N + bias). A pure value; backends render it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewise.algebra.dtypes import DType
from tilewise.errors import DtypeError, UsageError

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu")
BIASES = ("float16", "bfloat16", "float32", "float64")  # and what products they are added to


@dataclass(frozen=True)
class Epilogue:
    """`alpha` scales the product, then a row of biases of dtype `bias` is added, then the activation is taken.

    The bias's values and address are not part of it: a plan does not depend on them.
    """

    alpha: float = 1.0
    bias: DType | None = None
    activation: str | None = None

    def __bool__(self) -> bool:
        """Whether it changes the product."""
        return self.alpha != 1.0 or self.bias is not None or self.activation is not None

    def formula(self) -> str:
        """As a formula: gelu(0.5 · M·N + bias)."""
        inside = ("M·N" if self.alpha == 1.0 else f"{self.alpha:g} · M·N") + (" + bias" if self.bias else "")
        return f"{self.activation}({inside})" if self.activation else inside

    def to_json(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "bias": self.bias.name if self.bias else None, "activation": self.activation}


PLAIN = Epilogue()


def epilogue_of(alpha: object, bias: DType | None, activation: object) -> Epilogue:
    """The epilogue of a call's arguments, or an error that names the wrong one."""
    if activation is not None and not (isinstance(activation, str) and activation in ACTIVATIONS):
        raise UsageError(f"activation={activation!r} is not known; known are {', '.join(ACTIVATIONS)}")
    try:
        scale = float(alpha) if not isinstance(alpha, bool | str) else None  # type: ignore[arg-type]
    except (TypeError, ValueError):
        scale = None
    if scale is None:
        raise UsageError(f"alpha={alpha!r} must be a real number")
    if bias is not None and bias.name not in BIASES:
        raise DtypeError(f"bias has dtype {bias}: pass one of {', '.join(BIASES)}")
    return Epilogue(scale, bias, None if activation is None else str(activation))


def check_fits(epilogue: Epilogue, semiring: object, ordinary: bool, dtype: DType) -> None:
    """Raise where the epilogue does not go with the semiring or dtype. `ordinary`: the semiring is plus_times."""
    if epilogue and not ordinary:
        raise UsageError(
            f"alpha=, bias= and activation= need plus_times, and the semiring is {semiring}: leave them out"
        )
    if epilogue and dtype.name not in BIASES:
        raise DtypeError(
            f"alpha=, bias= and activation= need a product of {', '.join(BIASES)}, and this one is {dtype}"
        )
