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
# With these no step overshoots: if the loss jumps, so does any difference.
LR = {"lenet": 0.02, "resnet18": 0.01}
MOMENTUM = 0.9
# The largest difference of a loss, in units of the first. PyTorch's own float32
# is that far from its float64: with ResNet-18 and 16 images a step, 1e-2 after
# 12 steps (ours 1.4e-2), since an activation that rounds to the other side of 0
# changes what is learnt from it; with LeNet, 2e-7 after 50.
TOLERANCE = {
    ("lenet", torch.float64): 1e-9,
    ("lenet", torch.float32): 1e-5,
    ("resnet18", torch.float64): 1e-9,
    ("resnet18", torch.float32): 5e-2,
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


def difference_of(ours, theirs):
    return max(abs(a - b) for a, b in zip(ours, theirs)) / theirs[0]


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
            difference, most = difference_of(ours, theirs), TOLERANCE[name, dtype]
            print("%s, %s: the losses differ by %.1e of the first at most; allowed: %.0e"
                  % (name, dtype, difference, most))
            for step in range(0, len(ours), max(1, len(ours) // 10)):
                print("  step %2d   ours %.12f   PyTorch %.12f"
                      % (step + 1, ours[step], theirs[step]))
            missed |= not difference <= most
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
