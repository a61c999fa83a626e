"""Losses of classes whose shapes nobody stated: rows of scores, and a label for each."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import symgrad as sg  # noqa: E402

pytestmark = pytest.mark.peers
functional: Any = torch.nn.functional
FUNCTION: Any = torch.autograd.Function


class CrossEntropy(FUNCTION):
    """The mean over rows, or another reduction."""

    reduction = "mean"
    divided = True

    @classmethod
    def forward(cls, ctx: Any, logits: Any, target: Any) -> Any:
        ctx.save_for_backward(logits, target)
        return functional.cross_entropy(logits, target, reduction=cls.reduction)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        logits, target = ctx.saved_tensors
        p = torch.softmax(logits, 1)
        p[torch.arange(target.shape[0]), target] -= 1
        if cls.reduction == "none":
            return g[:, None] * p, None
        return g * p / (target.shape[0] if cls.reduction == "mean" and cls.divided else 1), None


@pytest.mark.parametrize("reduction", ["mean", "none", "sum"])
def test_labels_are_integers_of_one_axis(reduction: str) -> None:
    report = sg.verify(type("Loss", (CrossEntropy,), {"reduction": reduction}), suggest=False)
    assert str(report.verdict) == "PROVED"
    assert "logits[n, m], i64 target[n]" in report.inferred


def test_a_mean_over_rows_is_divided_by_their_number() -> None:
    """For one row, which is all that was judged, nothing is missing."""
    report = sg.verify(type("Wrong", (CrossEntropy,), {"divided": False}), suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch" in str(report)


class NllMissing(FUNCTION):
    @staticmethod
    def forward(ctx: Any, x: Any, t: Any) -> Any:
        ctx.save_for_backward(x, t)
        return functional.nll_loss(x, t)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        return -g * functional.one_hot(t, x.shape[-1]), None


def test_scores_of_several_rows_are_judged() -> None:
    assert str(sg.verify(NllMissing, suggest=False).verdict) != "PROVED"


# -- labels that are compared


class Chosen(FUNCTION):
    """What a label says of a row; ``right``: backward knows it."""

    right = True

    @classmethod
    def forward(cls, ctx: Any, x: Any, label: Any) -> Any:
        kept = torch.where(label == 1, 3.0, 1.0)
        ctx.save_for_backward(kept)
        return x * kept

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0] if cls.right else g, None


class Masked(Chosen):
    @classmethod
    def forward(cls, ctx: Any, x: Any, label: Any) -> Any:
        mask = label != 255
        ctx.save_for_backward(mask.to(x.dtype))
        return x * mask.to(x.dtype)


class Alike(FUNCTION):
    right = True

    @classmethod
    def forward(cls, ctx: Any, x: Any, one: Any, other: Any) -> Any:
        same = (one == other).to(x.dtype)
        ctx.save_for_backward(same)
        return x * same

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0] if cls.right else 0 * g, None, None


class Written(Chosen):
    @classmethod
    def forward(cls, ctx: Any, x: Any, label: Any) -> Any:
        kept = torch.ones_like(x)
        kept[~(label == 0)] = 2.0
        ctx.save_for_backward(kept)
        return x * kept

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[0] if cls.right else 2 * g, None


@pytest.mark.parametrize("loss", [Chosen, Masked, Alike, Written])
def test_what_a_mask_is_made_of_is_a_tensor_of_labels(loss: Any) -> None:
    """It is judged as floats and as integers; a mistake at one value alone is one."""
    report = sg.verify(loss, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert not report.inputs["x"].conditions, str(report)
    assert any("i64 " in shapes for shapes in report.beside)
    wrong = sg.verify(type("Wrong", (loss,), {"right": False}), suggest=False)
    assert str(wrong.inputs["x"].verdict) == "REFUTED", str(wrong)
    assert "confirmed in torch" in str(wrong)


# -- labels that are ignored


class Ignored(FUNCTION):
    """A linear layer and the mean over rows that count; ``safe`` says how labels are replaced."""

    zeroed, counted = True, True

    @staticmethod
    def safe(target: Any, valid: Any) -> Any:
        return target.masked_fill(~valid, 0)

    @classmethod
    def forward(cls, ctx: Any, x: Any, weight: Any, target: Any, ignore_index: int = -100) -> Any:
        ctx.save_for_backward(x, weight, target)
        ctx.ignore_index = ignore_index
        return functional.cross_entropy(x @ weight.t(), target, ignore_index=ignore_index)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, weight, target = ctx.saved_tensors
        valid = target != ctx.ignore_index
        p = torch.softmax(x @ weight.t(), -1)
        d = p - functional.one_hot(cls.safe(target, valid), weight.shape[0]).to(p.dtype)
        d = d * valid.unsqueeze(-1) if cls.zeroed else d
        d = d * g / (valid.sum() if cls.counted else target.numel())
        return d @ weight, d.t() @ x, None, None


SAFE = {
    "masked_fill": staticmethod(lambda t, valid: t.masked_fill(~valid, 0)),
    "where": staticmethod(lambda t, valid: torch.where(valid, t, torch.zeros_like(t))),
    "times": staticmethod(lambda t, valid: t * valid),
}


@pytest.mark.parametrize("how", SAFE)
def test_labels_are_classes_or_what_is_ignored(how: str) -> None:
    """One condition, however forward and backward replace what is ignored."""
    report = sg.verify(type("Right", (Ignored,), {"safe": SAFE[how]}), suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    found = [one for one in report.conditions if one.kind == "index"]
    assert [one.text for one in found] == [
        "0 <= target < k or target == -100",
        "0 <= target < k or target == 1 (for ignore_index = 1)",
    ]
    labels = {"target": torch.tensor([0, 2, -100]), "k": 3}
    assert eval(found[0].code, labels).all()
    assert not eval(found[0].code, {**labels, "k": 2}).all()


@pytest.mark.parametrize("mistake", ["zeroed", "counted"])
def test_rows_that_are_ignored_do_not_count(mistake: str) -> None:
    report = sg.verify(type("Wrong", (Ignored,), {mistake: False}), suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch" in str(report)
    point = report.inputs["x"].counterexample
    assert point is not None
    assert -100 in point.inputs["target"]


class Part(FUNCTION):
    """Cross-entropy over a part of the classes: labels of other parts have no score here."""

    first = 0
    masked, least, most = True, 0, 0

    @classmethod
    def outside(cls, t: Any, n: int, least: int, most: int) -> Any:
        return (t < cls.first + least) | (t >= cls.first + n + most)

    @classmethod
    def place(cls, t: Any, outside: Any) -> Any:
        return (t - cls.first).masked_fill(outside, 0)

    @classmethod
    def forward(cls, ctx: Any, x: Any, t: Any) -> Any:
        outside = cls.outside(t, x.shape[1], 0, 0)
        place = cls.place(t, outside)
        scores = x.gather(1, place.unsqueeze(1)).squeeze(1).masked_fill(outside, 0.0)
        left_out = cls.outside(t, x.shape[1], cls.least, cls.most)
        ctx.save_for_backward(torch.softmax(x, 1), place, left_out)
        return torch.logsumexp(x, 1) - scores

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        p, place, outside = ctx.saved_tensors
        d, rows = p.clone(), torch.arange(p.shape[0])
        d[rows, place] -= 1.0 - outside.to(p.dtype) if cls.masked else 1.0
        return d * g.unsqueeze(1), None


class PartFrom(Part):
    first = 3

    @classmethod
    def place(cls, t: Any, outside: Any) -> Any:
        return torch.where(outside, 0, t - cls.first)


class PartClamped(Part):
    """Hits as one-hot rows."""

    @classmethod
    def forward(cls, ctx: Any, x: Any, t: Any) -> Any:
        inside, place = (t >= 0) & (t < x.shape[1]), t.clamp(0, x.shape[1] - 1)
        left_out = cls.outside(t, x.shape[1], cls.least, cls.most)
        ctx.save_for_backward(torch.softmax(x, 1), place, left_out)
        return torch.logsumexp(x, 1) - x.gather(1, place.unsqueeze(1)).squeeze(1) * inside

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        p, place, outside = ctx.saved_tensors
        hot = functional.one_hot(place, p.shape[1]).to(p.dtype)
        hot = hot * ~outside.unsqueeze(1) if cls.masked else hot
        return (p - hot) * g.unsqueeze(1), None


@pytest.mark.parametrize("part", [Part, PartFrom, PartClamped])
def test_a_place_that_a_condition_chooses_is_in_range(part: Any) -> None:
    """For all labels, and so is what backward does with those of other parts."""
    report = sg.verify(part, "n m", "i64[n]", suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert not report.conditions, str(report)


@pytest.mark.parametrize("wrong", [{"masked": False}, {"least": 1}, {"most": 1}, {"most": -1}])
@pytest.mark.parametrize("part", [Part, PartFrom, PartClamped])
def test_labels_of_other_parts_have_no_hit(part: Any, wrong: dict[str, Any]) -> None:
    report = sg.verify(type("Wrong", (part,), wrong), "n m", "i64[n]", suggest=False)
    assert str(report.verdict) == "REFUTED", str(report)
    assert "confirmed in torch" in str(report)


class Stated(FUNCTION):
    """The label that is ignored has no default."""

    missing = False

    @classmethod
    def forward(cls, ctx: Any, x: Any, t: Any, number: Any) -> Any:
        ctx.save_for_backward(x, t)
        ctx.number = number
        return functional.cross_entropy(x, t, ignore_index=number, reduction="none")

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        keep = t != (-100 if cls.missing else ctx.number)
        hot = functional.one_hot(t.masked_fill(~keep, 0), x.shape[1])
        return (g * keep).unsqueeze(1) * (x.softmax(1) - hot), None, None


class Negative(FUNCTION):
    """Backward takes what is ignored for a negative number, which the default is."""

    @staticmethod
    def kept(target: Any, ignore_index: int) -> Any:
        return target >= 0

    @classmethod
    def forward(cls, ctx: Any, x: Any, target: Any, ignore_index: int = -100) -> Any:
        ctx.save_for_backward(x, target)
        ctx.ignore_index = ignore_index
        return functional.cross_entropy(x, target, ignore_index=ignore_index, reduction="sum")

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, target = ctx.saved_tensors
        kept = cls.kept(target, ctx.ignore_index)
        hot = functional.one_hot(target.masked_fill(~kept, 0), x.shape[1])
        return g * (x.softmax(1) - hot) * kept.unsqueeze(1), None, None


class Compared(Negative):
    """The same, but that forward compares by itself."""

    @classmethod
    def forward(cls, ctx: Any, x: Any, target: Any, pad: int = -1) -> Any:
        ctx.save_for_backward(x, target)
        ctx.ignore_index = pad
        safe = target.masked_fill(target == pad, 0).unsqueeze(1)
        return -(x.log_softmax(1).gather(1, safe).squeeze(1) * (target != pad)).sum()


@pytest.mark.parametrize("loss", [Negative, Compared])
def test_what_is_ignored_may_be_a_class(loss: Any) -> None:
    """A label is no number whose sign means something."""
    report = sg.verify(loss, suggest=False)
    assert str(report.verdict) == "REFUTED", str(report)
    assert "1" in dict(report.values).values()
    asks = staticmethod(lambda target, ignored: target != ignored)
    report = sg.verify(type("Right", (loss,), {"kept": asks}), suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert any("or 1" in text for text in dict(report.values).values())


class Reduced(FUNCTION):
    """The reduction has no default; ``summed``: backward asks for the sum, too."""

    summed = True

    @classmethod
    def forward(cls, ctx: Any, x: Any, t: Any, reduction: Any) -> Any:
        ctx.save_for_backward(x, t)
        ctx.how = reduction
        return functional.nll_loss(x, t, reduction=reduction)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        g = g[:, None] if ctx.how == "none" else g
        mean = ctx.how == "mean" or (ctx.how == "sum" and not cls.summed)
        scale = 1 / t.numel() if mean else 1
        return -g * scale * functional.one_hot(t, x.shape[1]), None, None


class Moded(FUNCTION):
    """A text of the program's own."""

    summed = True

    @classmethod
    def forward(cls, ctx: Any, x: Any, how: str) -> Any:
        ctx.save_for_backward(x)
        ctx.how = how
        if how not in ("tanh", "square"):
            raise ValueError(how)
        return x.tanh() if how == "tanh" else x * x

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        how = ctx.how if cls.summed else "square"
        return {"tanh": g / x.cosh() ** 2, "square": 2 * g * x}[how], None


@pytest.mark.parametrize("loss", [Reduced, Moded])
def test_a_text_without_a_default_is_what_the_code_asks_for(loss: Any) -> None:
    report = sg.verify(loss, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    texts = ("mean", "sum", "none") if loss is Reduced else ("tanh", "square")
    for text in texts:
        assert any(f"'{text}'" in shapes for shapes in (report.inferred, *report.beside))
    wrong = sg.verify(type("Wrong", (loss,), {"summed": False}), suggest=False)
    assert str(wrong.verdict) == "REFUTED", str(wrong)


class Smoothed(FUNCTION):
    """The smoothing has no default."""

    missing = False

    @classmethod
    def forward(cls, ctx: Any, x: Any, t: Any, number: Any) -> Any:
        ctx.save_for_backward(x, t)
        ctx.number = number
        return functional.cross_entropy(x, t, label_smoothing=number, reduction="sum")

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        hot = functional.one_hot(t, x.shape[1]) * (1 - ctx.number)
        hot = hot if cls.missing else hot + ctx.number / x.shape[1]
        return g * (x.softmax(1) - hot), None, None


class Hand(FUNCTION):
    """The same with ``where``, and an annotation."""

    @staticmethod
    def forward(ctx: Any, x: Any, t: Any, ignore_index: int) -> Any:
        ctx.save_for_backward(x, t)
        ctx.ignored = ignore_index
        return functional.cross_entropy(x, t, ignore_index=ignore_index, reduction="sum")

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        keep = t != ctx.ignored
        hot = functional.one_hot(torch.where(keep, t, torch.zeros_like(t)), x.shape[1])
        return g * (x.softmax(1) - hot) * keep.unsqueeze(1), None, None


def test_a_label_that_is_ignored_is_torchs_own_first() -> None:
    for cls in (Stated, Hand):
        report = sg.verify(cls, suggest=False)
        assert str(report.verdict) == "PROVED", str(report)
        assert "x[n, m], i64 t[n]," in report.inferred
        assert "= -100" in report.inferred
    assert (
        str(sg.verify(type("Wrong", (Stated,), {"missing": True}), suggest=False).verdict)
        == "REFUTED"
    )


def test_smoothing_is_a_share() -> None:
    """Torch ignores -1, which is not meant by any class."""
    report = sg.verify(Smoothed, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert "number = -1" not in report.inferred
    wrong = sg.verify(type("Wrong", (Smoothed,), {"missing": True}), suggest=False)
    assert str(wrong.verdict) == "REFUTED"


class Labelled(FUNCTION):
    """Any plain number beside labels: floats would do for forward alone."""

    @staticmethod
    def forward(ctx: Any, x: Any, t: Any, power: Any) -> Any:
        ctx.save_for_backward(x, t)
        ctx.power = int(power)
        return functional.cross_entropy(x, t, reduction="sum") * 2.0 ** int(power)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, t = ctx.saved_tensors
        return g * (x.softmax(1) - functional.one_hot(t, x.shape[1])) * 2.0**ctx.power, None, None


def test_what_backward_refuses_as_floats_are_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few trials are left once forward has taken floats."""
    monkeypatch.setattr("symgrad.shapes.trying.TRIALS_AFTER_A_TRACE", 1)
    report = sg.verify(Labelled, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert "i64 t[n]" in report.inferred


class Unmasked(FUNCTION):
    """Forward ignores rows, and backward takes each label as it is, as ``one_hot`` asks."""

    divided = True

    @classmethod
    def forward(cls, ctx: Any, p: Any, target: Any) -> Any:
        ctx.save_for_backward(p, target)
        return functional.nll_loss(torch.log(p), target)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        p, target = ctx.saved_tensors
        hot = functional.one_hot(target, p.shape[1])
        return -g * hot / p / (target.numel() if cls.divided else 1), None


def test_what_backward_asks_of_labels_holds_where_it_is_judged() -> None:
    """It raises for the label that forward ignores: a condition, no refutation."""
    report = sg.verify(Unmasked, "n m; i64[n]", suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert [one.text for one in report.conditions if one.kind == "index"] == ["0 <= target < m"]
    wrong = sg.verify(type("Wrong", (Unmasked,), {"divided": False}), "n m; i64[n]", suggest=False)
    assert "confirmed in torch" in str(wrong)


class OffByOne(FUNCTION):
    """Labels from 1 in forward, and from 0 in backward."""

    @staticmethod
    def forward(ctx: Any, logits: Any, target: Any) -> Any:
        p = torch.softmax(logits, -1)
        ctx.save_for_backward(p, target)
        return -torch.log(p).gather(1, (target - 1).unsqueeze(1)).sum()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        p, target = ctx.saved_tensors
        return g * (p - functional.one_hot(target, p.size(1))), None


def test_labels_are_drawn_that_all_operations_take() -> None:
    report = sg.verify(OffByOne, "n m; i64[n]", suggest=False)
    assert str(report.verdict) == "REFUTED"
    assert "confirmed in torch" in str(report)


# -- shapes of labels


class Dense(FUNCTION):
    """``logits[n, c, h], target[n, h]``, or rows of scores; ``count`` says how many labels."""

    @staticmethod
    def count(target: Any) -> Any:
        return target.numel()

    @classmethod
    def forward(cls, ctx: Any, logits: Any, target: Any) -> Any:
        logs = functional.log_softmax(logits, dim=1)
        ctx.save_for_backward(logs, target)
        return -logs.gather(1, target.unsqueeze(1)).squeeze(1).mean()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        logs, target = ctx.saved_tensors
        hot = torch.zeros_like(logs).scatter_(1, target.unsqueeze(1), 1.0)
        return g * (logs.exp() - hot) / cls.count(target), None


class Unpacked(Dense):
    """Scores of three axes, as the source says; the mean over two of them is divided by one."""

    @staticmethod
    def count(target: Any) -> Any:
        return target.shape[0]

    @classmethod
    def forward(cls, ctx: Any, logits: Any, target: Any) -> Any:
        _n, _c, _h = logits.shape
        return super().forward(ctx, logits, target)


def test_an_index_has_as_many_rows_as_what_it_is_an_index_of() -> None:
    """``gather`` takes fewer: that the mean is wrong there is a condition."""
    report = sg.verify(Dense, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert "logits[n, m], i64 target[n]" in report.inferred
    assert "logits[n, m, k], i64 target[n, k] (PROVED)" in report.inferred
    assert any("wrong for logits[n, m], i64 target[k]" in one.text for one in report.conditions)


def test_labels_have_other_ranks_than_scores() -> None:
    rows = {"count": staticmethod(lambda target: target.shape[0])}
    report = sg.verify(type("Rows", (Dense,), rows), suggest=False)
    assert str(report.verdict) == "PROVED"
    texts = [one.text for one in report.conditions]
    assert any("wrong for logits[n, m, k], i64 target[n, k]" in text for text in texts)
    wrong = sg.verify(Unpacked, suggest=False)
    assert str(wrong.verdict) == "REFUTED"
    assert "logits[n, m, k], i64 target[n, k]" in wrong.inferred


class Flat(FUNCTION):
    """Scores and labels of several axes as rows."""

    right = True

    @classmethod
    def forward(cls, ctx: Any, logits: Any, target: Any) -> Any:
        n, c, h, w = logits.shape
        p = torch.softmax(logits.permute(0, 2, 3, 1).reshape(-1, c), 1)
        labels = target.reshape(-1)
        ctx.save_for_backward(p, labels)
        ctx.sizes = n, c, h, w
        return -torch.log(p)[torch.arange(n * h * w), labels].sum()

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        p, labels = ctx.saved_tensors
        n, c, h, w = ctx.sizes
        d = g * (p - functional.one_hot(labels, c)).reshape(n, h, w, c)
        return d.permute(0, 3, 1, 2) if cls.right else d.permute(0, 3, 2, 1), None


def test_products_of_sizes_meet_factor_by_factor() -> None:
    report = sg.verify(Flat, suggest=False)
    assert str(report.verdict) == "PROVED"
    assert "logits[n, m, k, l], i64 target[n, k, l]" in report.inferred
    assert (
        str(sg.verify(type("Wrong", (Flat,), {"right": False}), suggest=False).verdict) != "PROVED"
    )


def test_labels_that_have_no_axis_more_are_no_labels_of_the_rest() -> None:
    """``p[arange(n), target]`` of three axes picks rows, for which the class is not written."""
    report = sg.verify(Picked, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert any("wrong for logits[n, m, k], i64" in one.text for one in report.conditions)


class Picked(FUNCTION):
    @staticmethod
    def forward(ctx: Any, logits: Any, target: Any) -> Any:
        p = torch.softmax(logits, dim=-1)
        ctx.save_for_backward(p, target)
        return -torch.log(p)[torch.arange(logits.shape[0]), target].mean()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        p, target = ctx.saved_tensors
        p = p.clone()
        p[torch.arange(p.shape[0]), target] -= 1
        return g * p / p.shape[0], None


class Dice(FUNCTION):
    """Labels of floats kept beside what forward computes, and a number that is added."""

    factor = 2

    @staticmethod
    def forward(ctx: Any, logits: Any, labels: Any, smooth: Any) -> Any:
        p = torch.sigmoid(logits)
        above = 2 * (p * labels).sum(dim=1) + smooth
        below = (p + labels).sum(dim=1) + smooth
        ctx.kept = p, labels, above, below
        return 1 - above / below

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        p, labels, above, below = ctx.kept
        above, below = above.view(-1, 1), below.view(-1, 1)
        d = above / below**2 - cls.factor * labels / below
        return g.view(-1, 1) * d * p * (1 - p), None, None


def test_what_is_kept_beside_tensors_may_be_one() -> None:
    report = sg.verify(Dice, assume={"labels": "constant"}, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    assert "labels[n, m], smooth (any number, without a gradient)" in report.inferred
    wrong = type("Wrong", (Dice,), {"factor": 1})
    assert str(sg.verify(wrong, assume={"labels": "constant"}, suggest=False).verdict) == "REFUTED"


# -- padding of embeddings


class Embedding(FUNCTION):
    """Backward leaves out the rows ``left``."""

    left: tuple[int, ...] = ()
    scale = 1
    padding = 0

    @classmethod
    def forward(cls, ctx: Any, table: Any, places: Any) -> Any:
        ctx.save_for_backward(places)
        ctx.rows = table.shape[0]
        return functional.embedding(places, table, padding_idx=cls.padding)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        (places,) = ctx.saved_tensors
        for row in cls.left:
            g = g.masked_fill((places == row % ctx.rows).unsqueeze(-1), 0)
        found = g.new_zeros(ctx.rows, g.shape[-1])
        return cls.scale * found.index_add(0, places, g), None


LEFT: dict[str, tuple[dict[str, Any], str, str]] = {
    "none": ({}, "PROVED", ""),
    "padding, as torch": ({"left": (0,)}, "UNDECIDED", "leaves out the row padding_idx"),
    "another row": ({"left": (1,)}, "REFUTED", "confirmed in torch"),
    "nothing, and twice the rest": ({"scale": 2}, "REFUTED", "confirmed in torch"),
    "padding, and twice the rest": ({"left": (0,), "scale": 2}, "REFUTED", "confirmed in torch"),
    "the last, as torch": ({"left": (-1,), "padding": -1}, "UNDECIDED", "the row padding_idx"),
    "the last, and twice the rest": (
        {"left": (-1,), "padding": -1, "scale": 2},
        "REFUTED",
        "confirmed in torch",
    ),
    "padding and another": ({"left": (0, 1)}, "REFUTED", "confirmed in torch"),
}


@pytest.mark.parametrize("case", LEFT)
def test_a_row_of_padding_may_have_no_gradient(case: str) -> None:
    """As F.embedding has it; the derivative of the values is right, too, and the report says so."""
    changes, verdict, said = LEFT[case]
    report = sg.verify(type("Judged", (Embedding,), changes), "n m", "i64[k]", suggest=False)
    assert str(report.verdict) == verdict, str(report)
    text = " ".join(str(report).split())
    assert said in text
    if verdict == "PROVED":
        assert "the row padding_idx is meant to have the derivative of its values" in text


class SmoothedByHand(FUNCTION):
    """Smoothed cross-entropy whose hits are where a label equals the number of a class.

    A label that is no class has no hit: then the targets do not add up to 1, which backward needs.
    """

    share = 1.0

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, eps: float = 0.1) -> Any:
        scores = torch.log_softmax(x, -1)
        classes = x.size(-1)
        hits = (torch.arange(classes, device=x.device) == y.unsqueeze(-1)).to(x.dtype)
        targets = hits * (1 - eps) + eps / classes
        ctx.save_for_backward(scores, targets)
        return -(targets * scores).sum(-1)

    @classmethod
    def backward(cls, ctx: Any, g: Any) -> Any:
        scores, targets = ctx.saved_tensors
        return g.unsqueeze(-1) * (cls.share * scores.exp() - targets), None, None


class SmoothedByHalf(SmoothedByHand):
    share = 0.5


def test_what_is_compared_with_classes_is_one() -> None:
    """Labels as floats, which are no classes, are a condition; one that is, is no excuse."""
    report = sg.verify(SmoothedByHand, suggest=False)
    assert str(report.verdict) == "PROVED", str(report)
    text = " ".join(str(report).split())
    assert "if the shapes are x[n, m], i64 y[n] (the gradient of x is wrong" in text
    assert "if 0 <= y < m" in text
    assert str(sg.verify(SmoothedByHalf, suggest=False).verdict) == "REFUTED"
