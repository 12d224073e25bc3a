"""How code is compiled whose plain loops the compiler must vectorise."""

# "-O2 -ftree-vectorize -fvect-cost-model=dynamic" compiles in a tenth less time (GCC 12),
# and makes tanh fifty times as slow, and sums and maxima up to twice.
# Not with a sanitizer: its additions to an unrolled loop take minutes to compile, and
# find no more.
VECTOR_COPTS = select({
    "//:sanitized": [],
    "//conditions:default": ["-O3"],
})
