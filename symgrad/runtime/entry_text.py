"""The C of ``entry`` that is the same for every op."""

from __future__ import annotations

ENTRY = """
/* -- calls of Python */

#if !defined(PYPY_VERSION) && !defined(Py_GIL_DISABLED) \\
    && (!defined(Py_LIMITED_API) || Py_LIMITED_API + 0 >= 0x030a0000)
#include <stdarg.h>
#include <string.h>

/* An array of NumPy, and what makes one, as NumPy's ABI has them: none of its headers is needed. */
struct symgrad_array {
    PyObject_HEAD
    void *data;
    int nd;
    Py_ssize_t *dims, *strides;
    PyObject *base, *dtype;
    int flags;
};
typedef PyObject *symgrad_make(
    PyObject *type, PyObject *dtype, int nd, const Py_ssize_t *dims, const Py_ssize_t *strides,
    void *data, int flags, PyObject *object);

/* C-contiguous, aligned; writeable as well, and no warning comes with it. */
#define SYMGRAD_IS_PACKED 0x1
#define SYMGRAD_IS_ALIGNED 0x100
#define SYMGRAD_READ 0x101
#define SYMGRAD_WRITE 0x501
#define SYMGRAD_WARN 0x80000000u
#define SYMGRAD_MOST 64
#define SYMGRAD_BLOCK 8192
#define SYMGRAD_ALIGNED __attribute__((aligned(64)))
#define SYMGRAD_OWNED __attribute__((cleanup(symgrad_let_go))) /* let go of where its scope ends */

static PyObject *symgrad_type, *symgrad_pack, *symgrad_leased, *symgrad_dtypes[%(dtypes)d];
static symgrad_make *symgrad_new;

struct symgrad_axes { int count; const Py_ssize_t *dims; };

static inline PyObject *symgrad_again(PyObject *value) { Py_XINCREF(value); return value; }
static void symgrad_let_go(PyObject **value) { Py_XDECREF(*value); }
static inline PyObject *symgrad_none(PyObject *out) { return out == Py_None ? 0 : out; }

/* An array of a dtype that lies as kernels read it, else 0. */
static inline struct symgrad_array *symgrad_read(PyObject *value, int dtype)
{
    struct symgrad_array *const array = (struct symgrad_array *)value;
    return (PyObject *)Py_TYPE(value) == symgrad_type && array->dtype == symgrad_dtypes[dtype]
        && (array->flags & SYMGRAD_READ) == SYMGRAD_READ ? array : 0;
}

/* The same, of elements of so many bytes; axes in the mask may have any step that is no less than
   all behind the last one of these. */
static struct symgrad_array *symgrad_rows(PyObject *value, int dtype, uint64_t mask, int64_t bytes)
{
    struct symgrad_array *const array = (struct symgrad_array *)value;
    if ((PyObject *)Py_TYPE(value) != symgrad_type || array->dtype != symgrad_dtypes[dtype]
        || !(array->flags & SYMGRAD_IS_ALIGNED)) return 0;
    if (array->flags & SYMGRAD_IS_PACKED) return array;
    int64_t usual = 1, least = 0;
    for (int i = array->nd; i-- > 0; usual *= array->dims[i]) {
        const int64_t step = array->strides[i]/bytes;
        const int is_free = mask >> i & 1;
        if (is_free && !least) least = usual;
        if (array->strides[i] %% bytes) return 0;
        if (array->dims[i] > 1 && (is_free ? step < least : step != usual)) return 0;
    }
    return array;
}

/* The same, or a small packed copy, which own holds.  Where out is given Python has to look whether
   it overlaps what is copied. */
static struct symgrad_array *symgrad_taken(
    PyObject *value, int dtype, uint64_t mask, int64_t bytes, PyObject *out, PyObject **own)
{
    struct symgrad_array *const found = symgrad_rows(value, dtype, mask, bytes);
    const struct symgrad_array *const array = (struct symgrad_array *)value;
    if (found || out != Py_None || (PyObject *)Py_TYPE(value) != symgrad_type
        || array->dtype != symgrad_dtypes[dtype]) return found;
    for (int i = 0; i < array->nd; i++) bytes *= array->dims[i];
    if (bytes >= %(large)d) return 0;
    *own = PyObject_CallMethodObjArgs(value, symgrad_pack, NULL);
    if (*own) return symgrad_read(*own, dtype);
    PyErr_Clear();
    return 0;
}

/* The step along an axis, in elements of so many bytes; usual: that of an array that is packed. */
static inline int64_t symgrad_step(
    const struct symgrad_array *array, int axis, int64_t usual, int64_t bytes)
{
    return array->flags & SYMGRAD_IS_PACKED || array->dims[axis] < 2 ? usual
        : array->strides[axis]/bytes;
}

static inline int symgrad_has(const struct symgrad_array *array, int nd, const Py_ssize_t *dims)
{
    if (array->nd != nd) return 0;
    for (int i = 0; i < nd; i++) if (array->dims[i] != dims[i]) return 0;
    return 1;
}

/* Is it None, or an array of a dtype and a shape? */
static int symgrad_is_none_or(PyObject *value, int dtype, int nd, const Py_ssize_t *dims)
{
    if (value == Py_None) return 1;
    struct symgrad_array *const array = (struct symgrad_array *)value;
    return (PyObject *)Py_TYPE(value) == symgrad_type && array->dtype == symgrad_dtypes[dtype]
        && symgrad_has(array, nd, dims);
}

static PyObject *symgrad_tuple_of(struct symgrad_axes axes)
{
    PyObject *result = PyTuple_New(axes.count);
    for (int i = 0; result && i < axes.count; i++) {
        PyObject *const item = PyLong_FromSsize_t(axes.dims[i]);
        if (item) PyTuple_SetItem(result, i, item);
        else { Py_DECREF(result); result = 0; }
    }
    return result;
}

/* An array over memory that large arrays use again.  0 where there is not so much; an error is set
   only where Python was interrupted. */
static PyObject *symgrad_large(int dtype, int nd, const Py_ssize_t *dims)
{
    PyObject *const shape = symgrad_tuple_of((struct symgrad_axes){nd, dims});
    PyObject *const array = shape
        ? PyObject_CallFunctionObjArgs(symgrad_leased, shape, symgrad_dtypes[dtype], NULL) : 0;
    Py_XDECREF(shape);
    if (!array && PyErr_ExceptionMatches(PyExc_MemoryError)) PyErr_Clear();
    return array;
}

static PyObject *symgrad_small(int dtype, int nd, const Py_ssize_t *dims)
{
    PyObject *const type = symgrad_again(symgrad_dtypes[dtype]);
    PyObject *const array = symgrad_new((PyObject *)symgrad_type, type, nd, dims, 0, 0, 0, 0);
    if (!array) PyErr_Clear();
    return array;
}

/* A given array, or a new one of so many bytes where none is given; 0 where it is no such array. */
static PyObject *symgrad_write(
    PyObject *given, int dtype, int nd, const Py_ssize_t *dims, int64_t bytes)
{
    if (given) {
        const struct symgrad_array *const array = symgrad_read(given, dtype);
        return array && (array->flags & SYMGRAD_WRITE) == SYMGRAD_WRITE
            && !((unsigned)array->flags & SYMGRAD_WARN) && symgrad_has(array, nd, dims)
            ? symgrad_again(given) : 0;
    }
    for (int i = 0; i < nd; i++) if (dims[i] < 0) return 0;
    return bytes >= %(large)d ? symgrad_large(dtype, nd, dims) : symgrad_small(dtype, nd, dims);
}

static void symgrad_clear(PyObject *array, int64_t bytes)
{
    if (bytes > 0) memset(((struct symgrad_array *)array)->data, 0, (size_t)bytes);
}

/* Is it None or a tuple of so many? */
static inline int symgrad_is_out(PyObject *out, Py_ssize_t count)
{
    return out == Py_None || (PyTuple_CheckExact(out) && PyTuple_Size(out) == count);
}

static inline PyObject *symgrad_out(PyObject *out, Py_ssize_t place)
{
    return out == Py_None ? 0 : PyTuple_GetItem(out, place);
}

static int symgrad_real(PyObject *value, double *number)
{
    if (!PyFloat_CheckExact(value)) return 0;
    *number = PyFloat_AsDouble(value);
    return 1;
}

static int symgrad_whole(PyObject *value, int64_t *number)
{
    int overflow = 1;
    if (PyLong_CheckExact(value)) *number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

/* A size, or -1. */
static int64_t symgrad_size(PyObject *value)
{
    int64_t size;
    return symgrad_whole(value, &size) && size >= 0 ? size : -1;
}

/* The size of which an extent is a multiple and an offset more, or -1. */
static inline int64_t symgrad_solved(int64_t extent, int64_t factor, int64_t offset)
{
    const int64_t multiple = extent - offset;
    return multiple < 0 || multiple %% factor ? -1 : multiple/factor;
}

/* The number of elements of these axes, or -1 where it or an axis is more than most. */
static int64_t symgrad_count(const struct symgrad_axes *axes, int64_t most)
{
    int64_t count = 1;
    for (int i = 0; i < axes->count; i++) {
        const int64_t extent = axes->dims[i];
        if (extent < 0 || extent > most || (extent && count > most/extent)) return -1;
        count *= extent;
    }
    return count;
}

static int symgrad_same(struct symgrad_axes a, struct symgrad_axes b)
{
    if (a.count != b.count) return 0;
    for (int i = 0; i < a.count; i++) if (a.dims[i] != b.dims[i]) return 0;
    return 1;
}

/* Write axes behind others; return how many there are then. */
static inline int symgrad_append(Py_ssize_t *dims, int nd, struct symgrad_axes axes)
{
    for (int i = 0; i < axes.count; i++) dims[nd + i] = axes.dims[i];
    return nd + axes.count;
}

/* Read the axes in a tuple; return how many, or -1 where it is something else. */
static int symgrad_axes_of(PyObject *value, Py_ssize_t *dims)
{
    const Py_ssize_t count = PyTuple_CheckExact(value) ? PyTuple_Size(value) : -1;
    if (count > SYMGRAD_MOST) return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if ((dims[i] = (Py_ssize_t)symgrad_size(PyTuple_GetItem(value, i))) < 0) return -1;
    return (int)count;
}

/* A tuple of so many objects, which it takes; 0 where one is 0. */
static PyObject *symgrad_tuple(int count, ...)
{
    PyObject *result = PyTuple_New(count);
    va_list items;
    va_start(items, count);
    for (int i = 0; i < count; i++) {
        PyObject *const item = va_arg(items, PyObject *);
        if (result && item) PyTuple_SetItem(result, i, item);
        else { Py_XDECREF(item); Py_XDECREF(result); result = 0; }
    }
    va_end(items);
    if (!result) PyErr_Clear();
    return result;
}

/* The residuals of a kind that hold what is in a tuple. */
static PyObject *symgrad_kept(PyObject *kind, PyObject *items)
{
    const newfunc make = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    PyObject *const args = items ? PyTuple_Pack(1, items) : 0;
    PyObject *const result = args ? make((PyTypeObject *)kind, args, 0) : 0;
    Py_XDECREF(args);
    Py_XDECREF(items);
    if (!result) PyErr_Clear();
    return result;
}

/* Let go of everything: Python makes the call. */
static PyObject *symgrad_drop(int count, PyObject **made, PyObject *kept)
{
    for (int i = 0; i < count; i++) Py_XDECREF(made[i]);
    Py_XDECREF(kept);
    return 0;
}

/* The first arrays, one or a tuple, and what is kept with them; the other arrays are kept alone. */
static PyObject *symgrad_results(int outputs, int count, PyObject **made, PyObject *kept)
{
    PyObject *result = made[0];
    for (int i = outputs; i < count; i++) Py_DECREF(made[i]);
    if (outputs > 1) {
        result = PyTuple_New(outputs);
        if (!result) PyErr_Clear();
        if (!result) return symgrad_drop(outputs, made, kept);
        for (int i = 0; i < outputs; i++) PyTuple_SetItem(result, i, made[i]);
    }
    return kept ? symgrad_tuple(2, result, kept) : result;
}

/* The gradients that are wanted, a bit for each; -1 for what is no tuple of True and False. */
static int64_t symgrad_mask(PyObject *needs, Py_ssize_t count, int64_t all)
{
    if (needs == Py_None) return all;
    if (!PyTuple_CheckExact(needs) || PyTuple_Size(needs) != count) return -1;
    int64_t mask = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *const one = PyTuple_GetItem(needs, i);
        if (one == Py_True) mask |= INT64_C(1) << i;
        else if (one != Py_False) return -1;
    }
    return mask;
}
"""

MODULE = """
/* Tensors, out, and numbers? */
static int symgrad_is_call(PyObject *const *args, Py_ssize_t count)
{
    return count == 2 + (%(numbers)d > 0)
        && PyTuple_CheckExact(args[0]) && PyTuple_Size(args[0]) == %(inputs)d
        && (count == 2 || (PyTuple_CheckExact(args[2]) && PyTuple_Size(args[2]) == %(numbers)d));
}

/* What was found, or None, with which Python makes the call; 0 where it was interrupted. */
static PyObject *symgrad_answer(PyObject *found)
{
    return found || PyErr_Occurred() ? found : symgrad_again(Py_None);
}

static PyObject *symgrad_call_i(PyObject *kinds, PyObject *const *args, Py_ssize_t count)
{
    PyObject *found = 0;
    if (!symgrad_is_call(args, count)) return symgrad_again(Py_None);
    PyObject *const numbers = count == 3 ? args[2] : 0;
    (void)kinds; (void)numbers;
%(inference)s
    return symgrad_answer(found);
}

static PyObject *symgrad_call_f(PyObject *kinds, PyObject *const *args, Py_ssize_t count)
{
    PyObject *found = 0;
    if (!symgrad_is_call(args, count)) return symgrad_again(Py_None);
    PyObject *const numbers = count == 3 ? args[2] : 0;
    (void)kinds; (void)numbers;
%(forward)s
    return symgrad_answer(found);
}

static PyObject *symgrad_call_b(PyObject *kinds, PyObject *const *args, Py_ssize_t count)
{
    PyObject *found = 0;
    if (count != 4 || !PyTuple_CheckExact(args[1]) || PyTuple_Size(args[1]) != %(outputs)d)
        return symgrad_again(Py_None);
    PyObject *const kind = (PyObject *)Py_TYPE(args[0]);
    const int64_t mask = symgrad_mask(args[2], %(inputs)d, %(all)s);
%(backward)s
    return symgrad_answer(found);
}

static PyMethodDef symgrad_calls[] = {
    {"inference", (PyCFunction)(void (*)(void))symgrad_call_i, METH_FASTCALL, 0},
    {"forward", (PyCFunction)(void (*)(void))symgrad_call_f, METH_FASTCALL, 0},
    {"backward", (PyCFunction)(void (*)(void))symgrad_call_b, METH_FASTCALL, 0}};

/* The three functions, for classes of what is kept; None where NumPy is another than is known. */
static PyObject *symgrad_bind(PyObject *module, PyObject *args)
{
    PyObject *capsule, *type, *dtypes, *kinds, *leased;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOO", &capsule, &type, &dtypes, &kinds, &leased)) return 0;
    void *const *const api = PyCapsule_GetPointer(capsule, 0);
    if (!api) return 0;
    const unsigned version = ((unsigned (*)(void))api[0])() >> 24;
    if (version < 1 || version > 2 || api[2] != (void *)type) return symgrad_again(Py_None);
    symgrad_new = (symgrad_make *)api[94];
    symgrad_type = symgrad_again(type);
    symgrad_leased = symgrad_again(leased);
    symgrad_pack = PyUnicode_InternFromString("copy");
    if (!symgrad_pack) return 0;
    for (int i = 0; i < (int)(sizeof symgrad_dtypes/sizeof *symgrad_dtypes); i++)
        symgrad_dtypes[i] = symgrad_again(PyTuple_GetItem(dtypes, i));
    return symgrad_tuple(
        3, PyCFunction_NewEx(&symgrad_calls[0], kinds, 0),
        PyCFunction_NewEx(&symgrad_calls[1], kinds, 0),
        PyCFunction_NewEx(&symgrad_calls[2], kinds, 0));
}

/* What is seen of an array: its address, its flags, its strides, and a new one of its dtype and
   shape. */
static PyObject *symgrad_seen(PyObject *module, PyObject *value)
{
    const struct symgrad_array *const array = (struct symgrad_array *)value;
    (void)module;
    return symgrad_tuple(
        4, PyLong_FromVoidPtr(array->data), PyLong_FromLong(array->flags & SYMGRAD_WRITE),
        symgrad_tuple_of((struct symgrad_axes){array->nd, array->strides}),
        symgrad_new(symgrad_type, symgrad_again(array->dtype), array->nd, array->dims, 0, 0, 0, 0));
}

static PyMethodDef symgrad_methods[] = {
    {"bind", symgrad_bind, METH_VARARGS, 0}, {"seen", symgrad_seen, METH_O, 0}, {0, 0, 0, 0}};
static PyModuleDef_Slot symgrad_slots[] = {{0, 0}};
static struct PyModuleDef symgrad_module = {
    PyModuleDef_HEAD_INIT, "%(module)s_entry", 0, 0, symgrad_methods, symgrad_slots, 0, 0, 0};

PyMODINIT_FUNC PyInit_%(module)s_entry(void) { return PyModuleDef_Init(&symgrad_module); }
#endif
"""
