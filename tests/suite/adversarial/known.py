"""What symgrad answers falsely today, and what is right and UNDECIDED: program names by kind.

Strict: a program that is answered truly, or PROVED, must be taken out of here.  The aim is an
empty table.
"""

from __future__ import annotations

# families of drawn programs of which something false is said
OPEN_FAMILIES: tuple[str, ...] = (
    "witness",
    "null set",
    "removable",
    "question",
    "mask",
    "state",
    "literal",
    "spelling",
)

FALSE: dict[str, str] = {
    "null_sets": """
        LiteralFarAdds
        ProductMasked
        ProductNegates
        SumOfAllAdds
        SumOfAllDoubles
        SumOfSquaresIsZero
        SumOfSquaresDropped
        SandwichAdds
        NotStrictlyBetweenMasked
        NotStrictlyBetweenNegates
        SizeOfDropped
        SizeOfIsZero
        TwiceSizeAdds
        TwiceSizeDoubles
        ExpIsOneAdds
        AbsIsZeroMasked
        AbsIsZeroNegates
        FirstMasked
        FirstNegates
        FirstAndLastDropped
        FirstAndLastIsZero
        MaximumOfBothNegates
        MaximumOfBothMasked
        CoshIsZero
        CoshDropped
        ProdDoubles
        ProdAdds
        ReciprocalMasked
        ReciprocalNegates
        NormDropped
        NormIsZero
        TrigonometricAdds
        TrigonometricDoubles
        TwoLine
        WeighedLine
        TwoHyperbola
        WeighedHyperbola
        TwoCircle
        WeighedCircle
        TwoRatio
        WeighedRatio
        TwoInner
        WeighedInner
        TwoSumIsSize
        RowsRowSum
        RowsRowNorm
        RowsGram
        RowsSoftmax
        SincAtZero
        TanhOverX
        LogOverX
        VersineOverSquare
        XCothX
        DifferenceQuotient
        NormSquared
        RowsNormCubed
    """,
    "refutations": """
        LargeCancels
        CancelsExactly
        CumprodByQuotient
        SecondOrderAtOneSize
        SecondOrderOnNullSet
        SecondOrderDetachedAtOneSize
        PushedAtOneSize
        PushedAtOneIndex
    """,
    "witnesses": """
        LinearSizeCompared
        ExpSizeCompared
        TanhSizeQuotient
        CubeSizeQuotient
        ExpSizeQuotientOfReals
        SigmoidSizeQuotientOfReals
        SineSizeProductQuotient
        LinearSizeProductQuotient
        SigmoidSizeSign
        TanhSizeSign
        SquareIndexBothSides
        SineIndexBothSides
        TanhIndexQuotient
        CubeIndexQuotient
        ExpIndexQuotientOfReals
        SigmoidIndexQuotientOfReals
        SineIndexCompared
        LinearIndexCompared
        SigmoidIndexFromTheEnd
        TanhIndexFromTheEnd
        LinearIndexQuadratic
        ExpIndexQuadratic
        SquareIndexOfProduct
        SineIndexOfProduct
        TanhSizeAndIndex
        CubeSizeAndIndex
        ExpSizeModulo
        SigmoidSizeModulo
        MatrixRatio
        MatrixSum
        MatrixIndices
        MatrixIndexAndSize
        MatrixRowSum
        SizeInAddedTerm
        SizeInMean
        SizeUnbiased
        IndexOfCumsum
        IndexWeights
        ReciprocalOfSize
        LinspaceWeights
        FactorialLike
    """,
}

UNDECIDED: dict[str, str] = {
    "definedness": """
        DeclaredInside
    """,
    "demanding": """
        AsinhByOutput
        AtanByOutput
        ClampOfCosh
    """,
    "null_sets": """
        ImpossibleCosh
    """,
    "refutations": """
        HalfAngle
        ExpFar
        ProdByQuotient
    """,
}
