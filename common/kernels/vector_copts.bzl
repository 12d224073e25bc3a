"""How code is compiled whose plain loops the compiler must vectorise."""

# Not with a sanitizer: its additions to an unrolled loop take minutes to compile, and
# find no more.
VECTOR_COPTS = select({
    "//:sanitized": [],
    "//conditions:default": ["-O3"],
})
