"""Optimizers and torch's: the same parameters after 50 steps, the same states and settings."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import symgrad as sg

pytestmark = [pytest.mark.peers, pytest.mark.slow]

SHAPES = [(3, 5), (7,), ()]
RATES = st.floats(1e-4, 0.1)
DECAYS = st.sampled_from([0.0, 0.01, 0.3])
SGD = st.fixed_dictionaries(
    {
        "lr": RATES, "weight_decay": DECAYS, "maximize": st.booleans(),
        "momentum": st.sampled_from([0.0, 0.5, 0.9]),
    }
).flatmap(
    lambda chosen: st.fixed_dictionaries(
        {
            "dampening": st.sampled_from([0.0, 0.3]),
            "nesterov": st.booleans() if chosen["momentum"] else st.just(False),
        }
    ).map(lambda more: {**chosen, **more, **({"dampening": 0.0} if more["nesterov"] else {})})
)  # fmt: skip
ADAM = st.fixed_dictionaries(
    {
        "lr": RATES, "weight_decay": DECAYS, "maximize": st.booleans(), "amsgrad": st.booleans(),
        "betas": st.sampled_from([(0.9, 0.999), (0.5, 0.9), (0.0, 0.99), (0.9, 0.0)]),
        "eps": st.sampled_from([1e-8, 1e-3]),
    }
)  # fmt: skip
CHOICES = st.one_of(
    st.tuples(st.just("SGD"), SGD), st.tuples(st.just("Adam"), ADAM),
    st.tuples(st.just("AdamW"), ADAM),
)  # fmt: skip
TOLERANCE = {"float32": 2e-6, "float64": 1e-13}


def numbers(seed: int, dtype: str) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [np.asarray(rng.standard_normal(shape), dtype) for shape in SHAPES]


def leaves(module: Any, arrays: list[Any]) -> list[Any]:
    return [module.tensor(array).requires_grad_() for array in arrays]


def stepped(module: Any, optimizer: Any, params: list[Any], seeds: range, dtype: str) -> None:
    """One step for each seed, with gradients of its own; now and then one is missing."""
    for seed in seeds:
        for place, (param, grad) in enumerate(zip(params, numbers(seed, dtype), strict=True)):
            param.grad = None if (seed + place) % 7 == 0 else module.tensor(grad)
        optimizer.step()


def check(ours: list[Any], theirs: list[Any], dtype: str) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        difference = np.abs(mine.detach().numpy() - other.detach().numpy())
        assert difference.max() <= TOLERANCE[dtype] * (1 + np.abs(other.detach().numpy()).max())


@settings(max_examples=40)
@given(CHOICES, st.sampled_from(["float32", "float64"]), st.integers(0, 5))
def test_fifty_steps(choice: tuple[str, dict[str, Any]], dtype: str, seed: int) -> None:
    import torch

    name, options = choice
    start = numbers(seed, dtype)
    ours, theirs = leaves(sg, start), leaves(torch, start)
    mine = getattr(sg.optim, name)(ours, **options)
    other = getattr(torch.optim, name)(theirs, **options)
    stepped(sg, mine, ours, range(100, 150), dtype)
    stepped(torch, other, theirs, range(100, 150), dtype)
    check(ours, theirs, dtype)
    state, reference = mine.state_dict(), other.state_dict()
    assert state["param_groups"] == reference["param_groups"]
    assert repr(mine) == repr(other)
    assert {n: sorted(one) for n, one in state["state"].items()} == {
        n: sorted(one) for n, one in reference["state"].items()
    }
    for number, kept in reference["state"].items():
        for word, value in kept.items():
            check([state["state"][number][word]], [value], dtype)
            assert str(state["state"][number][word].dtype)[-7:] == str(value.dtype)[-7:]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_states_go_over(name: str) -> None:
    """Ten steps, the state into a new optimizer, ten more; through torch's state as well."""
    import torch

    options: Any = {"lr": 0.05, "weight_decay": 0.1}
    options |= {"momentum": 0.9} if name == "SGD" else {"amsgrad": True}
    start = numbers(1, "float32")
    ours, theirs = leaves(sg, start), leaves(torch, start)
    mine = getattr(sg.optim, name)(ours, **options)
    other = getattr(torch.optim, name)(theirs, **options)
    stepped(sg, mine, ours, range(10, 20), "float32")
    stepped(torch, other, theirs, range(10, 20), "float32")
    fresh = getattr(sg.optim, name)(ours, lr=1.0)
    fresh.load_state_dict(mine.state_dict())
    assert fresh.param_groups[0]["lr"] == 0.05
    plain = other.state_dict()
    plain["state"] = {
        number: {word: value.numpy() for word, value in kept.items()}
        for number, kept in plain["state"].items()
    }
    again = leaves(sg, [one.detach().numpy() for one in theirs])
    from_torch = getattr(sg.optim, name)(again, lr=1.0)
    from_torch.load_state_dict(plain)
    stepped(sg, fresh, ours, range(20, 30), "float32")
    stepped(sg, from_torch, again, range(20, 30), "float32")
    stepped(torch, other, theirs, range(20, 30), "float32")
    check(ours, theirs, "float32")
    check(again, theirs, "float32")


def test_groups_have_settings_of_their_own() -> None:
    import torch

    found = []
    for module in (sg, torch):
        a, b, c = leaves(module, numbers(2, "float64"))
        optimizer = module.optim.SGD(
            [{"params": a}, {"params": [b], "lr": 0.5, "momentum": 0.9}], lr=0.1
        )
        optimizer.add_param_group({"params": [c], "weight_decay": 0.2})
        stepped(module, optimizer, [a, b, c], range(5), "float64")
        found.append(([a, b, c], repr(optimizer)))
    check(found[0][0], found[1][0], "float64")
    assert found[0][1] == found[1][1]


def test_closures_and_zero_grad() -> None:
    import torch

    def run(module: Any) -> Any:
        x = module.tensor([3.0, -2.0]).requires_grad_()
        optimizer = module.optim.Adam([("x", x)], lr=0.1)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (x * x).sum()
            loss.backward()
            return loss

        with module.no_grad():
            losses = [optimizer.step(closure).item() for _ in range(5)]
        optimizer.zero_grad(set_to_none=False)
        zeros = x.grad.tolist()
        optimizer.zero_grad()
        return (
            losses,
            zeros,
            x.grad,
            x.tolist(),
            x.is_leaf,
            optimizer.param_groups[0]["param_names"],
        )

    mine, other = run(sg), run(torch)
    np.testing.assert_allclose(mine[0], other[0], rtol=1e-6)
    np.testing.assert_allclose(mine[3], other[3], rtol=1e-6)
    assert mine[1:3] == other[1:3]
    assert mine[4:] == other[4:]


@given(
    st.sampled_from([
        ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
        ("LambdaLR", {"lr_lambda": [lambda epoch: 1 / (1 + epoch), lambda epoch: 2.0]}),
        ("StepLR", {"step_size": 3, "gamma": 0.5}),
        ("CosineAnnealingLR", {"T_max": 7, "eta_min": 0.01}),
    ])
)  # fmt: skip
def test_schedulers(choice: tuple[str, dict[str, Any]]) -> None:
    import torch

    name, options = choice
    found = []
    for module in (sg, torch):
        a, b, _ = leaves(module, numbers(3, "float64"))
        optimizer = module.optim.SGD([{"params": a}, {"params": b, "lr": 0.3}], lr=0.1)
        scheduler = getattr(module.optim.lr_scheduler, name)(optimizer, **options)
        rates = [scheduler.get_last_lr()]
        for _ in range(15):
            optimizer.step()
            scheduler.step()
            rates.append(scheduler.get_last_lr())
        found.append(rates)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_torch_reads_what_is_pickled() -> None:
    """States are plain dicts of tensors: they go through pickle."""
    import pickle

    (x, _, _) = leaves(sg, numbers(4, "float32"))
    optimizer = sg.optim.Adam([x])
    x.grad = sg.ones(3, 5)
    optimizer.step()
    file = io.BytesIO(pickle.dumps(optimizer.state_dict()))
    fresh = sg.optim.Adam([x])
    fresh.load_state_dict(pickle.load(file))
    assert float(fresh.state[x]["step"]) == 1.0
    assert np.array_equal(fresh.state[x]["exp_avg"].numpy(), optimizer.state[x]["exp_avg"].numpy())


def test_numbers_of_torch_have_the_default_dtype() -> None:
    """As in torch: the count of Adam's steps, and the norm of no tensors."""
    parameter = sg.ones(2).requires_grad_()
    before = sg.get_default_dtype()
    sg.set_default_dtype("float64")
    try:
        optimizer = sg.optim.Adam([parameter])
        parameter.sum().backward()
        optimizer.step()
        assert optimizer.state[parameter]["step"].dtype == sg.float64
        assert sg.nn.utils.get_total_norm([]).dtype == sg.float64
    finally:
        sg.set_default_dtype(before)
