"""Machine code called as a builtin: integers and objects are passed, results returned, errors raised; ctypes agrees."""

from __future__ import annotations

import ctypes
import threading

import pytest

from tilewise.system import builtin_call
from tilewise.system.builtin_call import builtin, native_calls


@pytest.fixture(params=["native", "ctypes"])
def call_by(request, monkeypatch):
    """The native builtin, and ctypes, as in a process that is to be frugal."""
    if request.param == "ctypes":
        monkeypatch.setattr(builtin_call, "_without_llvm", [True])
    return request.param


def _address(function):
    return ctypes.cast(function, ctypes.c_void_p).value


def test_integers_are_passed_in_order_and_one_is_returned(call_by):
    @ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 6)
    def weighed(*numbers):
        return sum((index + 1) * number for index, number in enumerate(numbers))

    called = builtin(_address(weighed), "w" * 6)
    assert called(1, 10, 100, 1000, 10**4, 10**5) == 654321
    assert called(-1, 0, 0, 0, 0, 0) == -1


def test_addresses_above_2_to_the_63_are_passed(call_by):
    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_uint64)
    def high(number):
        return number >> 60

    assert builtin(_address(high), "w")(0xF000_0000_0000_0000) == 15


def test_objects_arrive_as_themselves(call_by):
    thing = ["itself"]

    @ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    def same(number, at):
        return number + (at == id(thing))

    called = builtin(_address(same), "wo", keeps_gil=True)
    assert called(4, thing) == 5
    assert called(4, ["another"]) == 4


def test_what_answers_nothing_is_called_all_the_same(call_by):
    seen = []

    @ctypes.CFUNCTYPE(None, ctypes.c_int64)
    def note(number):
        seen.append(number)

    assert not builtin(_address(note), "w", returns=False)(7)
    assert seen == [7]


def test_other_threads_go_on_while_it_runs(call_by):
    went = threading.Event()

    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    def waits(number):  # ctypes takes the GIL for the callback: it must have been given up before
        return number if went.wait(20) else -1

    called = builtin(_address(waits), "w")
    other = threading.Thread(target=went.set)
    other.start()
    assert called(3) == 3
    other.join()


@pytest.mark.skipif(not native_calls(), reason="only the native builtin checks its arguments")
@pytest.mark.parametrize("given", [(), (1,), (1, 2, 3), ("one", 2), (1.5, 2)])
def test_wrong_arguments_are_type_errors(given):
    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    def add(x, y):
        return x + y

    called = builtin(_address(add), "ww")
    with pytest.raises(TypeError):
        called(*given)
    assert called(20, 3) == 23


def test_without_llvm_ctypes_is_taken(monkeypatch):
    def refused(*_):
        raise RuntimeError("no LLVM here")

    monkeypatch.setattr(builtin_call, "_forwarder", refused)

    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    def twice(x):
        return 2 * x

    assert builtin(_address(twice), "w")(21) == 42
