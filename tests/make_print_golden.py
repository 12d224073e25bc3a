#!/usr/bin/env python3
"""Writes common/ops/print_golden.json: tensors, and what PyTorch prints for them.

Usage, with PyTorch from PyPI in a virtual environment:

  python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
  /tmp/torch/bin/python tests/make_print_golden.py > common/ops/print_golden.json

PyTorch leaves out the device of a CPU tensor; here a tensor always names it.
So PyTorch is told that its default device is another one, and that a CPU
device is called cpu:0; the layout of the text is PyTorch's own.
"""
import json
import math
import sys

import torch


def name_the_device():
    original = torch._tensor_str._add_suffixes

    def add_suffixes(text, suffixes, indent, force_newline):
        named = ["device='cpu:0'" if s == "device='cpu'" else s for s in suffixes]
        return original(text, named, indent, force_newline)

    torch._tensor_str._add_suffixes = add_suffixes
    torch._C._get_default_device = lambda: "cuda"


def cases():
    nan, inf = math.nan, math.inf
    f32, f64, i64, u8 = torch.float32, torch.float64, torch.int64, torch.uint8
    torch.manual_seed(1)
    yield "one", torch.ones(1)
    yield "notebook", torch.full((1, 2), 3.0)
    yield "0-d integer", torch.tensor(3.0)
    yield "0-d fraction", torch.tensor(0.5)
    yield "0-d small", torch.tensor(1e-5)
    yield "0-d int64", torch.tensor(-7)
    yield "0-d nan", torch.tensor(nan)
    yield "0-d float64", torch.tensor(1 / 3, dtype=f64)
    yield "nan and infinities", torch.tensor([nan, inf, -inf, 1.0])
    yield "nan among fractions", torch.tensor([nan, inf, -inf, 1.5])
    yield "only nan", torch.tensor([nan, nan])
    yield "only infinities", torch.tensor([inf, -inf])
    yield "zeros", torch.zeros(2, 3)
    yield "minus zero", torch.tensor([-0.0, 0.0])
    yield "minus zero among fractions", torch.tensor([-0.0, 0.25])
    yield "small", torch.tensor([1e-5])
    yield "small among others", torch.tensor([1e-5, 0.5])
    yield "just not small", torch.tensor([1e-4, 0.05])
    yield "large", torch.tensor([1e10])
    yield "large integers", torch.tensor([1e8, 1e8 + 8])
    yield "beyond 1e8", torch.tensor([1.0e9, 2.0e9])
    yield "ratio of 1000", torch.tensor([1.0, 1000.0])
    yield "ratio above 1000", torch.tensor([1.0, 1001.0])
    yield "fractions of ratio above 1000", torch.tensor([0.5, 501.0])
    yield "scientific with nan", torch.tensor([1e-10, nan, -inf, 1.0])
    yield "huge float64", torch.tensor([1e300, -1e-300], dtype=f64)
    yield "denormal", torch.tensor([1e-45])
    yield "negative", torch.tensor([-1.0, 2.0, -3.0])
    yield "rounding", torch.tensor([0.00005, 0.99995, 2.5, 3.14159265])
    yield "empty", torch.empty(0)
    yield "empty two dimensions", torch.empty(0, 3)
    yield "empty three dimensions", torch.empty(2, 0, 4)
    yield "empty int64", torch.empty(0, dtype=i64)
    yield "empty float64", torch.empty(3, 0, dtype=f64)
    yield "empty uint8", torch.empty(0, dtype=u8)
    yield "int64", torch.tensor([[1, -20, 300], [4, 5, 6]])
    yield "int64 extremes", torch.tensor([2**63 - 1, -(2**63)])
    yield "uint8", torch.tensor([0, 7, 255], dtype=u8)
    yield "float64", torch.randn(2, 3, dtype=f64)
    yield "one row over several lines", torch.randn(40)
    yield "exactly one line", torch.arange(1.0, 14.0)
    yield "two dimensions", torch.randn(3, 4)
    yield "wide", torch.randn(2, 30)
    yield "three dimensions", torch.randn(2, 3, 4)
    yield "four dimensions", torch.randn(2, 1, 2, 3)
    yield "five dimensions", torch.randn(1, 2, 1, 2, 2)
    yield "1000 elements", torch.arange(1000)
    yield "1001 elements", torch.arange(1001)
    yield "1001 floats", torch.arange(1001.0) / 7
    yield "summarised matrix", torch.arange(40 * 40.0).reshape(40, 40) / 3
    yield "summarised, short rows", torch.arange(1200).reshape(200, 6)
    yield "summarised, seven columns", torch.arange(1400).reshape(200, 7)
    yield "summarised, three dimensions", torch.arange(8 * 9 * 20.0).reshape(8, 9, 20)
    yield "summarised, extreme in the middle", torch.cat(
        [torch.ones(600), torch.full((1,), 1e30), torch.ones(600)])
    for columns in range(5, 15):  # where the device moves to its own line
        yield "row of %d" % columns, torch.arange(float(columns)) + 0.5
    for columns in range(8, 14):
        yield "float64 row of %d" % columns, torch.arange(columns, dtype=f64)


def main():
    name_the_device()
    result = []
    for name, tensor in cases():
        # repr gives the shortest text that reads back as the same number.
        values = [repr(v) for v in tensor.flatten().tolist()]
        result.append({
            "name": name,
            "dtype": str(tensor.dtype).replace("torch.", ""),
            "shape": list(tensor.shape),
            "values": values,
            "text": repr(tensor),
        })
    # A line for each case, so that a diff shows a changed case as one line.
    lines = ",\n".join(json.dumps(case) for case in result)
    sys.stdout.write('{"torch": "%s", "cases": [\n%s\n]}\n' % (torch.__version__, lines))


if __name__ == "__main__":
    main()
