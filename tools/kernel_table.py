#!/usr/bin/env python3
"""Writes the table of CUDA kernels in common/kernels/cuda/README.md.

  tools/kernel_table.py
  tools/kernel_table.py --check [GPU ... | --sample]

Runs the kernels' suites under the check (--config=check_cuda) and sums up what
the warps asked of memory; then asks ptxas, through nvcc, for registers, stack
frames and spills on each GPU that --config=cuda compiles for. Takes about twenty
minutes on two cores. Needs a CUDA toolkit.

--check writes nothing: it fails if a kernel has a stack frame or spills registers
on one of these GPUs, or on those named after it, as in --check sm_90, or (--sample)
on another one for each commit; or if the loads of a product of small matrices wait for each other, and ends with 77 if there
is no nvcc.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERNELS = ROOT / 'common/kernels/cuda'
SUITES = ['//common/kernels:nn_kernels_test', '//common/ops:ops_test',
          '//common/ops:nn_test']
# Loads of a thread of SmallProductKernel that are under way at the same time.
LOADS_AT_ONCE = 16
BEGIN, END = '<!-- made by tools/kernel_table.py -->', '<!-- end -->'


def requests():
    """The requests of each kernel: {kernel: {(shared, writes): sums}}."""
    subprocess.run(['bazel', 'build', '--config=check_cuda', *SUITES],
                   cwd=ROOT, check=True)
    sums = collections.defaultdict(
        lambda: collections.defaultdict(collections.Counter))
    with tempfile.TemporaryDirectory() as folder:
        table = pathlib.Path(folder, 'table')
        for suite in SUITES:
            program = ROOT / 'bazel-bin' / suite[2:].replace(':', '/')
            subprocess.run([program, '--gtest_filter=*/cuda_0',
                            '--gtest_brief=1'], cwd=ROOT, check=True,
                           env={'D2L_CHECK_CUDA_TABLE': str(table)})
        for line in table.read_text().splitlines():
            kernel, shared, writes, *counts = line.split()
            of = sums[kernel][shared == '1', writes == '1']
            for key, count in zip(('requests', 'lanes', 'sectors',
                                   'ideal_sectors', 'conflicts'), counts):
                of[key] += int(count)
    return sums


def find_nvcc():
    """nvcc's path, or None; looks where third_party/cuda_configure.bzl does."""
    folders = [os.environ.get('CUDA_PATH'), os.environ.get('CUDA_HOME')]
    if folders[0] == 'none':
        return None
    return shutil.which('nvcc') or shutil.which('nvcc', path=os.pathsep.join(
        f'{folder}/bin' for folder in [*folders, '/usr/local/cuda'] if folder))


def nvcc(source, *flags):
    """Compiles a source as third_party/cuda.bzl does; returns nvcc's output."""
    return subprocess.run(
        [find_nvcc(), '-std=c++17', '-fmad=false', '-I.',
         '--expt-relaxed-constexpr', '-diag-suppress=186', *flags, source],
        cwd=ROOT, check=True, capture_output=True, text=True)


def all_gpus():
    """The GPUs for which third_party/cuda.bzl compiles, of those that nvcc knows."""
    known = subprocess.run([find_nvcc(), '--list-gpu-code'], check=True,
                           capture_output=True, text=True).stdout.split()
    rules = (ROOT / 'third_party/cuda.bzl').read_text()
    archs = re.search(r'def _default_archs.*?return', rules, re.DOTALL)[0]
    return [gpu for gpu in re.findall(r'sm_\d+', archs) if gpu in known]


def resources(gpus):
    """The most of a kernel's versions: {(kernel, GPU): (registers, stack, spill)}."""
    most = {}
    codes = [f'-gencode=arch=compute_{gpu[3:]},code={gpu}' for gpu in gpus]
    for source in sorted(KERNELS.glob('**/*.cu')):
        if source.parent.name == 'fake':
            continue
        said = nvcc(source, '-Xptxas=-v', '-fatbin', '--threads=0', *codes,
                    '-o', '/dev/null').stderr
        said = subprocess.run(['c++filt'], input=said, check=True,
                              capture_output=True, text=True).stdout
        for part in said.split("Compiling entry function '")[1:]:
            # Also for a mangled name in quotes, which c++filt does not know.
            name = re.search(r'(\w+Kernel)', part)
            stack, stores, loads = map(int, re.search(
                r'(\d+) bytes stack frame, (\d+) bytes spill stores, '
                r'(\d+) bytes spill loads', part).groups())
            registers = int(re.search(r'Used (\d+) registers', part)[1])
            if name:
                of = (re.sub(r'^.*?\d+(?=[A-Z])', '', name[1]),
                      re.search(r"for '(sm_\d+)'", part)[1])
                most[of] = tuple(map(max, most.get(of, (0, 0, 0)), (
                    registers, stack, stores + loads)))
    return most


def table():
    """The table, in Markdown."""
    used = {}
    for (kernel, _), of in resources(all_gpus()).items():
        used[kernel] = tuple(map(max, used.get(kernel, of), of))
    lines = ['| kernel | sectors a load / ideal | a store / ideal | conflicts |'
             ' lanes | registers | stack | spilled |',
             '|---|---|---|---|---|---|---|---|']
    for kernel, of in sorted(requests().items()):
        def each(shared, writes, *keys):
            sums = of.get((shared, writes))
            if not sums:
                return '-'
            return ' / '.join(f'{sums[k] / sums["requests"]:.1f}' for k in keys)
        both = of[True, False] + of[True, True]
        total = sum(of.values(), collections.Counter())
        lines.append('| ' + ' | '.join([
            kernel, each(False, False, 'sectors', 'ideal_sectors'),
            each(False, True, 'sectors', 'ideal_sectors'),
            f'{both["conflicts"] / both["requests"]:.2f}' if both else '-',
            f'{total["lanes"] / total["requests"]:.1f}',
            *(str(n) for n in used.get(kernel, ('-', '-', '-')))]) + ' |')
    return '\n'.join(lines)


def loads_at_once(ptx):
    """The largest number of loads from global memory between two stores to shared memory."""
    most = loads = 0
    for line in ptx.splitlines():
        if 'ld.global' in line:
            loads += 1
            most = max(most, loads)
        elif 'st.shared' in line:
            loads = 0
    return most


def check(gpus):
    """The faults in the kernels' machine code, a line each."""
    wrong = [f'{kernel} on {gpu}: a stack frame of {stack} bytes, '
             f'{spill} bytes spilled'
             for (kernel, gpu), (_, stack, spill) in resources(gpus).items()
             if stack or spill]
    ptx = nvcc(KERNELS / 'matmul.cu', '-arch=sm_90', '-ptx', '-o', '-').stdout
    kernels = [part for part in ptx.split('.entry ')[1:]
               if 'SmallProductKernel' in part.split('(')[0]]
    if not kernels:
        wrong.append('SmallProductKernel: not found in the PTX')
    for kernel in kernels:
        loads = loads_at_once(kernel)
        if loads < LOADS_AT_ONCE:
            wrong.append(f'SmallProductKernel: {loads} loads at once, not '
                         f'{LOADS_AT_ONCE}')
    return wrong


def main():
    if not find_nvcc():
        print('kernel_table.py: no nvcc on $PATH, or in $CUDA_PATH/bin, '
              '$CUDA_HOME/bin or /usr/local/cuda/bin')
        sys.exit(77)
    if sys.argv[1:2] == ['--check']:
        gpus = sys.argv[2:] or all_gpus()
        if gpus == ['--sample']:
            commit = subprocess.run(['git', 'rev-parse', 'HEAD'], cwd=ROOT, check=True,
                                    capture_output=True, text=True).stdout
            gpus = [all_gpus()[int(commit, 16) % len(all_gpus())]]
        wrong = check(gpus)
        print('\n'.join(wrong))
        sys.exit(1 if wrong else 0)
    if sys.argv[1:]:
        sys.exit(__doc__)
    readme = KERNELS / 'README.md'
    text = readme.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    readme.write_text(f'{text[:begin]}\n\n{table()}\n\n{text[end:]}')


if __name__ == '__main__':
    main()
