"""A DLPack tensor with any fields, over memory that is there."""

from __future__ import annotations

import ctypes


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


class Capsule:
    def __init__(self, held, shape, strides, code=2, bits=64, lanes=1, kind=1, offset=0):
        self.held, self.kind = held, kind
        self.shape, self.strides = (ctypes.c_int64 * 2)(*shape), (ctypes.c_int64 * 2)(*strides)
        self.tensor = Tensor(
            held.ctypes.data, (kind, 0), 2, code, bits, lanes, self.shape, self.strides, offset, None, None
        )  # fmt: skip

    def __dlpack_device__(self):
        return (self.kind, 0)

    def __dlpack__(self, **how):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor", None)
