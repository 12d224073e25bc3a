#!/usr/bin/env python3
"""Counts what each kernel of a training step asks of a GPU, without one.

  tools/ptx_counts.py
  tools/ptx_counts.py --write

Trains LeNet on 8 images and ResNet-18 on one, of 28 by 28, on the interpreter of
PTX (tests/ptx), and prints a table of the second step for each. --write puts them into
common/kernels/cuda/README.md. Needs a CUDA toolkit; ends with 77 without one.

The numbers are those of nvcc's code for any GPU of the same kind: launches;
instructions of warps, in PTX; requests of warps to global memory, and the sectors
of 32 bytes in one; conflicts, the passes beyond the first, in a request to shared
memory; atomics of threads. Blocks depend on the number of multiprocessors, 4 here.
"""

import collections
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import kernel_table

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = '//tests/ptx:training_step'
STEPS = [('lenet', 8), ('resnet18', 1)]
BEGIN, END = '<!-- made by tools/ptx_counts.py -->', '<!-- end of counts -->'
FIELDS = ['launches', 'instructions', 'requests', 'sectors', 'shared', 'conflicts',
          'atomics']


def kernel_name(mangled):
    """The kernel's name without namespaces, types and arguments."""
    said = subprocess.run(['c++filt', mangled], check=True, capture_output=True,
                          text=True).stdout
    name = re.search(r'(\w+Kernel)', said)[1]
    # c++filt does not know all names: "…_12AddKernelI…" keeps the length.
    return re.sub(r'^.*?\d+(?=[A-Z])', '', name)


def count(network, batch, steps):
    """The sums over each kernel's versions: {kernel: Counter of FIELDS}."""
    sums = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        counts = pathlib.Path(folder, 'counts')
        subprocess.run(
            [ROOT / 'bazel-bin/tests/ptx/training_step', network, str(batch), str(steps)],
            check=True, env={**os.environ, 'D2L_PTX_COUNTS': str(counts)})
        for line in counts.read_text().splitlines():
            mangled, *numbers = line.split()
            sums[kernel_name(mangled)].update(
                dict(zip(FIELDS, map(int, numbers))))
    return sums


def table(network, batch):
    """The table of a network's step, in Markdown."""
    lines = [f'{network}, {batch} images' if batch > 1 else f'{network}, one image',
             '',
             '| kernel | launches | instructions | requests | sectors each |'
             ' conflicts each | atomics |',
             '|---|---|---|---|---|---|---|']
    # Without what makes the weights and the images.
    sums, before = count(network, batch, 2), count(network, batch, 1)
    sums = {kernel: of - before[kernel] for kernel, of in sums.items()
            if of - before[kernel]}
    sums['**all**'] = sum(sums.values(), collections.Counter())
    for kernel, of in sorted(sums.items(), key=lambda item: -item[1]['instructions']):
        def each(what, requests):
            return f'{of[what] / of[requests]:.1f}' if of[requests] else '-'
        lines.append(
            f'| {kernel} | {of["launches"]} | {of["instructions"]:,} |'
            f' {of["requests"]:,} | {each("sectors", "requests")} |'
            f' {each("conflicts", "shared")} | {of["atomics"]:,} |')
    return '\n'.join(lines)


def main():
    if not kernel_table.find_nvcc():
        print('ptx_counts.py: no nvcc: see third_party/cuda_configure.bzl')
        sys.exit(77)
    subprocess.run(['bazel', 'build', '--config=ptx', PROGRAM], cwd=ROOT, check=True)
    text = '\n\n'.join(table(*step) for step in STEPS)
    if '--write' not in sys.argv[1:]:
        print(text)
        return
    readme = ROOT / 'common/kernels/cuda/README.md'
    old = readme.read_text()
    begin, end = old.index(BEGIN) + len(BEGIN), old.index(END)
    readme.write_text(f'{old[:begin]}\n\n{text}\n\n{old[end:]}')


if __name__ == '__main__':
    main()
