"""A schedule to C text.

``kernel`` writes one C function, ``file`` the file around several.  ``outer`` and ``groups`` write
the parallel loops, ``nests`` those inside, ``scalars`` what is computed in them.
"""
