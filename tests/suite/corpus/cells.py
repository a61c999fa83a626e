"""Recurrent cells: LSTM, GRU, minimal gates, and gates with peepholes."""

import symgrad as sg
from tests.suite.marks import right, wrong


@right("n 4*h", "n h")
class LstmCell(sg.Function):
    """Gates i, f, g, o of one projection; the new hidden and cell states."""

    @staticmethod
    def forward(ctx, gates, cell):
        i, f, g, o = gates.chunk(4, 1)
        i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
        new_cell = f * cell + i * g
        t = new_cell.tanh()
        ctx.save_for_backward(i, f, g, o, cell, t)
        return o * t, new_cell

    @staticmethod
    def backward(ctx, grad_hidden, grad_cell):
        i, f, g, o, cell, t = ctx.saved_tensors
        total = grad_cell + grad_hidden * o * (1 - t * t)
        grad_i = total * g * i * (1 - i)
        grad_f = total * cell * f * (1 - f)
        grad_g = total * i * (1 - g * g)
        grad_o = grad_hidden * t * o * (1 - o)
        return sg.cat([grad_i, grad_f, grad_g, grad_o], dim=1), total * f


@wrong(LstmCell, bug="candidate and output gate exchanged")
class LstmGateOrder(LstmCell):
    @staticmethod
    def backward(ctx, grad_hidden, grad_cell):
        i, f, g, o, cell, t = ctx.saved_tensors
        total = grad_cell + grad_hidden * o * (1 - t * t)
        grad_i = total * g * i * (1 - i)
        grad_f = total * cell * f * (1 - f)
        grad_g = total * i * (1 - g * g)
        grad_o = grad_hidden * t * o * (1 - o)
        return sg.cat([grad_i, grad_f, grad_o, grad_g], dim=1), total * f


@wrong(LstmCell, bug="the cell's cotangent not added")
class LstmCellCotangent(LstmCell):
    @staticmethod
    def backward(ctx, grad_hidden, grad_cell):
        i, f, g, o, cell, t = ctx.saved_tensors
        total = grad_hidden * o * (1 - t * t)
        grad_i = total * g * i * (1 - i)
        grad_f = total * cell * f * (1 - f)
        grad_g = total * i * (1 - g * g)
        grad_o = grad_hidden * t * o * (1 - o)
        return sg.cat([grad_i, grad_f, grad_g, grad_o], dim=1), total * f


@wrong(LstmCell, bug="sigmoid's derivative for the candidate's tanh")
class LstmCandidate(LstmCell):
    @staticmethod
    def backward(ctx, grad_hidden, grad_cell):
        i, f, g, o, cell, t = ctx.saved_tensors
        total = grad_cell + grad_hidden * o * (1 - t * t)
        grad_i = total * g * i * (1 - i)
        grad_f = total * cell * f * (1 - f)
        grad_g = total * i * g * (1 - g)
        grad_o = grad_hidden * t * o * (1 - o)
        return sg.cat([grad_i, grad_f, grad_g, grad_o], dim=1), total * f


@wrong(LstmCell, bug="the new cell used where the old one is meant")
class LstmOldCell(LstmCell):
    @staticmethod
    def backward(ctx, grad_hidden, grad_cell):
        i, f, g, o, cell, t = ctx.saved_tensors
        new_cell = f * cell + i * g
        total = grad_cell + grad_hidden * o * (1 - t * t)
        grad_i = total * g * i * (1 - i)
        grad_f = total * new_cell * f * (1 - f)
        grad_g = total * i * (1 - g * g)
        grad_o = grad_hidden * t * o * (1 - o)
        return sg.cat([grad_i, grad_f, grad_g, grad_o], dim=1), total * f


@right("n h", "n h", "n h", "n h", "n h", "n h", "n h")
class GruCell(sg.Function):
    """Input and hidden parts of the gates r, z, n given apart."""

    @staticmethod
    def forward(ctx, ir, iz, candidate, hr, hz, hn, hidden):
        r = sg.sigmoid(ir + hr)
        z = sg.sigmoid(iz + hz)
        n = sg.tanh(candidate + r * hn)
        ctx.save_for_backward(r, z, n, hn, hidden)
        return (1 - z) * n + z * hidden

    @staticmethod
    def backward(ctx, g):
        r, z, n, hn, hidden = ctx.saved_tensors
        grad_n = g * (1 - z) * (1 - n * n)
        grad_z = g * (hidden - n) * z * (1 - z)
        grad_r = grad_n * hn * r * (1 - r)
        return grad_r, grad_z, grad_n, grad_r, grad_z, grad_n * r, g * z


@wrong(GruCell, bug="reset gate left out of the hidden part of the candidate")
class GruReset(GruCell):
    @staticmethod
    def backward(ctx, g):
        r, z, n, hn, hidden = ctx.saved_tensors
        grad_n = g * (1 - z) * (1 - n * n)
        grad_z = g * (hidden - n) * z * (1 - z)
        grad_r = grad_n * hn * r * (1 - r)
        return grad_r, grad_z, grad_n, grad_r, grad_z, grad_n, g * z


@wrong(GruCell, bug="sign of the update gate's gradient")
class GruUpdate(GruCell):
    @staticmethod
    def backward(ctx, g):
        r, z, n, hn, hidden = ctx.saved_tensors
        grad_n = g * (1 - z) * (1 - n * n)
        grad_z = g * (n - hidden) * z * (1 - z)
        grad_r = grad_n * hn * r * (1 - r)
        return grad_r, grad_z, grad_n, grad_r, grad_z, grad_n * r, g * z


@wrong(GruCell, bug="z for 1 - z")
class GruComplement(GruCell):
    @staticmethod
    def backward(ctx, g):
        r, z, n, hn, hidden = ctx.saved_tensors
        grad_n = g * z * (1 - n * n)
        grad_z = g * (hidden - n) * z * (1 - z)
        grad_r = grad_n * hn * r * (1 - r)
        return grad_r, grad_z, grad_n, grad_r, grad_z, grad_n * r, g * (1 - z)


@right("n i", "n h", "h i", "h h", "h")
class ElmanCell(sg.Function):
    @staticmethod
    def forward(ctx, x, hidden, w, u, b):
        new = sg.tanh(x @ w.T + hidden @ u.T + b)
        ctx.save_for_backward(x, hidden, w, u, new)
        return new

    @staticmethod
    def backward(ctx, g):
        x, hidden, w, u, new = ctx.saved_tensors
        a = g * (1 - new * new)
        return a @ w, a @ u, a.T @ x, a.T @ hidden, a.sum(0)


@wrong(ElmanCell, bug="the new state for the old one")
class ElmanState(ElmanCell):
    @staticmethod
    def backward(ctx, g):
        x, _, w, u, new = ctx.saved_tensors
        a = g * (1 - new * new)
        return a @ w, a @ u, a.T @ x, a.T @ new, a.sum(0)


@wrong(ElmanCell, bug="u not transposed: right only for symmetric u")
class ElmanTransposed(ElmanCell):
    @staticmethod
    def backward(ctx, g):
        x, hidden, w, u, new = ctx.saved_tensors
        a = g * (1 - new * new)
        return a @ w, a @ u.T, a.T @ x, a.T @ hidden, a.sum(0)


@right("n h", "n h", "h")
class HighwayGate(sg.Function):
    """A gate with its own bias between the input and its transform."""

    @staticmethod
    def forward(ctx, x, transform, bias):
        gate = sg.sigmoid(x + bias)
        ctx.save_for_backward(x, transform, gate)
        return gate * transform + (1 - gate) * x

    @staticmethod
    def backward(ctx, g):
        x, transform, gate = ctx.saved_tensors
        grad_a = g * (transform - x) * gate * (1 - gate)
        return grad_a + g * (1 - gate), g * gate, grad_a.sum(0)


@wrong(HighwayGate, bug="the path through the gate left out of x's gradient")
class HighwayPath(HighwayGate):
    @staticmethod
    def backward(ctx, g):
        x, transform, gate = ctx.saved_tensors
        grad_a = g * (transform - x) * gate * (1 - gate)
        return g * (1 - gate), g * gate, grad_a.sum(0)


@wrong(HighwayGate, bug="the carry left out of the gate's gradient")
class HighwayCarry(HighwayGate):
    @staticmethod
    def backward(ctx, g):
        _, transform, gate = ctx.saved_tensors
        grad_a = g * transform * gate * (1 - gate)
        return grad_a + g * (1 - gate), g * gate, grad_a.sum(0)
