"""The normal form: polynomials over interned atoms, in which equal expressions get equal terms.

In: index notation (``symgrad.ir.expr``) and declared facts.  Out: polynomials, a zero test, and
what the test relied on.
"""
