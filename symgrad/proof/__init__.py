"""Is the backward right?  ``verify`` takes a traced Function and returns a report.

From the top: ``second`` judges the derivative of a backward, ``repair`` looks for what was meant,
``judge`` decides on one gradient, ``words`` writes nodes and polynomials as text, ``report`` holds
what is said.  Below stand two witnesses that do not see each other: ``normal``, the exact normal
form, and ``oracle``, values and difference quotients at points.  Both read ``scalars``.
"""
