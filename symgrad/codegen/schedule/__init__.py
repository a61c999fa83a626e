"""A program to its loops.

``items``: what is to be done; ``shifted``: contractions that no BLAS takes; ``loops``: the loop
tree, a longest path; ``rematerialise``: what is kept rather than computed again; ``scheduler``
finds the order of the axes and drives these.  Then ``storage``: where values live; ``rows``: which
loops run as one; ``borders``: rows with ends of another kind; ``strips``: sums for several places
of an axis at once; ``interchange``: for short rows.
"""
