#!/usr/bin/env python3
"""Writes common/autograd/gradient_golden.json: PyTorch's gradients, in float64.

Usage, with PyTorch from PyPI in a virtual environment:

  python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
  /tmp/torch/bin/python tests/make_gradient_golden.py \
      > common/autograd/gradient_golden.json

Most cases are about what PyTorch defines where there is no derivative: equals,
corners, infinite slopes. The gradient is that of sum(y * w), w = sin(1, 2, …).
"""
import json
import math
import sys

import torch

INF = math.inf
# No random numbers: these are distinct and irregular on every machine.
MIXED = [math.sin(1.7 * i * i) * 1.5 for i in range(1, 13)]


def tensor(values, *shape):
    x = torch.tensor(values, dtype=torch.float64)
    return x.reshape(shape) if shape else x


def mlp(x, w1, b1, w2):
    return torch.log_softmax(torch.relu(x @ w1.T + b1) @ w2.T, 1)


def batch_norm(x, weight, bias):
    """In training mode: the result, then the running statistics."""
    mean = torch.full((2,), 0.5, dtype=torch.float64)
    variance = torch.full((2,), 2.0, dtype=torch.float64)
    y = torch.nn.functional.batch_norm(x, mean, variance, weight, bias,
                                       training=True)
    return torch.cat([y.flatten(), mean, variance])


def cases():
    corners = tensor([-2.0, -0.5, 0.0, 0.25, 3.0])
    yield "abs", torch.abs, corners
    yield "relu", torch.relu, tensor([-2.0, 0.0, 3.0, INF, -INF])
    yield "sqrt", torch.sqrt, tensor([0.0, 4.0, 0.3])
    for function in torch.tanh, torch.sigmoid:
        yield function.__name__, function, tensor([-40.0, -1.0, 0.0, 2.0, 40.0])
    wide = tensor([-30.0, -8.0, -1.3, -1e-9, 0.0, 1e-200, 0.7, 5.0, 30.0])
    yield "gelu", torch.nn.functional.gelu, wide
    ties = tensor([1.0, 3.0, 3.0, 2.0, 2.0, 2.0, -1.0, -1.0, -5.0], 3, 3)
    yield "amax", lambda x: torch.amax(x, 1), ties
    yield "amin", torch.amin, tensor([4.0, -1.0, 2.0, -1.0])
    pair = tensor([1.0, 2.0, 3.0, 0.0]), tensor([2.0, 2.0, 1.0, 0.0])
    yield "maximum", torch.maximum, *pair
    yield "minimum", torch.minimum, *pair
    yield "pow 0", lambda x: x**0, tensor([0.0, 2.0, -1.0])
    yield "pow 2", lambda x: x**2, tensor([0.0, 2.0, -1.0])
    bases = tensor([0.0, 0.0, 2.0, 1.5, 3.0])
    yield "pow", torch.pow, bases, tensor([2.0, 0.0, 0.0, -1.5, 0.5])
    yield "pow of 0", lambda x: torch.pow(0.0, x), tensor([0.0, 1.0, 2.5])
    # A root that is not chosen has an infinite slope or none: NaN here.
    yield ("where", lambda x: torch.where(x > 0, torch.sqrt(x), x),
           tensor([-1.0, 0.0, 4.0]))
    yield "div", torch.div, tensor([1.0, -2.0, 0.0]), tensor([3.0, 0.5, -4.0])
    yield "softmax", lambda x: torch.softmax(x, 1), tensor(MIXED, 3, 4)
    yield "log_softmax", lambda x: torch.log_softmax(x, 1), tensor(MIXED, 4, 3)
    yield ("matmul", torch.matmul, tensor(MIXED, 2, 2, 3),
           tensor(MIXED[::-1], 2, 3, 2))
    conv2d = torch.nn.functional.conv2d
    yield ("conv2d", conv2d, tensor(MIXED * 3, 2, 2, 3, 3),
           tensor(MIXED[::-1] * 2, 3, 2, 2, 2), tensor(MIXED[:3]))
    yield ("conv2d, strided",
           lambda x, w: conv2d(x, w, stride=(2, 1), padding=(1, 2)),
           tensor(MIXED[:10] * 2, 1, 1, 4, 5), tensor(MIXED, 2, 1, 2, 3))
    yield ("mlp", mlp, tensor(MIXED, 3, 4), tensor(MIXED[::-1], 3, 4),
           tensor(MIXED[:3]), tensor(MIXED[3:9], 2, 3))
    nn = torch.nn.functional
    yield ("avg_pool2d", lambda x: nn.avg_pool2d(x, (3, 2), (1, 2), (1, 0)),
           tensor(MIXED, 1, 3, 4))
    levels = [round(2 * x) for x in MIXED]  # some are equal
    yield ("max_pool2d", lambda x: nn.max_pool2d(x, 2), tensor(levels, 1, 2, 6))
    yield ("max_pool2d, overlapping", lambda x: nn.max_pool2d(x, 3, 1, 1),
           tensor(levels, 1, 3, 4))
    yield ("batch_norm", batch_norm, tensor(MIXED, 3, 2, 2),
           tensor(MIXED[:2]), tensor(MIXED[2:4]))
    labels = torch.tensor([3, 0, 1])
    yield ("cross_entropy",
           lambda x: nn.cross_entropy(x, labels, reduction="none"),
           tensor(MIXED, 3, 4))
    rows = torch.tensor([2, 0, 2])
    yield ("index_add", lambda x, y: torch.index_add(x, 0, rows, y),
           tensor(MIXED[:6], 3, 2), tensor(MIXED[6:], 3, 2))
    places = torch.tensor([[2, 2], [0, 1]])
    yield ("scatter_add", lambda x, y: torch.scatter_add(x, 1, places, y),
           tensor(MIXED[:6], 2, 3), tensor(MIXED[6:10], 2, 2))


def described(x):
    return {
        "shape": list(x.shape),
        "values": [repr(value) for value in x.detach().flatten().tolist()],
    }


def main():
    golden = []
    for name, function, *inputs in cases():
        for x in inputs:
            x.requires_grad_()
        y = function(*inputs)
        weights = torch.tensor(
            [math.sin(i + 1) for i in range(y.numel())], dtype=torch.float64)
        gradients = torch.autograd.grad((y.flatten() * weights).sum(), inputs)
        golden.append({
            "name": name,
            "inputs": [described(x) for x in inputs],
            "result": described(y),
            "gradients": [described(g) for g in gradients],
        })
    json.dump({"pytorch": torch.__version__, "cases": golden}, sys.stdout,
              indent=1)
    print()


if __name__ == "__main__":
    main()
