#!/usr/bin/env python3
"""Writes common/nn/tied_golden.json: a network with tied weights, trained by PyTorch in float64.

Usage, with PyTorch from PyPI in a virtual environment:

  python3 -m venv /tmp/torch && /tmp/torch/bin/pip install torch numpy
  /tmp/torch/bin/python tests/make_tied_golden.py > common/nn/tied_golden.json

Two linear layers have one weight: y = relu(x @ w.T + b) @ w.T + c. The loss is the mean of
(y - x)**2. All initial values and data are sines, which are the same on every machine.
"""
import json

import torch

FEATURES, SAMPLES, STEPS = 4, 12, 20


def sines(begin, *shape):
    count = torch.Size(shape).numel()
    return torch.sin(torch.arange(begin, begin + count, dtype=torch.float64)).reshape(shape)


def main():
    layers = [torch.nn.Linear(FEATURES, FEATURES, dtype=torch.float64) for _ in range(2)]
    layers[1].weight = layers[0].weight
    net = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1])
    assert list(dict(net.named_parameters())) == ["0.weight", "0.bias", "2.bias"]
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]
    with torch.no_grad():
        layers[0].weight.copy_(sines(1, FEATURES, FEATURES))
        layers[0].bias.copy_(sines(100, FEATURES))
        layers[1].bias.copy_(sines(200, FEATURES))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(STEPS):
        x = sines(1000 * (step + 1), SAMPLES, FEATURES)
        loss = torch.mean((net(x) - x) ** 2)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    state = {name: value.flatten().tolist() for name, value in net.state_dict().items()}
    print(json.dumps({"torch": torch.__version__, "losses": losses, "state": state}, indent=1))


if __name__ == "__main__":
    main()
