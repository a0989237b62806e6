"""Malformed files: a generator for each format, and mutations of any bytes."""

from __future__ import annotations

import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np

import hostile
import tilewise as tw
from tilewise.errors import TilewiseError
from tilewise.scale.journal import _encoded

NUMBERS = ("0", "1", "-1", "3", "7", "2147483647", "2147483648", "99999999999", "9223372036854775807",
           "18446744073709551616", "-9223372036854775808", "1e999", "nan", "-inf", "1.5", "1e", "0x10", "1_0", "", "x",
           "٣", "9" * 5000)  # fmt: skip


def _npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npz(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return file.getvalue()


NPY = (_npy(np.arange(12.0).reshape(3, 4)), _npy(np.asfortranarray(np.ones((5, 3), ">i2"))))
_CSR = {"format": np.array(b"csr"), "shape": np.array([3, 3]), "data": np.ones(2), "indices": np.array([0, 2]),
        "indptr": np.array([0, 1, 2, 2])}  # fmt: skip
_COO = {"format": np.array(b"coo"), "shape": np.array([3, 3]), "data": np.ones(2), "row": np.array([0, 2]),
        "col": np.array([0, 1])}  # fmt: skip
NPZ = tuple(_npz({name: _npy(value) for name, value in kind.items()}) for kind in (_CSR, _COO))
MTX = (
    b"%%MatrixMarket matrix coordinate real general\n% a\n3 3 2\n1 1 1.5\n3 2 -4e3\n",
    b"%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n",
    b"%%MatrixMarket matrix coordinate pattern skew-symmetric\n3 3 1\n2 1\n",
    b"%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 1 -1\n",
)
JOB = {"tile": [64, 64, 64], "M": {"file": "A"}}
JOURNAL = (
    _encoded({"job": {"version": 2, **JOB}}) + _encoded({"tile": 3, "checksum": 77})
    + _encoded({"tile": 4, "phases": 2, "slot": 1, "seal": 5}),
)  # fmt: skip
DLPACK = (struct.pack("<qqqqBBBBB", 8, 8, 8, 1, 2, 64, 1, 1, 0),)
TOML = (
    b'title = "tiled"\nshapes = ["4x4x4", "9x9x9"]\ntile = 4\nkernel = "k"\nblock = [4, 4]\ngrid = [1]\ntraffic = 4\n'
    b'reference = "plus_times"\nforbidden = ["printf"]\n[points]\nparses = 1\nproduct = 5.5\n[defines]\nW = "4"\n',
)
_LADDER = Path(tw.__file__).parent / "kernels" / "ladder"
CUDA = (hostile.KERNEL.encode(), *(path.read_bytes() for path in sorted(_LADDER.glob("*.cu"))))


def noise(chance):
    return chance.randbytes(chance.choice([0, 1, 31, 32, 33, 100, 4096]))


def npy(chance):
    """A header of likely and unlikely parts, and data of about the right length."""
    extent = ["0", "1", "3", "4", "5", *NUMBERS[:14], "None", "(1,)", "True", "[2]"]
    shape = "(" + "".join(f"{chance.choice(extent)}, " for _ in range(chance.choice([0, 1, 2, 2, 2, 3]))) + ")"
    descr = chance.choice(["'<f4'", "'<f8'", "'>f8'", "'|b1'", "'|O'", "'<U3'", "'<c16'", "'<f2'", "'<M8[s]'", "'|V3'",
                           "'<i3'", "''", "[('a', '<f4')]", "[('a', '|O', (2,))]", "('<f4', (3,))", "{'a': 1}",
                           "'<f16'",
                           "3", "None", "b'<f4'", "'<f4,<i4'", "'S0'"])  # fmt: skip
    text = f"{{'descr': {descr}, 'fortran_order': {chance.choice(['True', 'False', '1', 'None'])}, 'shape': {shape}, }}"
    if chance.random() < 0.1:
        text = chance.choice(["(" * 5000, "9" * 5000 + "**9", "[" + "1," * 3000, text + "}", text[:-3], "\0"])
    header = text.encode() + b" " * chance.choice([0, 1, 60]) + chance.choice([b"\n", b""])
    version = chance.choice([1, 1, 1, 2, 3, 4, 0])
    length = len(header) if chance.random() < 0.9 else chance.choice([0, 1, 65535, len(header) + 1])
    size = struct.pack("<H", min(length, 65535)) if version == 1 else struct.pack("<I", length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + chance.randbytes(chance.choice([0, 8, 48, 96, 256]))


def npz(chance):
    """The members of a sparse matrix, some of another kind, missing, too many, or badly packed."""
    members = {}
    for name, value in chance.choice([_CSR, _COO]).items():
        roll = chance.random()
        if roll < 0.7:
            members[name] = _npy(value)
        elif roll < 0.8:
            members[name] = npy(chance)
        elif roll < 0.95:
            odd = [np.array([2**62, 2**62]), np.array([-1, 3]), np.array([]), np.array(3.5), np.array("csc"),
                      np.ones((2, 2)),
                   np.array([0, 2**63 - 1, 1]), np.array([10**5, 10**5]), np.array([1e300, 2]), np.zeros(5, "u1"),
                   np.array([np.nan, 1]), np.array([0, 1, 2, 2], "u8"), np.array(b"bsr")]  # fmt: skip
            members[name] = _npy(chance.choice(odd))
    data = bytearray(_npz(members))
    if chance.random() < 0.2 and data:  # sizes, flags or methods of the directory that are not true
        at = data.rfind(b"PK\x01\x02")
        data[(at + chance.randrange(46)) % len(data)] = chance.choice([0, 1, 8, 9, 99, 255])
    return bytes(data)


def mtx(chance):
    fields = ["real", "integer", "complex", "pattern", "double"]
    symmetries = ["general", "symmetric", "skew-symmetric", "hermitian"]
    parts = [["matrix", "vector", ""], ["coordinate", "array", "x"], fields, symmetries]
    lines = ["%%MatrixMarket " + " ".join(chance.choice(options) for options in parts)]
    lines += ["% " + "x" * chance.choice([0, 3, 5000])] * chance.choice([0, 1, 3])

    def number(likely):
        return str(chance.randint(0, 4)) if chance.random() < likely else chance.choice(NUMBERS)

    lines.append(" ".join(number(0.8) for _ in range(chance.choice([2, 3, 3, 4]))))
    lines += [
        " ".join(number(0.9) for _ in range(chance.choice([1, 2, 3, 3, 4])))
        for _ in range(chance.choice([0, 2, 3, 9, 500]))
    ]
    return chance.choice(["\n", "\n", "\r\n", "\n\n", " "]).join(lines).encode("utf-8", "replace")


def journal(chance):
    """Lines whose checksums are right and whose fields are not: the seal is not what is tested."""
    odd = [0, 1, 3, -1, 2**31, 2**63, 10**30, True, None, "3", [3], {}, 1.5, 1e308, [], [64, 64, 64], [0, 64, 64],
              [1, 1, 1],
           [10**9, 10**9, 10**9], [True, 1, 1]]  # fmt: skip
    job = {"version": 2, **JOB}
    for _ in range(chance.choice([0, 0, 1, 2])):
        job[chance.choice([*job, "memory", "N", "device"])] = chance.choice(odd)
    lines = [_encoded({"job": job if chance.random() < 0.95 else chance.choice(odd)})]
    for _ in range(chance.choice([0, 1, 3, 20])):
        record = chance.choice([{"tile": 0, "checksum": 1}, {"tile": 1, "phases": 2, "slot": 1, "seal": 5}]).copy()
        for name in list(record):
            if chance.random() < 0.4:
                record[name] = chance.choice(odd)
        lines.append(_encoded(record))
    if chance.random() < 0.1:
        text = chance.choice(['{"a":' * 900 + "1" + "}" * 900, "NaN", '{"tile": NaN}', "[" * 10**5])
        lines.append(f"{zlib.crc32(text.encode()):08x} {text}\n".encode())
    return b"".join(lines)


_products = {}


def product_after(path):
    """A product of two files whose journal this is, job line made its own: the right bytes, or a sentence."""
    import faults

    folder = path.parent / "product"
    if folder not in _products:
        folder.mkdir(exist_ok=True)
        rng = np.random.default_rng(1)
        for name, shape in (("A", (100, 300)), ("B", (300, 90))):
            np.save(folder / f"{name}.npy", rng.integers(-4, 5, shape).astype(np.float32))
        _products[folder] = _undisturbed(folder, faults)
    right, job, part = _products[folder]
    place = folder / ".C.npy.tilewise"
    place.mkdir(mode=0o700)
    lines = path.read_bytes().splitlines(keepends=True)
    (place / "journal").write_bytes(_encoded({"job": job}) + b"".join(lines[1:]))
    (place / "part.npy").write_bytes(part)
    try:
        try:
            faults.job(folder).run()
        except TilewiseError as error:
            if "--restart" not in str(error):
                raise
            faults.job(folder).run(restart=True)
        assert (folder / "C.npy").read_bytes() == right, "a journal led a product astray"
    finally:
        faults.clear(folder)


def _undisturbed(folder, faults):
    """The right bytes, the journal's first line, and an unfinished part."""
    from tilewise.scale import checkpoint
    from tilewise.scale import files as product_files

    for name in ("SPARE", "ZARR_BYTES", "TIGHT"):
        setattr(product_files, name, 0)
    product_files.LEAST_TILE = (1, 1, 1)
    product_files.resident = lambda *_: (0, 0)
    checkpoint.LEAST = checkpoint.SHARE = 0
    made = faults.job(folder)
    job = made.journal.job
    made.run()
    right = (folder / "C.npy").read_bytes()
    faults.clear(folder)
    return right, json.loads(json.dumps(job)), right[:-4000] + bytes(4000)


def dlpack(chance):
    extents = [0, 1, 2, 8, 8, 16, 22, 64, 512, -1, 2**31, 2**32 + 1, 2**61, 2**62, 2**63 - 1, -(2**63)]
    fields = [chance.choice(extents) for _ in range(4)]
    if chance.random() < 0.5:
        fields = [8, 8, *fields[2:]]
    small = [chance.choice([2, 2, 0, 1, 4, 5, 6, 7, 255]), chance.choice([64, 32, 16, 8, 1, 0, 128, 255]),
             chance.choice([1, 1, 1, 0, 2, 4]), chance.choice([1, 1, 1, 0, 2, 3, 13, 255]),
             chance.choice([0, 0, 1, 8, 255])]  # fmt: skip
    return struct.pack("<qqqqBBBBB", *fields, *small)


def toml(chance):
    values = ["1", "-1", "true", "0x7fffffffffffffff", "9" * 400, "nan", "inf", '"x"', '"4x4x4"', '["4x4x4"]', "[]",
              "[[1]]",
              "{a = 1}", "[1, 2, 3]", "[0]", "[1, 2, 3, 4]", "1979-05-27", '"ref.py:f"', '"/dev/zero:f"', '"../x.cu"',
              '"min_plus"', '["0x0x0"]', '["99999999999x1x1"]', "{parses = -1}", "{parses = 1e400}", '"\\u0000"',
              "[true]",
              '"""\n"""', "'", '{W = [1]}', "[" * 3000, "1_0", "2.5"]  # fmt: skip
    keys = ["title", "shapes", "tile", "kernel", "block", "grid", "reference", "points", "traffic", "forbidden",
              "defines",
            "points.parses", "points.x", "defines.A", '"a b"', "x", ""]  # fmt: skip
    lines = [f"{chance.choice(keys)} = {chance.choice(values)}" for _ in range(chance.choice([0, 1, 2, 5]))]
    if chance.random() < 0.1:
        lines.append(
            chance.choice(["[points]\nparses = nan", "[[points]]", "[a" + ".a" * 3000 + "]", "\ufeff", "\x00"])
        )
    return "\n".join(lines).encode()


def cuda(chance):
    return chance.choice(hostile.CLASSES)(chance).encode("utf-8", "replace")[: 1 << 20]


def mutated(data, chance, others):
    data = bytearray(data)
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        at = chance.randrange(len(data) + 1)
        what = chance.randrange(7)
        if what == 0 and data:
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[at:at] = chance.randbytes(chance.randint(1, 8))
        elif what == 2:
            del data[at : at + chance.randint(1, 40)]
        elif what == 3:
            data = data[:at]
        elif what == 4:
            data[at:at] = data[at : at + chance.randint(1, 60)] * chance.randint(1, 50)
        elif what == 5:
            numbers = [b"-1", b"0", b"99999999999", b"18446744073709551616", b"1e999", b"nan", b"\xff" * 8, b"\0" * 8]
            data[at : at + chance.randint(0, 8)] = chance.choice(numbers)
        else:
            other = chance.choice(others)
            data[at:] = other[chance.randrange(len(other) + 1) :]
    return bytes(data[: 1 << 16])
