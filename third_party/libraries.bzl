"""The outside libraries: upstream label -> pkg-config module, per repository.

A library's label may be used in BUILD files once it stands here; with Bzlmod
the same label comes from the Bazel Central Registry (MODULE.bazel).
"""

load(":system_library.bzl", "system_library")

_ABSEIL = {
    "absl/base:core_headers": "absl_core_headers",
    "absl/cleanup:cleanup": "absl_cleanup",
    "absl/container:flat_hash_map": "absl_flat_hash_map",
    "absl/container:flat_hash_set": "absl_flat_hash_set",
    "absl/container:inlined_vector": "absl_inlined_vector",
    "absl/flags:flag": "absl_flags",
    "absl/flags:parse": "absl_flags_parse",
    "absl/flags:reflection": "absl_flags_reflection",
    "absl/flags:usage": "absl_flags_usage",
    "absl/functional:function_ref": "absl_function_ref",
    "absl/numeric:int128": "absl_int128",
    "absl/status:status": "absl_status",
    "absl/status:statusor": "absl_statusor",
    "absl/strings:str_format": "absl_str_format",
    "absl/strings:strings": "absl_strings",
    "absl/types:span": "absl_span",
}

# Repository: Debian's package, and its targets.
_LIBRARIES = {
    "com_google_absl": ("libabsl-dev", _ABSEIL),
    "com_google_googletest": ("libgtest-dev libgmock-dev", {
        ":gtest": "gmock",  # upstream's :gtest holds GoogleMock too
        ":gtest_main": "gmock_main",
    }),
    "com_github_google_benchmark": ("libbenchmark-dev", {
        ":benchmark": "benchmark",
        ":benchmark_main": "benchmark -lbenchmark_main",
    }),
    "highway": ("libhwy-dev", {":hwy": "libhwy"}),
    "nlohmann_json": ("nlohmann-json3-dev", {":json": "nlohmann_json"}),
    "openblas": ("libopenblas-dev", {":openblas": "openblas"}),
    "openmpi": ("libopenmpi-dev openmpi-bin", {
        # Without Open MPI's C++ bindings, which it does not link: unoptimised
        # code refers to them as soon as the header declares them.
        ":mpi": "ompi-c -DOMPI_SKIP_MPICXX",
    }),
    "zlib": ("zlib1g-dev", {":zlib": "zlib"}),
}

def system_libraries(names = _LIBRARIES.keys()):
    """These libraries, or every one but CUDA's, from the system's packages."""
    for name in names:
        package, targets = _LIBRARIES[name]
        system_library(
            name = name,
            debian_package = package,
            # The library loads parts of itself, so there are no archives.
            shared_only = name == "openmpi",
            targets = targets,
        )
