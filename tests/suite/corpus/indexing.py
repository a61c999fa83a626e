"""Reading and writing by index: embeddings, gathers, scatters, segments, graphs, masks."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("v d", "i64[n]", assume={"index": "index v"})
class Embedding(sg.Function):
    @staticmethod
    def forward(ctx, weight, index):
        ctx.save_for_backward(index)
        ctx.rows = weight.shape[0]
        return weight[index]

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = g.new_zeros(ctx.rows, g.shape[1])
        return grad.index_add(0, index, g), None


@right(Embedding)
class EmbeddingOneHot(Embedding):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        one_hot = (index[:, None] == sg.arange(ctx.rows)[None, :]).to(g.dtype)
        return one_hot.t() @ g, None


@wrong(Embedding, bug="repeated indices overwrite each other")
class EmbeddingOverwrites(Embedding):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = g.new_zeros(ctx.rows, g.shape[1])
        grad[index] = g
        return grad, None


@wrong(Embedding, bug="+= on an index does not accumulate repeated ones")
class EmbeddingAugmented(Embedding):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        grad = g.new_zeros(ctx.rows, g.shape[1])
        grad[index] += g
        return grad, None


@wrong(EmbeddingOneHot, bug="one-hot matrix not transposed", kind="error")
class EmbeddingTransposed(EmbeddingOneHot):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        one_hot = (index[:, None] == sg.arange(ctx.rows)[None, :]).to(g.dtype)
        return one_hot @ g, None


@right("v d", "i64[n]", assume={"index": "index v"}, static={"padding": 0})
class EmbeddingWithPadding(sg.Function):
    """Row 0 reads as zero and gets no gradient."""

    @staticmethod
    def forward(ctx, weight, index, padding):
        keep = (index != padding).unsqueeze(1).to(weight.dtype)
        ctx.save_for_backward(index, keep)
        ctx.shape = weight.shape
        return weight.index_select(0, index) * keep

    @staticmethod
    def backward(ctx, g):
        index, keep = ctx.saved_tensors
        return sg.zeros(ctx.shape, dtype=g.dtype).index_add_(0, index, g * keep), None, None


@wrong(EmbeddingWithPadding, bug="padding gets a gradient")
class EmbeddingPaddingLeaks(EmbeddingWithPadding):
    @staticmethod
    def backward(ctx, g):
        index, _ = ctx.saved_tensors
        return sg.zeros(ctx.shape, dtype=g.dtype).index_add_(0, index, g), None, None


@right("n m", "i64[n k]", assume={"index": "index m"})
class Gather(sg.Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.width = x.shape[1]
        return x.gather(1, index)

    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        zeros = sg.zeros(g.shape[0], ctx.width, dtype=g.dtype)
        return zeros.scatter_add(1, index, g), None


@wrong(Gather, bug="scatter for scatter_add: repeated indices lost")
class GatherScatter(Gather):
    @staticmethod
    def backward(ctx, g):
        (index,) = ctx.saved_tensors
        zeros = sg.zeros(g.shape[0], ctx.width, dtype=g.dtype)
        return zeros.scatter(1, index, g), None


@right("e d", "i64[e]", assume={"segment": "index 6"})
class SegmentSum(sg.Function):
    @staticmethod
    def forward(ctx, x, segment):
        ctx.save_for_backward(segment)
        return sg.zeros(6, x.shape[1], dtype=x.dtype).index_add_(0, segment, x)

    @staticmethod
    def backward(ctx, g):
        (segment,) = ctx.saved_tensors
        return g[segment], None


@wrong(SegmentSum, bug="divided by the number of segments")
class SegmentSumMean(SegmentSum):
    @staticmethod
    def backward(ctx, g):
        (segment,) = ctx.saved_tensors
        return g[segment] / g.shape[0], None


@right("e d", "i64[e]", "v d", assume={"segment": "index v"})
class SegmentMean(sg.Function):
    """Mean of the edges at each node, added to the node."""

    @staticmethod
    def forward(ctx, x, segment, node):
        ones = sg.ones(segment.shape[0], dtype=x.dtype)
        count = sg.zeros(node.shape[0], dtype=x.dtype).scatter_add(0, segment, ones).clamp(min=1)
        total = sg.zeros_like(node).index_add(0, segment, x)
        ctx.save_for_backward(segment, count)
        return node + total / count[:, None]

    @staticmethod
    def backward(ctx, g):
        segment, count = ctx.saved_tensors
        return g[segment] / count[segment][:, None], None, g


@wrong(SegmentMean, bug="counts not gathered to the edges: divided by the sum")
class SegmentMeanSum(SegmentMean):
    @staticmethod
    def backward(ctx, g):
        segment, count = ctx.saved_tensors
        return g[segment] / count.sum(), None, g


@wrong(SegmentMean, bug="the mean's divisor forgotten")
class SegmentMeanDivisor(SegmentMean):
    @staticmethod
    def backward(ctx, g):
        segment, _ = ctx.saved_tensors
        return g[segment], None, g


@right("v d", "i64[e]", "i64[e]", "e", assume={"source": "index v", "target": "index v"})
class GraphConvolution(sg.Function):
    """Each edge carries weight·x[source] to its target."""

    @staticmethod
    def forward(ctx, x, source, target, weight):
        ctx.save_for_backward(x, source, target, weight)
        messages = weight[:, None] * x[source]
        return sg.zeros_like(x).index_add(0, target, messages)

    @staticmethod
    def backward(ctx, g):
        x, source, target, weight = ctx.saved_tensors
        at_target = g[target]
        grad_x = sg.zeros_like(x).index_add(0, source, weight[:, None] * at_target)
        return grad_x, None, None, (at_target * x[source]).sum(1)


@wrong(GraphConvolution, bug="source and target exchanged")
class GraphConvolutionExchanged(GraphConvolution):
    @staticmethod
    def backward(ctx, g):
        x, source, target, weight = ctx.saved_tensors
        grad_x = sg.zeros_like(x).index_add(0, target, weight[:, None] * g[source])
        return grad_x, None, None, (g[target] * x[source]).sum(1)


@wrong(GraphConvolution, bug="weights left out of the nodes' gradient")
class GraphConvolutionWeights(GraphConvolution):
    @staticmethod
    def backward(ctx, g):
        x, source, target, _ = ctx.saved_tensors
        grad_x = sg.zeros_like(x).index_add(0, source, g[target])
        return grad_x, None, None, (g[target] * x[source]).sum(1)


@right("n m", "bool[n m]")
class MaskedSelectSum(sg.Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x.masked_fill(mask, 0.0).sum(1)

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g[:, None] * (~mask), None


@wrong(MaskedSelectSum, bug="mask not inverted")
class MaskedSelectInverted(MaskedSelectSum):
    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g[:, None] * mask, None


@right("n m", "i64[n]", assume={"label": "index m"})
class PickLabel(sg.Function):
    @staticmethod
    def forward(ctx, x, label):
        rows = sg.arange(x.shape[0])
        ctx.save_for_backward(x, label, rows)
        return x[rows, label] ** 2

    @staticmethod
    def backward(ctx, g):
        x, label, rows = ctx.saved_tensors
        grad = sg.zeros_like(x)
        grad[rows, label] = 2 * g * x[rows, label]
        return grad, None


@wrong(PickLabel, bug="whole columns assigned")
class PickLabelColumns(PickLabel):
    @staticmethod
    def backward(ctx, g):
        x, label, rows = ctx.saved_tensors
        grad = sg.zeros_like(x)
        grad[:, label] = 2 * g * x[rows, label]
        return grad, None


@right("v d", "i64[b k]", "b k", assume={"index": "index v"})
class EmbeddingBag(sg.Function):
    @staticmethod
    def forward(ctx, table, index, weight):
        rows = table[index]
        ctx.save_for_backward(rows, index, weight)
        ctx.shape = table.shape
        return (rows * weight.unsqueeze(-1)).sum(1)

    @staticmethod
    def backward(ctx, g):
        rows, index, weight = ctx.saved_tensors
        per_row = weight.unsqueeze(-1) * g.unsqueeze(1)
        grad = g.new_zeros(ctx.shape)
        grad = grad.index_add(0, index.reshape(-1), per_row.reshape(-1, g.shape[1]))
        return grad, None, (rows * g.unsqueeze(1)).sum(-1)


@wrong(EmbeddingBag, bug="weights left out of the table's gradient")
class EmbeddingBagWeights(EmbeddingBag):
    @staticmethod
    def backward(ctx, g):
        rows, index, weight = ctx.saved_tensors
        per_row = g.unsqueeze(1).expand(*weight.shape, g.shape[1])
        grad = g.new_zeros(ctx.shape)
        grad = grad.index_add(0, index.reshape(-1), per_row.reshape(-1, g.shape[1]))
        return grad, None, (rows * g.unsqueeze(1)).sum(-1)


@wrong(EmbeddingBag, bug="weights' gradient summed over the bag, not the features", kind="shape")
class EmbeddingBagAxis(EmbeddingBag):
    @staticmethod
    def backward(ctx, g):
        rows, index, weight = ctx.saved_tensors
        per_row = weight.unsqueeze(-1) * g.unsqueeze(1)
        grad = g.new_zeros(ctx.shape)
        grad = grad.index_add(0, index.reshape(-1), per_row.reshape(-1, g.shape[1]))
        return grad, None, (rows * g.unsqueeze(1)).sum(1)
