"""A program to its loops.

``items``: what is to be done; ``order``: of the axes; ``loops``: the loop tree, a longest path;
``rematerialise``: what is kept rather than computed again; ``scheduler`` drives these.  Then
``storage``: where values live; ``rows``: which loops run as one; ``interchange``: for short rows.
"""
