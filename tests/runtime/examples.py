"""Hand-written kernels that obey ``symgrad.abi``: the runtime's tests stand on them.

In: nothing.  Out: ``Example`` records: records and C.
"""

from __future__ import annotations

from dataclasses import dataclass

from symgrad.abi import OUT_OF_RANGE, Array, Backward, Binding, Case, Kernel, Op, Residual
from symgrad.codegen.wrapper import render_wrapper, wrapper_view
from symgrad.runtime.op import CompiledOp, make_op


@dataclass(frozen=True)
class Example:
    """An op whose C is written by hand."""

    name: str
    cases: tuple[Case, ...]
    differentiable: tuple[bool, ...]
    c: str
    header: str
    blas: bool = False

    @property
    def stem(self) -> str:
        return self.name.lower()

    @property
    def texts(self) -> dict[str, str]:
        return {f"{self.stem}.c": self.c, f"{self.stem}.h": self.header}

    def wrapper(self, runtime: str = "symgrad.runtime") -> str:
        return render_wrapper(wrapper_view(self.record, runtime=runtime))

    @property
    def record(self) -> Op:
        return Op(
            name=self.name,
            differentiable=self.differentiable,
            cases=self.cases,
            files=(f"{self.stem}.c",),
            header=f"{self.stem}.h",
            blas=self.blas,
        )

    def op(self) -> CompiledOp:
        return make_op(self.wrapper(), self.texts)


def _kernel(
    name: str, sizes: tuple[str, ...], inputs: tuple[Array, ...], outputs: tuple[Array, ...],
    statuses: tuple[str, ...] = (),
) -> Kernel:  # fmt: skip
    return Kernel(name, sizes=sizes, inputs=inputs, outputs=outputs, statuses=statuses)


def _backward(
    mask: tuple[bool, ...], kernel: Kernel, residuals: tuple[int, ...],
    cotangents: tuple[int, ...], zeros: tuple[int, ...] = (),
) -> Backward:  # fmt: skip
    return Backward(
        mask=mask, kernel=kernel, residuals=residuals, cotangents=cotangents, zeros=zeros
    )


def _case(
    inputs: tuple[Array, ...], outputs: tuple[Array, ...], bindings: tuple[Binding, ...],
    residuals: tuple[Residual, ...], inference: Kernel, forward: Kernel,
    backward: tuple[Backward, ...], conditions: tuple[str, ...] = (),
) -> Case:  # fmt: skip
    return Case(
        inputs=inputs, outputs=outputs, bindings=bindings, residuals=residuals,
        inference=inference, forward=forward, backward=backward, conditions=conditions,
    )  # fmt: skip


def _at(size: str, position: int, axis: int) -> Binding:
    return Binding(size, input=position, axis=axis)


def _header(stem: str, *prototypes: str) -> str:
    guard = f"{stem.upper()}_H"
    body = "".join(f"{one};\n" for one in prototypes)
    return f"#ifndef {guard}\n#define {guard}\n#include <stdint.h>\n{body}#endif\n"


def _softplus() -> Example:
    x, y = Array("x", "float32", ("n", "m")), Array("y", "float32", ("n", "m"))
    gy, gx = Array("grad_y", "float32", ("n", "m")), Array("grad_x", "float32", ("n", "m"))
    forward = _kernel("softplus_forward", ("n", "m"), (x,), (y,))
    backward = _kernel("softplus_backward", ("n", "m"), (x, gy), (gx,))
    case = _case(
        (x,),
        (y,),
        (_at("n", 0, 0), _at("m", 0, 1)),
        (Residual(x, "input"),),
        forward,
        forward,
        (_backward((True,), backward, (0,), (0,)),),
    )
    prototypes = (
        "int softplus_forward(int64_t n, int64_t m, const float *x, float *y, void *workspace)",
        "int64_t softplus_forward_workspace(int64_t n, int64_t m)",
        "int softplus_backward(int64_t n, int64_t m, const float *x, const float *grad_y,"
        " float *grad_x, void *workspace)",
        "int64_t softplus_backward_workspace(int64_t n, int64_t m)",
    )
    c = f"""\
#include <math.h>
#include "softplus.h"

{prototypes[0]}
{{
    (void)workspace;
    #pragma omp parallel for if(n*m > 4096)
    for (int64_t i = 0; i < n*m; i++) y[i] = log1pf(expf(x[i]));
    return 0;
}}

{prototypes[1]} {{ (void)n; (void)m; return 0; }}

{prototypes[2]}
{{
    (void)workspace;
    #pragma omp parallel for if(n*m > 4096)
    for (int64_t i = 0; i < n*m; i++) grad_x[i] = grad_y[i]/(1.0f + expf(-x[i]));
    return 0;
}}

{prototypes[3]} {{ (void)n; (void)m; return 0; }}
"""
    return Example("Softplus", (case,), (True,), c, _header("softplus", *prototypes))


def _matmul() -> Example:
    """The product x w: two inputs, rows strided, a BLAS, a workspace, three backward masks."""
    x = Array("x", "float64", ("n", "k"), strides=(0,))
    w = Array("w", "float64", ("k", "m"), strides=(0,))
    y, gy = Array("y", "float64", ("n", "m")), Array("grad_y", "float64", ("n", "m"))
    gx, gw = Array("grad_x", "float64", ("n", "k")), Array("grad_w", "float64", ("k", "m"))
    sizes = ("n", "k", "m")
    forward = _kernel("matmul_forward", sizes, (x, w), (y,))
    left = _kernel("matmul_backward_10", sizes, (w, gy), (gx,))
    right = _kernel("matmul_backward_01", sizes, (x, gy), (gw,))
    both = _kernel("matmul_backward_11", sizes, (x, w, gy), (gx, gw))
    case = _case(
        (x, w),
        (y,),
        (_at("n", 0, 0), _at("k", 0, 1), _at("m", 1, 1)),
        (Residual(x, "input"), Residual(w, "input", position=1)),
        forward,
        forward,
        (
            _backward((True, True), both, (0, 1), (0,)),
            _backward((True, False), left, (1,), (0,)),
            _backward((False, True), right, (0,), (0,)),
        ),
    )
    size = "int64_t n, int64_t k, int64_t m"
    in_x, in_w = "const double *x, int64_t x_s0", "const double *w, int64_t w_s0"
    calls = {
        "matmul_forward": f"{in_x}, {in_w}, double *y",
        "matmul_backward_10": f"{in_w}, const double *grad_y, double *grad_x",
        "matmul_backward_01": f"{in_x}, const double *grad_y, double *grad_w",
        "matmul_backward_11": f"{in_x}, {in_w}, const double *grad_y, double *grad_x,"
        " double *grad_w",
    }
    prototypes = [f"int {name}({size}, {rest}, void *workspace)" for name, rest in calls.items()]
    works = [f"int64_t {name}_workspace({size})" for name in calls]
    product = """\
    if (n && m && !k) for (int64_t i = 0; i < n*m; i++) y[i] = 0;
    double *copy = workspace;
    if (n && m && k) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j < k; j++) copy[i*k + j] = x[i*x_s0 + j];
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)m, (int)k, 1.0,
            copy, (int)k, w, (int)w_s0, 0.0, y, (int)m);
    }
"""
    grad_x = """\
    for (int64_t i = 0; i < n*k; i++) grad_x[i] = 0;
    if (n && m && k) cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)k, (int)m,
        1.0, grad_y, (int)m, w, (int)w_s0, 0.0, grad_x, (int)k);
"""
    grad_w = """\
    for (int64_t i = 0; i < k*m; i++) grad_w[i] = 0;
    if (n && m && k) cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)k, (int)m, (int)n,
        1.0, x, (int)x_s0, grad_y, (int)m, 0.0, grad_w, (int)m);
"""
    bodies = [product, grad_x, grad_w, grad_x + grad_w]
    c = '#include "cblas.h"\n#include "matmul.h"\n'
    for prototype, body in zip(prototypes, bodies, strict=True):
        c += f"\n{prototype}\n{{\n    (void)workspace;\n{body}    return 0;\n}}\n"
    c += "\n" + "".join(
        f"{one} {{ (void)m; return {'8*n*k' if 'forward' in one else '0*n*k'}; }}\n"
        for one in works
    )
    return Example(
        "Matmul", (case,), (True, True), c, _header("matmul", *prototypes, *works), blas=True
    )


def _pick() -> Example:
    """y[n], rest[n] = x[n, index[n]], x[n, 0]: an integer input, a status, two outputs.

    The gradient of ``index`` does not exist; ``rest`` is a residual of source "kernel" as well.
    """
    x, index = Array("x", "float32", ("n", "v")), Array("index", "int64", ("n",))
    y, first = Array("y", "float32", ("n",)), Array("first", "float32", ("n",))
    kept = Array("doubled", "int64", ("n",))
    gy, gf = Array("grad_y", "float32", ("n",)), Array("grad_first", "float32", ("n",))
    gx = Array("grad_x", "float32", ("n", "v"))
    statuses = (OUT_OF_RANGE,)
    inference = _kernel("pick_inference", ("n", "v"), (x, index), (y, first), statuses)
    forward = _kernel("pick_forward", ("n", "v"), (x, index), (y, first, kept), statuses)
    backward = _kernel("pick_backward", ("n", "v"), (kept, gy, gf), (gx,))
    case = _case(
        (x, index),
        (y, first),
        (_at("n", 0, 0), _at("v", 0, 1)),
        (Residual(kept, "kernel"),),
        inference,
        forward,
        (_backward((True, False), backward, (0,), (0, 1)),),
        ("v != 1",),
    )
    size = "int64_t n, int64_t v"
    prototypes = (
        f"int pick_inference({size}, const float *x, const int64_t *index, float *y, float *first,"
        " void *workspace)",
        f"int pick_forward({size}, const float *x, const int64_t *index, float *y, float *first,"
        " int64_t *doubled, void *workspace)",
        f"int pick_backward({size}, const int64_t *doubled, const float *grad_y,"
        " const float *grad_first, float *grad_x, void *workspace)",
        *(
            f"int64_t pick_{name}_workspace({size})"
            for name in ("inference", "forward", "backward")
        ),
    )
    loop = """\
    (void)workspace;
    for (int64_t i = 0; i < n; i++) {{
        if (index[i] < 0 || index[i] >= v) return 1;
        y[i] = x[i*v + index[i]];
        first[i] = x[i*v];{more}
    }}
    return 0;
"""
    scatter = """\
    (void)workspace;
    for (int64_t i = 0; i < n*v; i++) grad_x[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        grad_x[i*v + doubled[i]/2] += grad_y[i];
        grad_x[i*v] += grad_first[i];
    }
    return 0;
"""
    more = "\n        doubled[i] = 2*index[i];"
    bodies = (loop.format(more=""), loop.format(more=more), scatter)
    c = '#include "pick.h"\n'
    for prototype, body in zip(prototypes[:3], bodies, strict=True):
        c += f"\n{prototype}\n{{\n{body}}}\n"
    c += "".join(f"\n{one} {{ (void)n; (void)v; return 0; }}\n" for one in prototypes[3:])
    return Example("Pick", (case,), (True, False), c, _header("pick", *prototypes))


def _gated() -> Example:
    """The product x[:, :m]*x[:, m:] for x of 2*m columns, or 3*x[:, 0] where it has one column.

    Sizes called ``in`` and ``out``, one solved from ``2*in``; two cases; a gradient that is zero.
    """
    x, c = Array("x", "float64", ("out", "2*in_")), Array("c", "float64", ())
    y = Array("y", "float64", ("out", "in_"))
    gy, gx = Array("grad_y", "float64", y.dims), Array("grad_x", "float64", x.dims)
    sizes = ("out", "in_")
    forward = _kernel("gated_forward", sizes, (x,), (y,))
    backward = _kernel("gated_backward", sizes, (x, gy), (gx,))
    two = _case(
        (x, c),
        (y,),
        (_at("out", 0, 0), Binding("in_", input=0, axis=1, factor=2)),
        (Residual(x, "input"),),
        forward,
        forward,
        (_backward((True, True), backward, (0,), (0,), (1,)),),
        ("in_ != 0",),
    )
    one_x, one_y = (
        Array("x", "float64", ("out", "1")),
        Array("y", "float64", ("out", "1")),
    )
    one_gy, one_gx = (
        Array("grad_y", "float64", one_y.dims),
        Array("grad_x", "float64", one_x.dims),
    )
    triple = _kernel("gated_one_forward", ("out",), (one_x,), (one_y,))
    triple_back = _kernel("gated_one_backward", ("out",), (one_gy,), (one_gx,))
    one = _case(
        (one_x, c),
        (one_y,),
        (_at("out", 0, 0),),
        (),
        triple,
        triple,
        (_backward((True, True), triple_back, (), (0,), (1,)),),
    )
    size = "int64_t rows, int64_t half"
    prototypes = (
        f"int gated_forward({size}, const double *x, double *y, void *workspace)",
        f"int gated_backward({size}, const double *x, const double *grad_y, double *grad_x,"
        " void *workspace)",
        "int gated_one_forward(int64_t rows, const double *x, double *y, void *workspace)",
        "int gated_one_backward(int64_t rows, const double *grad_y, double *grad_x,"
        " void *workspace)",
    )
    bodies = (
        """\
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < half; j++) y[i*half + j] = x[2*i*half + j]*x[(2*i + 1)*half + j];
""",
        """\
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < half; j++) {
            grad_x[2*i*half + j] = grad_y[i*half + j]*x[(2*i + 1)*half + j];
            grad_x[(2*i + 1)*half + j] = grad_y[i*half + j]*x[2*i*half + j];
        }
""",
        "    for (int64_t i = 0; i < rows; i++) y[i] = 3*x[i];\n",
        "    for (int64_t i = 0; i < rows; i++) grad_x[i] = 3*grad_y[i];\n",
    )
    works = (
        f"int64_t gated_forward_workspace({size})",
        f"int64_t gated_backward_workspace({size})",
        "int64_t gated_one_forward_workspace(int64_t rows)",
        "int64_t gated_one_backward_workspace(int64_t rows)",
    )
    text = '#include "gated.h"\n'
    for prototype, body in zip(prototypes, bodies, strict=True):
        text += f"\n{prototype}\n{{\n    (void)workspace;\n{body}    return 0;\n}}\n"
    text += "".join(f"\n{w} {{ return 0*rows{'*half' if 'half' in w else ''}; }}\n" for w in works)
    return Example("Gated", (two, one), (True, True), text, _header("gated", *prototypes, *works))


def _keep() -> Example:
    """The numbers that ``double`` marks, and its negation: truth values, names from elsewhere."""
    x, mask = Array("in", "float32", ("λ",)), Array("double", "bool", ("λ",))
    y, negated = Array("y", "float32", ("λ",)), Array("β", "bool", ("λ",))
    gy, gx = Array("grad_y", "float32", ("λ",)), Array("grad_in", "float32", ("λ",))
    forward = _kernel("keep_forward", ("λ",), (x, mask), (y, negated))
    backward = _kernel("keep_backward", ("λ",), (mask, gy), (gx,))
    case = _case(
        (x, mask),
        (y, negated),
        (_at("λ", 0, 0),),
        (Residual(mask, "input", position=1),),
        forward,
        forward,
        (_backward((True, False), backward, (0,), (0,)),),
    )
    prototypes = (
        "int keep_forward(int64_t n, const float *x, const uint8_t *mask, float *y,"
        " uint8_t *negated, void *workspace)",
        "int keep_backward(int64_t n, const uint8_t *mask, const float *grad_y, float *grad_x,"
        " void *workspace)",
        "int64_t keep_forward_workspace(int64_t n)",
        "int64_t keep_backward_workspace(int64_t n)",
    )
    bodies = (
        "y[i] = mask[i] ? x[i] : 0.0f, negated[i] = !mask[i];",
        "grad_x[i] = mask[i] ? grad_y[i] : 0.0f;",
    )
    c = '#include "keep.h"\n'
    for prototype, body in zip(prototypes[:2], bodies, strict=True):
        loop = f"    for (int64_t i = 0; i < n; i++) {body}\n"
        c += f"\n{prototype}\n{{\n    (void)workspace;\n{loop}    return 0;\n}}\n"
    c += "".join(f"\n{one} {{ return 0*n; }}\n" for one in prototypes[2:])
    return Example("Keep", (case,), (True, False), c, _header("keep", *prototypes))


SOFTPLUS, MATMUL, PICK, GATED = _softplus(), _matmul(), _pick(), _gated()
KEEP = _keep()
ALL = (SOFTPLUS, MATMUL, PICK, GATED, KEEP)
