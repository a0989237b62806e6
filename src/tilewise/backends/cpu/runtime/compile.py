"""From IR to machine code, through the disk cache: object code is kept under its IR, the CPU and llvmlite's version.

llvmlite is imported here and in `target`, and nowhere before the first product.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tilewise.backends.cpu.runtime.target import Target
from tilewise.errors import EngineError
from tilewise.system.cache import DiskCache
from tilewise.system.interruptible import interruptible
from tilewise.system.llvm_lock import LLVM

_engines: list[Any] = []  # own the machine code, which lives as long as the process


@lru_cache(maxsize=1)
def _llvm() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _machine(target: Target, triple: str) -> Any:
    llvm = _llvm()
    found = llvm.Target.from_triple(triple)
    return found.create_target_machine(
        cpu=target.cpu, features=target.features, opt=3, reloc="default", codemodel="jitdefault", jit=True
    )


def object_code(text: str, target: Target) -> bytes:
    """The module as object code, compiled now."""
    llvm = _llvm()
    if target.triple and target.triple != llvm.get_process_triple():
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    triple = target.triple or llvm.get_process_triple()
    try:
        parsed = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
        parsed.verify()
        machine = _machine(target, triple)
        parsed.data_layout = str(machine.target_data)
        return bytes(machine.emit_object(parsed))
    except RuntimeError as error:
        raise EngineError(f"LLVM refused a kernel for {target.name}: {error}") from error


def kept(text: str, target: Target) -> bytes:
    """The module as object code, compiled or from the disk cache; `target` may be another machine."""
    with LLVM:
        key = (text, target.cpu, target.features, target.triple or _llvm().get_process_triple(), _version())
        cache = DiskCache("llvm")
        found = cache.get(key)
    if found is None:  # after Ctrl-C the compilation completes in the background and its code is cached
        found = interruptible(lambda: cache.get_or_build(key, lambda: object_code(text, target)), LLVM)
    return found


def load(text: str, target: Target, names: Sequence[str] = ()) -> dict[str, int]:
    """The addresses of a module's public functions, all or some of them, compiled or from the disk cache."""
    data, names = kept(text, target), names or public_functions(text)
    with LLVM:
        llvm = _llvm()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target, llvm.get_process_triple()))
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
        found = {name: engine.get_function_address(name) for name in names}
        _engines.append(engine)
    if not all(found.values()):
        raise EngineError(f"a compiled kernel lacks {', '.join(n for n, at in found.items() if not at)}")
    return found


def public_functions(text: str) -> list[str]:
    """The names of the functions that a module's text defines for others: `define void @run(…`."""
    heads = (part.partition("(")[0].split() for part in f"\n{text}".split("\ndefine ")[1:])
    return [name[1:] for *linkage, _, name in heads if not linkage]


@lru_cache(maxsize=1)
def _version() -> str:
    import llvmlite

    return f"llvmlite {llvmlite.__version__}"
