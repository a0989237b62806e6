"""The names that calls accept, as Literal types: a type checker reports a misspelled one."""

from __future__ import annotations

from typing import Literal

BooleanName = Literal["lor_land", "boolean"]  # whose products are bool for operands of any dtype
NumericName = Literal[
    "plus_times", "min_plus", "max_plus", "min_times", "max_times", "min_max", "max_min", "logaddexp_plus",
    "tropical", "viterbi", "log",
    "min_count", "max_arg", "dual", "1_best", "2_best", "3_best", "4_best", "5_best", "6_best", "7_best", "8_best",
]  # fmt: skip
SemiringName = Literal[NumericName, BooleanName]
DTypeName = Literal[
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "longdouble", "complex64", "complex128", "clongdouble",
]  # fmt: skip
ActivationName = Literal["relu", "gelu", "gelu_tanh", "silu"]
