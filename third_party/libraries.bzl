"""The outside libraries: upstream label -> pkg-config module, per repository.

A library's label may be used in BUILD files once it stands here; with Bzlmod
the same label comes from the Bazel Central Registry (MODULE.bazel).
"""

load(":system_library.bzl", "system_library")

_ABSEIL = {
    "absl/algorithm:container": "absl_algorithm_container",
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
    "absl/types:optional": "absl_optional",
    "absl/types:span": "absl_span",
}

def openblas():
    system_library(
        name = "openblas",
        debian_package = "libopenblas-dev",
        targets = {":openblas": "openblas"},
    )

def openssl():
    system_library(
        name = "openssl",
        debian_package = "libssl-dev",
        targets = {":crypto": "libcrypto"},
    )

def openmpi():
    system_library(
        name = "openmpi",
        debian_package = "libopenmpi-dev openmpi-bin",
        # It loads parts of itself, so there are no archives.
        shared_only = True,
        targets = {":mpi": "ompi-c"},
    )

def system_libraries():
    """Every library but CUDA's, from the system's packages."""
    system_library(
        name = "com_google_absl",
        debian_package = "libabsl-dev",
        targets = _ABSEIL,
    )
    system_library(
        name = "com_google_googletest",
        debian_package = "libgtest-dev libgmock-dev",
        targets = {
            ":gtest": "gmock",  # upstream's :gtest holds GoogleMock too
            ":gtest_main": "gmock_main",
        },
    )
    system_library(
        name = "com_github_google_benchmark",
        debian_package = "libbenchmark-dev",
        targets = {
            ":benchmark": "benchmark",
            ":benchmark_main": "benchmark -lbenchmark_main",
        },
    )
    system_library(
        name = "highway",
        debian_package = "libhwy-dev",
        targets = {":hwy": "libhwy"},
    )
    system_library(
        name = "nlohmann_json",
        debian_package = "nlohmann-json3-dev",
        targets = {":json": "nlohmann_json"},
    )
    system_library(
        name = "zlib",
        debian_package = "zlib1g-dev",
        targets = {":zlib": "zlib"},
    )
    openblas()
    openmpi()
    openssl()
