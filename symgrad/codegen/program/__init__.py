"""A graph as definitions in index notation.

``equations`` puts each node in index notation, ``axes`` finds the loops that are the same,
``materialise`` chooses what becomes an array, ``joined`` makes one sum of those over the places of
a window, ``definitions`` makes the program of a kernel of it, ``collapse`` makes one axis of those
that always go together, ``termwise`` takes sums apart that others would have to wait for, and
``factored`` multiplies first, in a derived gradient, what varies over fewer axes.
"""
