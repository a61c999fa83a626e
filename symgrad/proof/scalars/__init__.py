"""What ops mean as functions of scalars: sympy bodies and partials, literals, declared functions.

The normal form and the oracle both stand on it; they do not see each other.
"""
