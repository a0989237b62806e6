"""Compiles LLVM text to machine code in this process."""

from __future__ import annotations

from typing import Any

from tilewise.errors import EngineError

_kept: list[Any] = []  # owners of the machine code


def compile_module(text: str, symbols: dict[str, int], level: int = 2, entry: str = "start", wide: bool = False) -> int:
    """The address of `entry`. `symbols`: runtime functions by name; `wide`: use this processor's vector extensions."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in symbols.items():
        llvm.add_symbol(name, address)
    triple = llvm.get_process_triple()
    cpu = {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()} if wide else {}
    machine = llvm.Target.from_triple(triple).create_target_machine(opt=level, codemodel="jitdefault", jit=True, **cpu)
    try:
        if "#1 {" in text:
            text = text.replace("@@CPU@@", llvm.get_host_cpu_name(), 1)
            text = text.replace("@@FEATURES@@", llvm.get_host_cpu_features().flatten(), 1)
        module = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise EngineError(f"LLVM refused the program that was made from this file: {error}") from error
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _kept.extend((engine, module))
    return int(engine.get_function_address(entry))
