"""ONNX in BUILD files: tests that compare with onnxruntime, if python3 finds it."""

load("@local_onnx//:found.bzl", "FOUND")

# target_compatible_with = ONNX_ONLY, tags = ONNX_TAGS: `bazel test //...` skips the
# target where onnxruntime is missing, and tools/count_tests.py says why.
ONNX_ONLY = [] if FOUND else ["//third_party:never"]

ONNX_TAGS = ["needs:Python's numpy, onnx, onnxruntime and safetensors"]
