"""The outside libraries: upstream label -> pkg-config module, per repository.

A library's label may be used in BUILD files once it stands here; with Bzlmod
the same label comes from the Bazel Central Registry (MODULE.bazel).
"""

load(":system_library.bzl", "system_library")

_ABSEIL = {
    "absl/algorithm:algorithm": "absl_algorithm",
    "absl/algorithm:container": "absl_algorithm_container",
    "absl/base:base": "absl_base",
    "absl/base:config": "absl_config",
    "absl/base:core_headers": "absl_core_headers",
    "absl/base:log_severity": "absl_log_severity",
    "absl/base:no_destructor": "absl_no_destructor",
    "absl/base:nullability": "absl_nullability",
    "absl/cleanup:cleanup": "absl_cleanup",
    "absl/container:btree": "absl_btree",
    "absl/container:fixed_array": "absl_fixed_array",
    "absl/container:flat_hash_map": "absl_flat_hash_map",
    "absl/container:flat_hash_set": "absl_flat_hash_set",
    "absl/container:inlined_vector": "absl_inlined_vector",
    "absl/container:node_hash_map": "absl_node_hash_map",
    "absl/container:node_hash_set": "absl_node_hash_set",
    "absl/debugging:failure_signal_handler": "absl_failure_signal_handler",
    "absl/debugging:leak_check": "absl_leak_check",
    "absl/debugging:stacktrace": "absl_stacktrace",
    "absl/debugging:symbolize": "absl_symbolize",
    "absl/flags:config": "absl_flags_config",
    "absl/flags:flag": "absl_flags",
    "absl/flags:marshalling": "absl_flags_marshalling",
    "absl/flags:parse": "absl_flags_parse",
    "absl/flags:reflection": "absl_flags_reflection",
    "absl/flags:usage": "absl_flags_usage",
    "absl/functional:any_invocable": "absl_any_invocable",
    "absl/functional:bind_front": "absl_bind_front",
    "absl/functional:function_ref": "absl_function_ref",
    "absl/hash:hash": "absl_hash",
    "absl/log:absl_check": "absl_absl_check",
    "absl/log:absl_log": "absl_absl_log",
    "absl/log:check": "absl_check",
    "absl/log:globals": "absl_log_globals",
    "absl/log:initialize": "absl_log_initialize",
    "absl/log:log": "absl_log",
    "absl/memory:memory": "absl_memory",
    "absl/meta:type_traits": "absl_type_traits",
    "absl/numeric:bits": "absl_bits",
    "absl/numeric:int128": "absl_int128",
    "absl/random:bit_gen_ref": "absl_random_bit_gen_ref",
    "absl/random:distributions": "absl_random_distributions",
    "absl/random:random": "absl_random_random",
    "absl/random:seed_sequences": "absl_random_seed_sequences",
    "absl/status:status": "absl_status",
    "absl/status:statusor": "absl_statusor",
    "absl/strings:cord": "absl_cord",
    "absl/strings:str_format": "absl_str_format",
    "absl/strings:string_view": "absl_string_view",
    "absl/strings:strings": "absl_strings",
    "absl/synchronization:synchronization": "absl_synchronization",
    "absl/time:time": "absl_time",
    "absl/types:any": "absl_any",
    "absl/types:compare": "absl_compare",
    "absl/types:optional": "absl_optional",
    "absl/types:span": "absl_span",
    "absl/types:variant": "absl_variant",
    "absl/utility:utility": "absl_utility",
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
