"""The sandbox: the filter evaluated for both architectures, and attempts to get out of it on this one."""

from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from tilewise.system import sandbox
from tilewise.system.sandbox import seccomp
from tilewise.system.sandbox.landlock import ruleset
from tilewise.system.sandbox.syscalls import ALLOWED, ARCHITECTURES, KILLED, PROTECTING, RECEIVING, X86_64

ATTEMPTS = Path(__file__).with_name("confined_attempts.py")
BROKER = 7
MAY = {"compute", "more memory", "code that is not writable", "what it has open"}
confined = pytest.mark.skipif(bool(sandbox.missing()), reason=f"no sandbox here: {sandbox.missing()}")


def evaluated(program, architecture, number, *arguments):
    """What the kernel would answer: BPF, as far as the filter uses it."""
    data = {seccomp.NUMBER: number, seccomp.AUDIT: architecture}
    for i, value in enumerate((*arguments, *[0] * (6 - len(arguments)))):
        data[seccomp.ARGUMENTS + 8 * i] = value & 0xFFFFFFFF
    register, at = 0, 0
    while True:
        one = program[at]
        at += 1
        if one.code == seccomp.RETURN:
            return one.value
        if one.code == seccomp.LOAD:
            register = data[one.value]
        elif one.code == seccomp.AND:
            register &= one.value
        else:
            held = register == one.value if one.code == seccomp.JUMP_EQUAL else register >= one.value
            at += one.if_true if held else one.if_false


@pytest.fixture(params=sorted(ARCHITECTURES))
def filtered(request):
    architecture = ARCHITECTURES[request.param]
    program = seccomp.program(architecture, BROKER)

    def answer(name, *arguments):
        return evaluated(program, architecture.audit, architecture.numbers.get(name, -1), *arguments)

    return architecture, program, answer


def test_the_policy_by_name(filtered):
    architecture, _, answer = filtered
    for name in architecture.numbers:
        if name in ALLOWED:
            assert answer(name) == seccomp.ALLOW, name
        elif name in KILLED:
            assert answer(name) == seccomp.KILL, name
    assert set(architecture.numbers) == set(architecture.numbers) & (ALLOWED | KILLED | PROTECTING | RECEIVING)
    assert not ALLOWED & KILLED


def test_what_is_not_listed_fails(filtered):
    architecture, program, _ = filtered
    listed = set(architecture.numbers.values())
    for number in set(range(470)) - listed:
        assert evaluated(program, architecture.audit, number) == seccomp.FAIL | errno.EPERM, number


def test_another_architecture_and_x32_are_killed(filtered):
    architecture, program, _ = filtered
    for other in (0x40000003, 0x40000028, 0xC000003E ^ 0xC00000B7 ^ architecture.audit):  # i386, arm, the other one
        assert evaluated(program, other, architecture.numbers["read"]) == seccomp.KILL
    if architecture is X86_64:
        assert evaluated(program, architecture.audit, seccomp.X32 | 0) == seccomp.KILL


def test_memory_is_writable_or_executable(filtered):
    _, _, answer = filtered
    for name in PROTECTING:
        for protection in range(8):
            both = protection & 6 == 6
            assert answer(name, 0, 4096, protection) == (seccomp.FAIL | errno.EPERM if both else seccomp.ALLOW)


def test_messages_are_received_from_the_broker_alone(filtered):
    architecture, _, answer = filtered
    assert answer("recvmsg", BROKER) == seccomp.ALLOW
    assert answer("recvmsg", BROKER + 1) == seccomp.FAIL | errno.EPERM
    without = seccomp.program(architecture, -1)
    for descriptor in (0, 3, BROKER):
        assert evaluated(without, architecture.audit, architecture.numbers["recvmsg"], descriptor) != seccomp.ALLOW


def test_a_ruleset_has_what_its_version_knows():
    assert [len(ruleset(version)) for version in range(1, 8)] == [8, 8, 8, 16, 16, 24, 24]
    assert int.from_bytes(ruleset(1), "little") == 0x1FFF
    assert int.from_bytes(ruleset(7)[:8], "little") == 0xFFFF


def test_systems_without_a_filter_say_so(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert sandbox.missing() == "Darwin has no seccomp"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert "riscv64" in sandbox.missing()
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(seccomp, "available", lambda architecture: False)
    assert "seccomp" in sandbox.missing()


@confined
@pytest.mark.parametrize("user", [0, 65534], ids=["this user", "an unprivileged user"])
def test_nothing_outside_is_read_written_started_or_reached(tmp_path, user):
    if user and os.getuid() != 0:
        pytest.skip("this is an unprivileged user already")
    tmp_path.chmod(0o777)
    canary = tmp_path / "secret"
    canary.write_text("untouched")
    canary.chmod(0o666)
    for folder in tmp_path.parents:  # pytest's own are closed to others, which would meet the test, not the sandbox
        if folder.stat().st_uid == os.getuid() and folder.name.startswith("pytest"):
            folder.chmod(folder.stat().st_mode | 0o055)
    ran = subprocess.run([sys.executable, str(ATTEMPTS), str(tmp_path), str(user)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    came = json.loads(ran.stdout.splitlines()[-1])
    assert len(came) > 50
    wrong = {name: how for name, how in came.items() if (how == "allowed") != (name in MAY)}
    assert not wrong
    assert not {name: how for name, how in came.items() if not how}, "an attempt without an answer"
    assert canary.read_text() == "untouched"
    assert canary.stat().st_mode & 0o777 == 0o666
    assert os.listdir(tmp_path) == ["secret"]
