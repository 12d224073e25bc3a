"""How code is compiled whose plain loops are to become vectors."""

# Not with a sanitizer: what it adds to an unrolled loop takes minutes to
# compile, and finds no more.
VECTOR_COPTS = select({
    "//:sanitized": [],
    "//conditions:default": ["-O3"],
})
