"""Every limit on work and search, with its unit: what symgrad may spend stands in one place.

A proof that meets a limit is UNDECIDED, a search that meets one ends with what it found: no limit
makes a verdict wrong.
"""

VERDICT_SECONDS = 30.0
"""Of processor time for one verdict, where nobody says otherwise."""
LONGEST_PIECE = 4
"""Of a loop over pieces: sizes of one piece, and of more, are judged one by one."""
VALIDATION_SECONDS, ORACLE_SECONDS = 60.0, 20.0
"""Of processor time to validate one emitted kernel, and to look for a wrong call of one."""
PROOF_SHARE = 0.8
"""Of the time that is left, for the judgement of one case: conditions are to be found as well."""
RESTING_WORK, RESTING_LEAST = 4, 2_000
"""For a proof without exceptions after one with some: times the work of that one, and beside it."""
LARGEST_TINY = 1e-5
"""Thresholds up to which the region that one leaves around 0 may be an exception."""
LARGEST_LIMIT = 1e-2
"""The same of thresholds of norms, and of the usual values of those that are arguments."""
OPEN_REGION_TERMS = 64
"""Terms of a difference of which it is looked for the conditions under which it is open."""
OPEN_REGION_CHARACTERS = 300
"""Of the text of a condition under which a difference is open."""
SURROGATE_SECONDS = 15.0
"""Of processor time, for what a refuted gradient is the derivative of."""
SURROGATE_NODES = 12
"""Nodes of forward whose derivatives are compared with backward."""
SURROGATE_SCALARS = 5
"""Numbers of backward that scale a surrogate."""
SURROGATE_WINDOWS = 8
"""Limits of a window that are tried where forward keeps its values."""
SURROGATE_PROOFS = 6
"""Surrogates that fit at a few points and are tried to be proved."""
CONDITION_SECONDS = 4.0
"""Of processor time, for conditions under which the refuted gradients of a case are right."""
LEAST_CONDITION_SECONDS = 2.0
"""Of these, for one gradient, however many there are."""
REPAIR_SECONDS = 8.0
"""Of processor time, for what is wrong with a gradient and for the proofs of what to write."""
WIDER_REPAIR_SECONDS = 4.0
"""Of processor time, for repairs that hold for other shapes, too, where the first do not."""
DECLARATION_SECONDS = 4.0
"""Of processor time, for the proof against a surrogate that is proposed."""
SLIP_SECONDS, MOST_SLIPS = 4.0, 600
"""Of processor time, for an edit of one token that makes backward right; how many are tried."""
CHECKED_WORK = 256
"""Steps of rewriting after which the time is looked at."""

# -- Work for normal forms, in steps of rewriting

NORMAL_FORM_WORK = 150_000
"""For one normal form, where nobody says otherwise."""
FIRST_NORMAL_FORM_WORK = 12_000
"""For the first normal form of a zero test, which is often enough."""
GRADIENT_WORK = 200_000
"""For one gradient."""
QUICK_PROOF_WORK = 6_000
"""For one normal form, before the next stage is tried."""
READER_WORK = 40
"""Steps for each node that reads the one whose adjoint is proved, where that is more."""
NEAR_PIECE_WORK = 4_000
"""For the normal form of one piece of which only the readers are unfolded."""
PIECE_WORK = 40_000
"""For the normal form of one piece."""
STEP_DEPTHS = ((0, False), (1, False), (1, True), (2, False), (4, False), (6, False), (2, True))
"""How many levels below two nodes are unfolded to prove them equal, one after the other.

True: maxima and other choices of forward, too, which make two pieces of all that reads them.
"""
NEAR_FAILURES = 3
"""Pieces that are not proved by their readers alone, before a proof step by step is tried."""
MOST_PARTS = 128
"""Parts of a joined axis that are told apart; one of more parts is taken as a whole."""
STEP_FAILURES = 24
"""Pairs of nodes in a row that are not proved equal, after which none are tried any more."""
STEP_POINTS = 3
"""Points at which nodes have the same values before it is tried to prove them equal."""
STEP_SCALES = (2.0, 8.0, 1 / 64)
"""Factors of such a point that make more of them."""
MATRIX_WORK = 6_000
"""For a question about one matrix."""
NULL_SET_FAILURES = 3
"""Boundaries on which a gradient is not proved, before those that are left are not tried."""
NULL_SET_WORK = 12_000
"""For a gradient where comparisons are at their boundaries."""
SUPPORT_WORK = 20_000
"""For what is to be shown of one threshold in a sorted row."""
POSITIVITY_WORK = 20_000
"""For one question about the sign of a value."""
DOMAIN_WORK = 5_000
"""For one condition of the domain."""
WORD_CHARACTERS = 4_000
"""Of the text of a normal form by which the user's words for a condition are found."""
DIGEST_WORK = 12_000
"""For one normal form; a side that takes more has no digest."""
REPAIR_WORK = 20_000
"""For one normal form of a repair: no more than a verdict may cost."""
REPAIR_TOTAL_WORK = 60_000
"""For all normal forms of a repair."""
SHORTER_FORM_WORK = 40_000
"""For the proof that a shorter form of the true gradient is one."""

# -- Evaluation of programs at points

REPAIR_NODES = 25_000
"""Nodes evaluated for one gradient before the search for a repair is given up."""
THRESHOLD_NODES = 40_000
"""Nodes that are evaluated for one line: fewer thresholds are found in larger programs."""
MOST_THRESHOLDS = 24
"""Thresholds of comparisons that points are drawn beside."""
MODE_CHOICES = 260
"""Choices of modes (any real, positive, ...) of the inputs until forward is finite."""
OTHER_SIZES, OTHER_MODES = 4, 2
"""Sizes beside one for each symbol, and modes of each, at which a point is looked for where the
first sizes have none."""
REDRAWS = 8
"""Points drawn until forward is defined and finite at one."""
MEETING_SIZES = 3
"""Choices of sizes for which an input is looked for that meets all that is demanded."""
MEETING_RUNS = 600
"""Points tried from one start of it."""
AUDIT_POINTS = 40
"""Random points at which an audit has to agree: with each, sizes that no other point has."""
AUDIT_TOTAL_WORK = 200_000
"""Elements that are computed at all points of an audit; beyond it, fewer points are enough."""
AUDIT_ATTEMPTS = 120
"""Points that an audit draws at most."""
AUDIT_WORK = 20_000
"""Elements that are computed at one point of an audit."""
ACCURACY_POINTS = 40_000
"""Points of a first sweep over the range of an elementwise kernel."""
ACCURACY_WORK = 30_000
"""Elements that are computed at one point of a kernel with reductions."""
SCALING_ELEMENTS = 20_000_000
"""Elements that are computed in one call whose time is measured on several threads."""
MOST_ELEMENTS = 4000
"""Elements of all inputs of a point together."""
SOUGHT_EXTENTS = (16_384, 400, 64, 24)
"""Up to which value one, two, three or four sizes are looked for that a case can have."""
SOUGHT_SIZES = 400
"""Choices of them that are tried."""
LEAST_SIZES = 24
"""Choices of the sizes that conditions speak of, and of the others, for a small point."""
SOUGHT_ELEMENTS = 16_384
"""Elements of all inputs of such a point together."""
LARGEST_BOUND = 4096
"""Of a size that conditions bound; beyond it is not looked for one."""
TRIED_SIZES = 4096
"""Choices of bounded sizes that are tried to show that a case has none."""
SCREEN_POINTS = 10
"""Points in double precision before anything is proved."""
PRECISE_POINTS = 3
"""Points with 60 digits beside a proof."""
MORE_POINTS = 40
"""Points where nothing could be proved."""
KEPT_ELEMENTS = 256
"""Elements of a point whose random numbers are kept for other cases."""
KEPT_EVALUATIONS = 32
"""Evaluations of a case at points, kept for whoever asks for the same again."""
FOUND_POINTS = 6
"""Points beside thresholds."""
CORNER_POINTS = 24
"""Points on thresholds of a backward."""
CORNER_DIRECTIONS = 3
"""Directions along which forward may have a corner at such a point."""
BOUNDARY_SHAPES = 6
"""Shapes at which points of a null set are solved for."""
BOUNDARY_NUMBERS = 200
"""Halves up to which one number for all elements is tried there."""
BOUNDARY_NODES = 200
"""Nodes of a Function that is evaluated at such points, in 150 digits."""
BOUNDARY_ELEMENTS = 12
"""Elements of a gradient that is looked at on a null set."""
THRESHOLD_LINES = 2
"""Lines along which thresholds are looked for."""
ROOTS_EACH = 4
"""Thresholds of one comparison on one line."""
MOST_NUMBERS = 6
"""Numbers of the code beyond which sizes are chosen."""
LARGEST_NUMBER = 600
"""The greatest of them."""

# -- Proof search

CLEARING_ROUNDS = 4
"""Times that a difference is multiplied with its denominators."""
STABLE_ROUNDS = 4
"""Times that a rewriting of conditions is repeated until nothing changes."""
LARGEST_AXIS = 16
"""Values of an index that are treated one by one."""
LONGEST_AXIS = 64
"""The same where nothing else proves a difference to be 0."""
AXIS_STRIDE = 8
"""Sums over parts of a longer axis begin at its multiples; what lies beside them is written out."""
LARGEST_OFFSET = 8
"""Difference of two indices for which an order relation becomes equalities."""
LARGEST_BOUNDARY = 3
"""Values beside 0 for which an order relation becomes equalities."""
LARGEST_REMAINDER = 4
"""What a size is divided by where each of its remainders is treated by itself."""
LARGEST_EXPONENT = 64
"""Exponent to which a sum is raised."""
LARGEST_SHIFT = 8
"""Multiple of an angle, or integer in the argument of a gamma function, that is taken apart."""
MOST_ENDS = 3
"""Bounded atoms that are put at an end of their range to find a sign."""
MOST_INSTANCES = 24
"""Places at which one stated relation is put to find one sign."""
MOST_SOLUTIONS = 12
"""Ways to solve stated equalities that are tried."""
MOST_MULTIPLES = 4
"""Numbers by which it is multiplied there."""
DIVISION_STEPS = 24
"""Terms of a quotient of two integer polynomials."""
QUOTIENT_STEPS = 64
"""Terms of a quotient of two sizes."""
BOUND_STEPS = 24
"""Atoms that are put at an end of their range to bound an integer polynomial."""
DEPTH_LIMIT = 90
"""How deep functions may be nested in each other."""
DEEPEST_DEFINITION = 16
"""How deep indices may be computed from indices."""
FACTORED_TERMS = 24
"""Terms of a polynomial that is factored."""
FACTORED_ATOMS = 8
"""Atoms of a polynomial that is factored."""
FACTORED_DEGREE = 12
"""Degree of a polynomial that is factored."""
MOST_LABELLINGS = 24
"""Labellings of bound axes that are compared."""
MOST_CONDITIONS = 4
"""Of more conditions in a body no pieces are made."""
MOST_RELATIONS = 12
"""Of more conditions in one monomial no triples are compared."""
POSITIVITY_TERMS = 40
"""Terms of a value whose sign is looked for."""
POSITIVITY_BOUNDS = 12
"""Bounds that are tried for one value."""
POSITIVITY_ROOTS = 8
"""Roots that are tried for one value."""
POSITIVITY_DEPTH = 3
"""How deep such questions nest."""
FAMILY_WORK = 20_000
"""For one obligation, over all sizes and indices."""
FAMILY_CASES = 64
"""Cases of indices and sizes that are told apart for one obligation."""
FAMILY_POINTS = 2048
"""Values of one size or index that are looked at one by one."""
LARGEST_DEGREE = 24
"""Of a polynomial of one size or index whose roots are wanted."""
EXCEPTIONAL_SIZES = 2
"""Choices of sizes that are looked at where an obligation may not hold."""
EXCEPTIONAL_EXTENT = 512
"""The greatest size among them."""
EXCEPTIONAL_TRIES = 3000
"""Sizes and indices that are tried to find them."""
EXCEPTIONAL_ELEMENTS = 4096
"""Products of such sizes with which a point is evaluated."""
WITNESS_TRIES = 12
"""Points tried as a witness of an obligation."""
ZERO_TRIES, ZERO_POSITIONS = 16, 4
"""Points and indices at which a value that is printed not to be 0 is computed."""
MOST_BRANCHES = 9
"""Ways to decide the comparisons of an element that are proved one by one."""
DOMAIN_CANDIDATES = 24
"""Conditions of the domain that are looked at."""
LONGEST_CONDITION = 40
"""Characters of a condition in terms of the inputs; longer ones are printed by the user's names."""
MOST_GUARDS = 4
"""Sets of conditions under which one value is read that are told apart."""
RANGE_DEPTH = 12
"""How far down a condition on one element is carried."""
MOST_KINKS = 6
"""Kinks and ties that a report prints."""
MOST_OUTPUTS = 10
"""Outputs of which every pattern of None is traced: 1022 patterns; most are quick."""

CONDITION_POINTS = 5
"""Shapes at which a condition that may make a gradient right is looked at."""
CONDITION_SCREEN = 3
"""Points in double precision before a gradient is judged under it, or a repair is."""
MOST_FOUND_CONDITIONS = 3
"""Such conditions that a report prints."""
LARGEST_NAMED_SIZE = 64
"""The greatest number of the code that may be a size."""
DEEP_CONTRACTIONS = 4
"""A forward with as many is proved by pieces first."""
DEEP_NODES = 80
"""A forward with as many nodes is, too."""
DEEPEST_INVERSE = 8
"""Products of matrices that are inverted factor by factor."""
WITNESS_INTEGERS = 4
"""Values of an integer in a witness, where its range is not known."""

# -- Search for repairs

REPAIR_CONSTANTS = 40
"""Nodes of forward that are tried as held constant."""
REPAIR_POINTS = 3
"""Points that guesses are tried on."""
REPAIR_SHAPES = 8
"""Choices of sizes that these points are looked for in."""
REPAIR_TERMS = 12
"""Terms of a gradient of which the sign of each is varied; a gradient of more terms has none."""
SLIP_TRIES = 60
"""Names that are exchanged in a line at which backward raises."""
REPAIR_EXTRAS = 4
"""Single changes outside of a return statement that are tried, each by itself."""
HIDDEN_COUNTEREXAMPLES = 16
"""Counterexamples with values that nearly agree, until the first of them is taken."""
PLAIN_GAP = 1e-3
"""Of a difference that a reader sees, relative to 1 and both values."""
REPAIR_LINES = 20
"""Lines of code of a repair; a longer one is not offered."""
DERIVED_LINES = 40
"""Lines of code of a true gradient that is printed where there is no repair."""
REPAIR_COLUMNS = 240
"""Characters of each of these lines."""
REPAIR_OFFERS = 3
"""Repairs that are proved for one gradient."""
VARIED_NODES = 40
"""Nodes of a backward that are varied."""
VARIED_FACTORS = 24
"""Factors that are tried at a node."""
VARIANTS_BUILT = 40
"""So many variants that fit at one point are built and tried at all."""
VARIED_SPREADS = 6
"""Ways to expand that are tried at a node."""
FACTOR_DEPTH = 4
"""Axes of a node; one of more axes is not multiplied by factors."""

# -- Formulas and pictures

FORMULA_LINES = 24
"""Lines of LaTeX of one gradient; of a longer formula nothing is shown."""
FORMULA_CHARACTERS = 8_000
"""Characters of these lines together."""
MOST_BOXES = 2000
"""Boxes of a picture; a larger graph is refused."""
CAREFUL_BOXES = 200
"""Boxes of one side that are laid out with care: for 300 that takes over a second."""

# -- Cases and shapes

MOST_PATHS = 1024
"""So many ways of a program that asks about its call (ten questions) are traced."""

MOST_ALIASES = 64
"""So many ways in which tensors of one call are one tensor are traced."""

MOST_STATE = 100_000
"""So many objects that a program reaches outside of its arguments are looked at."""

MOST_STATE_PATHS = 32
"""So many ways of a program that asks about state that calls change are traced."""

MOST_STATE_ROUNDS = 4
"""So often is a program traced again to find all that its calls change."""

MOST_EARLIER_CALLS = 64
"""So many traces begin in a state that a call with other arguments left."""

MOST_CASES = 64
"""Cases of sizes of one trace."""
MOST_SIZES_TRIED = 12
"""So many numbers, about, are put for sizes that forward seems not to accept."""
MOST_SIZES_LOOKED_AT = 1000
"""Of so many, at most, it is seen whether they are such sizes."""
MOST_OPTIONAL = 3
"""Optional tensors of which every subset is judged: 8 verdicts, each as long as the first."""
MOST_RANKS_APART = 4
"""Numbers of batch axes that a program may treat by themselves."""
FIRST_SHAPE_TRIALS, SHAPE_TRIALS = 100, 1200
"""Calls of forward to find shapes, before the class itself is run, and at most."""
TRIALS_AFTER_A_TRACE = 150
"""Trials after the first shapes that forward accepts, when there is something to be better."""
TRIAL_CASES = 6
"""Cases of sizes in a trial; where nothing is found with so few, the first trials get more."""
ATTEMPT_SECONDS, MOST_ATTEMPTS = 3.0, 1500
"""Of processor time, for shapes that are found by running the class; how many calls are made after
the one that came farthest."""
ATTEMPT_STEPS = 30_000
"""Steps of Python in one of these calls."""
ATTEMPT_MEMORY, ATTEMPT_WAIT = 1 << 30, 60.0
"""Bytes that they may take beside what the process has; seconds that they are waited for."""
SHAPE_STEPS = 16
"""Times that sizes of one trial are changed as errors say."""
OTHER_NUMBERS_SHARE = 0.5
"""Of the time that is left, for each of the other numbers in the place of a size."""
MOST_OTHER_SHAPES = 4
"""Other shapes that are judged: each takes as long as the first."""
MOST_TOGETHER, MOST_ELSEWHERE = 24, 48
"""Other values of plain arguments that are judged together, and all that are at other shapes."""
TOGETHER_SHARE = 0.3
"""Of the time that is left, for finding these."""
TENSOR_TRIALS = 48
"""Trials with a tensor where a plain value has been found: is there a gradient to judge?"""
ALL_MASKS_UP_TO = 3
"""So many differentiable inputs get a backward kernel for each set of wanted gradients."""

# -- Tracing and sg.jit

MOST_CONSTANTS = 4096
"""Numbers of an array that becomes constants of a trace; a larger one has to be an input."""
MOST_STEPS = 64
"""Steps of a loop of JAX's that are written out."""
MOST_FACTORS = 8
"""The largest exponent of a power that is written as products."""
LARGEST_DIVIDED = 4096
"""Number of which the divisors are tried, for the greatest one that a size has in common."""
COMPARED_RANKS = 2
"""Numbers of batch axes at which traces are compared with the any-rank trace."""
KEPT_DEPTH = 4
"""How deep tensors are looked for in lists and dicts that ctx keeps."""

MOST_UNROLLED = 64
"""A Jacobian of more rows (or columns) is not unrolled into a trace."""
MOST_TRACED_NODES = 4000
"""A larger graph would keep the C compiler busy for minutes: it is not compiled."""
MOST_PATTERNS = 64
"""A function that is called with more patterns of sizes runs eagerly on other ones."""
MOST_OBJECTS = 20_000
"""Objects that are searched for values that a function closes over."""
MOST_VERDICTS = 8192
"""Verdicts that are kept on disk, of a few kilobytes each."""
MOST_PLANS = 8192
"""Plans of eager operations that are kept."""
MOST_REGIONS = 8
"""Regions of a plain number, beside that of its default, in which a backward is judged."""
MOST_ANSWERS = 16
"""Times that a program is judged, under answers to what it asks of plain numbers."""
MOST_NAMINGS = 5
"""Choices of stated numbers for all values of which a repair is looked for."""
MOST_ARGUMENT_VALUES, MOST_COMBINATIONS = 8, 4
"""Other values of a plain argument that are judged; combinations of such values of several."""
MOST_READY = 4096
"""Calls of one compiled function whose kernels are found at once."""
MOST_WRITE_PLANS = 2048
"""Plans of views, and plans of writes through views, that are kept."""
MOST_UPDATE_KERNELS = 256
"""Kernels of optimizers that are kept."""
DEEPEST_VALUE = 16
"""Levels of tuples, lists and dicts that are searched for plain values: one may hold itself."""
CUSTOM_OP_POINTS = 160
"""Points at which the C of a custom op is compared with its meaning and its derivative."""

# -- Refutations run by another library

REPLAY_SECONDS = 20
"""Processor time of a real call, with its difference quotients, of a refuted Function."""
REPLAY_REST, REPLAY_WAIT = 60.0, 600.0
"""Seconds without processor time, and in all, after which a real call is ended that waits."""
REPLAY_MEMORY = 2 << 30
"""Bytes that a real call may take beside what the process has."""

# -- Kernels and their wrappers

COLLAPSE_ROUNDS = 8
"""Times that pairs of axes are merged in one kernel."""
MOST_INDEX_ATOMS = 24
"""Atoms of an index expression that is put into others; of a larger one the node is stored."""
MOST_STRAIGHT_MASKS = 8
"""Sets of wanted gradients with code of their own in a wrapper; others take the careful path."""
