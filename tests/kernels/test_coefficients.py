"""The measured numbers of the cost models."""

from tilewise.kernels.coefficients import coefficients, document


def test_every_number_has_a_unit_and_a_meaning():
    kernels = {name: of for name, of in document().items() if isinstance(of, dict) and name != "fields"}
    fields = document()["fields"]
    assert {field for of in kernels.values() for field in of} - {"as"} == set(fields)
    assert all(len(unit_and_meaning) == 2 and all(unit_and_meaning) for unit_and_meaning in fields.values())


def test_a_kernel_may_have_the_numbers_of_another_but_for_its_own():
    bytes_, halves = coefficients("mma_sync 1"), coefficients("mma_sync 2")
    assert bytes_.shares == [1.0] != halves.shares
    assert {**vars(bytes_), "shares": 0} == {**vars(halves), "shares": 0}


def test_numbers_by_a_number_are_found_by_it():
    assert set(coefficients("mma_sync 8").phase) == {16, 8, 4}
