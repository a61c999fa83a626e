"""What symgrad does not decide yet, in one place, each with its reason.

``UNDECIDED``: cases by name that are answered UNDECIDED although the corpus knows the answer.
``CONDITION_NOT_FOUND``: wrong backwards whose saving condition is not printed.  The tests fail
as soon as an entry is no longer needed; a wrong verdict is never excused here.
"""

UNDECIDED: dict[str, str] = {
    "StackAxis": "it splits an axis of unknown length, which is not traced",
    "MaskedLogSumExp": "an infinity in a row that a mask leaves out meets the shift of logsumexp",
}

CONDITION_NOT_FOUND: dict[str, str] = {
    "GreatestSplitNearly": "at m == 1 its comparison `x >= max(x) - 0.5` is not seen to hold",
}
