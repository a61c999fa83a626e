"""Graphs and sequences: edge softmax, attention over edges, pairwise terms, label chains."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("e", "i64[e]", static={"nodes": 4}, assume={"target": "index 4"})
class EdgeSoftmax(sg.Function):
    """Normalised over the edges that share a target."""

    @staticmethod
    def forward(ctx, score, target, nodes):
        e = score.exp()
        total = sg.zeros(nodes, dtype=e.dtype).scatter_add(0, target, e)
        p = e / total[target]
        ctx.save_for_backward(p, target)
        ctx.nodes = nodes
        return p

    @staticmethod
    def backward(ctx, g):
        p, target = ctx.saved_tensors
        dot = sg.zeros(ctx.nodes, dtype=g.dtype).scatter_add(0, target, g * p)
        return p * (g - dot[target]), None, None


@wrong(EdgeSoftmax, bug="normaliser treated as a constant")
class EdgeSoftmaxConstant(EdgeSoftmax):
    @staticmethod
    def backward(ctx, g):
        p, _ = ctx.saved_tensors
        return p * g, None, None


@wrong(EdgeSoftmax, bug="summed over all edges")
class EdgeSoftmaxAll(EdgeSoftmax):
    @staticmethod
    def backward(ctx, g):
        p, _ = ctx.saved_tensors
        return p * (g - (g * p).sum()), None, None


@right("v d", "v d", "i64[e]", "i64[e]", assume={"i": "index v", "j": "index v"})
class EdgeDot(sg.Function):
    """Score of an edge: the inner product of its ends."""

    @staticmethod
    def forward(ctx, q, k, i, j):
        ctx.save_for_backward(q, k, i, j)
        return (q[i] * k[j]).sum(-1)

    @staticmethod
    def backward(ctx, g):
        q, k, i, j = ctx.saved_tensors
        g = g.unsqueeze(-1)
        grad_q = sg.zeros_like(q).index_add_(0, i, g * k[j])
        grad_k = sg.zeros_like(k).index_add_(0, j, g * q[i])
        return grad_q, grad_k, None, None


@wrong(EdgeDot, bug="ends exchanged when the gradients are collected")
class EdgeDotEnds(EdgeDot):
    @staticmethod
    def backward(ctx, g):
        q, k, i, j = ctx.saved_tensors
        g = g.unsqueeze(-1)
        grad_q = sg.zeros_like(q).index_add_(0, j, g * k[j])
        grad_k = sg.zeros_like(k).index_add_(0, i, g * q[i])
        return grad_q, grad_k, None, None


@wrong(EdgeDot, bug="own vector for the other end's")
class EdgeDotOwn(EdgeDot):
    @staticmethod
    def backward(ctx, g):
        q, k, i, j = ctx.saved_tensors
        g = g.unsqueeze(-1)
        grad_q = sg.zeros_like(q).index_add_(0, i, g * q[i])
        grad_k = sg.zeros_like(k).index_add_(0, j, g * k[j])
        return grad_q, grad_k, None, None


@right("v 3", "i64[e]", "i64[e]", assume={"i": "index v", "j": "index v"})
class SpringEnergy(sg.Function):
    """Sum of squared edge lengths; every edge pulls at both ends."""

    @staticmethod
    def forward(ctx, position, i, j):
        diff = position[i] - position[j]
        ctx.save_for_backward(diff, i, j, position)
        return 0.5 * (diff * diff).sum()

    @staticmethod
    def backward(ctx, g):
        diff, i, j, position = ctx.saved_tensors
        grad = sg.zeros_like(position)
        grad.index_add_(0, i, g * diff)
        grad.index_add_(0, j, -g * diff)
        return grad, None, None


@wrong(SpringEnergy, bug="only one end is pulled")
class SpringOneEnd(SpringEnergy):
    @staticmethod
    def backward(ctx, g):
        diff, i, _, position = ctx.saved_tensors
        return sg.zeros_like(position).index_add_(0, i, g * diff), None, None


@wrong(SpringEnergy, bug="both ends pulled the same way")
class SpringSameWay(SpringEnergy):
    @staticmethod
    def backward(ctx, g):
        diff, i, j, position = ctx.saved_tensors
        grad = sg.zeros_like(position)
        grad.index_add_(0, i, g * diff)
        grad.index_add_(0, j, g * diff)
        return grad, None, None


@right("v v", "v d")
class NormalisedAdjacency(sg.Function):
    """Rows of exp(A) divided by their sums, times the features."""

    @staticmethod
    def forward(ctx, a, x):
        e = a.exp()
        p = e / e.sum(1, keepdim=True)
        y = p @ x
        ctx.save_for_backward(p, x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        p, x, y = ctx.saved_tensors
        grad_a = p * (g @ x.t() - (g * y).sum(1, keepdim=True))
        return grad_a, p.t() @ g


@wrong(NormalisedAdjacency, bug="propagated with P, not with its transpose")
class AdjacencyTransposed(NormalisedAdjacency):
    @staticmethod
    def backward(ctx, g):
        p, x, y = ctx.saved_tensors
        grad_a = p * (g @ x.t() - (g * y).sum(1, keepdim=True))
        return grad_a, p @ g


@wrong(NormalisedAdjacency, bug="degree treated as a constant")
class AdjacencyDegree(NormalisedAdjacency):
    @staticmethod
    def backward(ctx, g):
        p, x, _ = ctx.saved_tensors
        return p * (g @ x.t()), p.t() @ g


@right("3 s", "s s")
class ChainLogPartition(sg.Function):
    """Log-partition of a chain of three steps, by the forward algorithm in log space."""

    @staticmethod
    def forward(ctx, emission, transition):
        alpha = [emission[0]]
        for t in range(1, 3):
            scores = alpha[-1][:, None] + transition
            alpha.append(sg.logsumexp(scores, dim=0) + emission[t])
        ctx.alpha = alpha
        ctx.save_for_backward(emission, transition)
        return sg.logsumexp(alpha[-1], dim=0)

    @staticmethod
    def backward(ctx, g):
        emission, transition = ctx.saved_tensors
        grad_emission, grad_transition = sg.zeros_like(emission), sg.zeros_like(transition)
        beta = g * sg.softmax(ctx.alpha[-1], dim=0)
        for t in range(2, 0, -1):
            grad_emission[t] = beta
            p = sg.softmax(ctx.alpha[t - 1][:, None] + transition, dim=0)
            pair = p * beta
            grad_transition += pair
            beta = pair.sum(1)
        grad_emission[0] = beta
        return grad_emission, grad_transition


@wrong(ChainLogPartition, bug="transitions counted at the last step only")
class ChainTransitions(ChainLogPartition):
    @staticmethod
    def backward(ctx, g):
        emission, transition = ctx.saved_tensors
        grad_emission = sg.zeros_like(emission)
        beta = g * sg.softmax(ctx.alpha[-1], dim=0)
        for t in range(2, 0, -1):
            grad_emission[t] = beta
            pair = sg.softmax(ctx.alpha[t - 1][:, None] + transition, dim=0) * beta
            grad_transition = pair
            beta = pair.sum(1)
        grad_emission[0] = beta
        return grad_emission, grad_transition


@wrong(ChainLogPartition, bug="marginals of the next tag, not of the previous one")
class ChainMarginals(ChainLogPartition):
    @staticmethod
    def backward(ctx, g):
        emission, transition = ctx.saved_tensors
        grad_emission, grad_transition = sg.zeros_like(emission), sg.zeros_like(transition)
        beta = g * sg.softmax(ctx.alpha[-1], dim=0)
        for t in range(2, 0, -1):
            grad_emission[t] = beta
            pair = sg.softmax(ctx.alpha[t - 1][:, None] + transition, dim=0) * beta
            grad_transition += pair
            beta = pair.sum(0)
        grad_emission[0] = beta
        return grad_emission, grad_transition


@right("n n d")
class PairSymmetrise(sg.Function):
    """Pair features averaged with their mirror image."""

    @staticmethod
    def forward(ctx, x):
        return 0.5 * (x + x.transpose(0, 1))

    @staticmethod
    def backward(ctx, g):
        return 0.5 * (g + g.transpose(0, 1))


@wrong(PairSymmetrise, bug="the cotangent taken for symmetric")
class PairSymmetriseAssumed(PairSymmetrise):
    @staticmethod
    def backward(ctx, g):
        return g


@right("n c d", "n d c")
class TriangleUpdate(sg.Function):
    """Outer products summed over the middle axis, as in pair representations."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return sg.einsum("icd,jdc->ij", a, b)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return sg.einsum("ij,jdc->icd", g, b), sg.einsum("ij,icd->jdc", g, a)


@wrong(TriangleUpdate, bug="rows and columns of the cotangent exchanged")
class TriangleExchanged(TriangleUpdate):
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return sg.einsum("ji,jdc->icd", g, b), sg.einsum("ji,icd->jdc", g, a)
