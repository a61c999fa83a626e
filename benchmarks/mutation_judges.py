"""Who catches a mutant: the truth by torch, and symgrad, gradcheck (slow and fast), check_grads.

In: a ``Mutant`` and the case it was made from.  Out: one word and the seconds it took.  The peers
are asked as a user would ask them: at one generic shape, in float64, with default tolerances;
JAX with a ``.sum()`` over the outputs, the backward being the same torch code behind a callback.
"""

from __future__ import annotations

import linecache
import logging
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from benchmarks.mutants import Mutant
from tests.suite.corpus_loader import module_over_symgrad, module_over_torch
from tests.suite.judging import report_on
from tests.suite.marks import Case
from tests.suite.sampling import sample_arguments, size_choices, size_names
from tests.suite.torch_apply import caller
from tests.suite.torch_check import SAME, findings

DIFFERENT = 1e-4  # relative; between SAME and this a point says nothing


def bound(mutant: Mutant, case: Case, module: types.ModuleType) -> Case:
    """The case with the mutant in the place of its class, in the module's namespace."""
    filename = f"<mutant of {mutant.name}: {hash(mutant.source) & 0xFFFFFFFF:08x}>"
    lines = mutant.source.splitlines(keepends=True)
    linecache.cache[filename] = (len(mutant.source), None, lines, filename)
    namespace = dict(vars(module))
    try:
        exec(compile(mutant.source, filename, "exec"), namespace)
    finally:
        _forget(filename)
    return replace(case, function=namespace[mutant.name], order=1)


def _forget(filename: str) -> None:
    stale = [key for key in linecache.cache if key.startswith("<mutant") and key != filename]
    for key in stale:
        del linecache.cache[key]


def truth(mutant: Mutant, case: Case, seeds: int = 1) -> str:
    """``same``, ``raises``, ``unclear``, or the kind of the first difference by torch."""
    on_torch = bound(mutant, case, module_over_torch(mutant.category))
    tried = raised = 0
    unclear = False
    for seed in range(seeds):
        for point in findings(on_torch, seed):
            tried += 1
            if point.kind == "error":
                raised += 1
            elif point.error > DIFFERENT:
                return point.kind
            unclear = unclear or SAME < point.error <= DIFFERENT
            if raised == tried == 4:
                return "raises"
    if raised:
        return "raises" if raised == tried else "error"
    return "unclear" if unclear else "same"


def symgrad_says(mutant: Mutant, case: Case) -> str:
    """The verdict; ``raises`` where symgrad refuses the mutant's text."""
    on_symgrad = bound(mutant, case, module_over_symgrad(mutant.category))
    try:
        report = report_on(on_symgrad, suggest=False)
    except Exception as problem:
        return f"raises {type(problem).__name__}"
    verdict: str = report.verdict.name
    return "OUT OF TIME" if report.timed_out and verdict == "UNDECIDED" else verdict


class Setting:
    """A case at its first, generic shape: what a user's gradient check would be given."""

    def __init__(self, mutant: Mutant, case: Case) -> None:
        self.case = bound(mutant, case, module_over_torch(mutant.category))
        sizes = size_choices(size_names(self.case))[0]
        generator = np.random.default_rng(0)
        self.arguments = sample_arguments(self.case, sizes, generator, 1.0)
        self.names = [
            name
            for name, value in self.arguments.items()
            if torch.is_tensor(value)
            and value.dtype == torch.float64
            and case.assume.get(name) != "constant"
        ]

    def call(self, *values: Any) -> Any:
        """The Function on the differentiable inputs; only its float outputs."""
        given = {**self.arguments, **dict(zip(self.names, values, strict=True))}
        given = {k: v * 1 if k in self.names else v for k, v in given.items()}
        outputs = [out for out in caller(self.case)(given) if out.dtype == torch.float64]
        return tuple(outputs)

    def leaves(self) -> list[Any]:
        """Fresh differentiable inputs."""
        return [self.arguments[name].clone().requires_grad_() for name in self.names]


def gradcheck_says(setting: Setting, fast: bool) -> str:
    """``caught`` or ``passed`` by torch.autograd.gradcheck."""
    leaves = setting.leaves()
    try:
        passed = torch.autograd.gradcheck(
            setting.call, leaves, fast_mode=fast, raise_exception=False
        )
    except Exception:
        return "caught"
    return "passed" if passed else "caught"


def jax_says(setting: Setting) -> str:
    """``caught`` or ``passed`` by jax.test_util.check_grads of the outputs' sum."""
    import jax
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    logging.getLogger("jax").setLevel(logging.CRITICAL)  # it logs what the callbacks raise
    function = _in_jax(setting)
    values = [leaf.detach().numpy() for leaf in setting.leaves()]

    def total(*inputs: Any) -> Any:
        return sum(out.sum() for out in function(*inputs))

    try:
        check_grads(total, values, order=1, modes=["rev"])
    except Exception:
        return "caught"
    return "passed"


def _in_jax(setting: Setting) -> Callable[..., Any]:
    """The Function as a ``jax.custom_vjp`` whose two sides are callbacks to torch."""
    import jax

    def forward(*inputs: Any) -> Any:
        with torch.no_grad():
            outputs = setting.call(*(torch.tensor(np.array(one)) for one in inputs))
        return tuple(np.asarray(out) for out in outputs)

    def backward(inputs: Any, cotangents: Any) -> Any:
        leaves = [torch.tensor(np.array(one)).requires_grad_() for one in inputs]
        outputs = setting.call(*leaves)
        given = [torch.tensor(np.array(one)) for one in cotangents]
        found = torch.autograd.grad(outputs, leaves, given, allow_unused=True)
        pairs = zip(leaves, found, strict=True)
        return tuple(
            np.zeros(leaf.shape) if grad is None else np.asarray(grad) for leaf, grad in pairs
        )

    shapes = [jax.ShapeDtypeStruct(out.shape, np.float64) for out in forward_shapes(setting)]

    @jax.custom_vjp
    def function(*inputs: Any) -> Any:
        return jax.pure_callback(forward, tuple(shapes), *inputs)

    def function_forward(*inputs: Any) -> Any:
        return function(*inputs), inputs

    def function_backward(inputs: Any, cotangents: Any) -> Any:
        like = tuple(jax.ShapeDtypeStruct(one.shape, np.float64) for one in inputs)
        return jax.pure_callback(backward, like, inputs, cotangents)

    function.defvjp(function_forward, function_backward)
    return function


def forward_shapes(setting: Setting) -> Any:
    """The outputs at the setting's point, for their shapes."""
    with torch.no_grad():
        return setting.call(*setting.leaves())


def timed(judge: Callable[[], str]) -> tuple[str, float]:
    """What a judge says and how long it took; warnings silenced, float64 by default."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            word = judge()
    finally:
        torch.set_default_dtype(before)
    return word, time.perf_counter() - start
