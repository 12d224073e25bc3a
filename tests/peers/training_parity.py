#!/usr/bin/env python3
"""Trains this library's LeNet and ResNet-18 beside the book's, in PyTorch.

Same weights, same batches, same losses:

    bazel build -c opt //tests/peers:training_steps
    ~/peers/bin/python tests/peers/training_parity.py

needs PyTorch and its safetensors: ~/peers/bin/pip install torch safetensors.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

import pytorch_nets

BINARY = "bazel-bin/tests/peers/training_steps"
LR = {"lenet": 0.05, "resnet18": 0.01}
MOMENTUM = 0.9
# The largest relative difference of a loss. Rounding grows from step to step;
# ResNet-18's in float32 is for three steps, later ones differ by more.
TOLERANCE = {
    ("lenet", torch.float64): 1e-9,
    ("lenet", torch.float32): 5e-3,
    ("resnet18", torch.float64): 1e-9,
    ("resnet18", torch.float32): 1e-2,
}
NETS = {"lenet": pytorch_nets.lenet, "resnet18": pytorch_nets.resnet18}


def make(name, dtype):
    torch.manual_seed(0)
    return NETS[name]().to(dtype)


def make_batches(steps, batch, dtype):
    """Ten blurred patterns and noise, so that there is something to learn."""
    generator = torch.Generator().manual_seed(1)
    patterns = F.interpolate(torch.randn(10, 1, 7, 7, generator=generator), 28)
    labels = torch.randint(10, (steps, batch), generator=generator)
    noise = torch.randn(steps, batch, 1, 28, 28, generator=generator)
    return {"x": (patterns[labels] + noise).to(dtype), "labels": labels}


def train_here(name, net, batches, steps):
    sgd = torch.optim.SGD(net.parameters(), lr=LR[name], momentum=MOMENTUM)
    losses = []
    for x, labels in zip(batches["x"][:steps], batches["labels"][:steps]):
        sgd.zero_grad()
        loss = F.cross_entropy(net(x), labels)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def run(binary, name, weights, batches=None, steps=0, save=None):
    command = [binary, "--net=" + name, "--weights=" + weights, "--steps=%d" % steps,
               "--lr=%r" % LR[name], "--momentum=%r" % MOMENTUM]
    command += ["--batches=" + batches] if batches else []
    command += ["--save=" + save] if save else []
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return [float(line) for line in done.stdout.split()]


def compare(binary, name, dtype, steps, batch):
    """Returns the losses, ours and PyTorch's, and both states after the steps."""
    torch.set_num_threads(1)
    net = make(name, dtype)
    batches = make_batches(steps, batch, dtype)
    with tempfile.TemporaryDirectory() as folder:
        weights, data, out = (os.path.join(folder, file + ".safetensors")
                              for file in ("weights", "batches", "out"))
        save_file(net.state_dict(), weights)
        save_file(batches, data)
        ours = run(binary, name, weights, data, steps, out)
        theirs = train_here(name, net, batches, steps)
        return ours, theirs, load_file(out), net.state_dict()


def relative(ours, theirs):
    return max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--binary", default=BINARY)
    parser.add_argument("--nets", default="lenet,resnet18")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch_size", type=int, default=8)
    args = parser.parse_args()
    missed = False
    for name in args.nets.split(","):
        for dtype in (torch.float64, torch.float32):
            ours, theirs, _, _ = compare(args.binary, name, dtype, args.steps,
                                         args.batch_size)
            difference, most = relative(ours, theirs), TOLERANCE[name, dtype]
            print("%s, %s: the losses differ by %.1e at most; allowed: %.0e"
                  % (name, dtype, difference, most))
            for step in range(0, len(ours), max(1, len(ours) // 10)):
                print("  step %2d   ours %.12f   PyTorch %.12f"
                      % (step + 1, ours[step], theirs[step]))
            missed |= not difference <= most
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
