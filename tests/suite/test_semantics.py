"""symgrad reads every Function of the corpus, right or wrong, as torch runs it."""

from __future__ import annotations

import warnings

import pytest

from tests.suite.corpus_loader import CATEGORIES, cases, module_over_symgrad, module_over_torch

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("category", CATEGORIES)
def test_outputs_and_gradients_are_torch_s(category: str) -> None:
    import torch

    from tests.suite.semantics import disagreements

    on_torch = {case.name: case for case in cases(module_over_torch(category))}
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's, of old styles
            found = {
                case.name: texts
                for case in cases(module_over_symgrad(category))
                if (texts := disagreements(on_torch[case.name], case))
            }
    finally:
        torch.set_default_dtype(before)
    assert not found
