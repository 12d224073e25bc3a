#!/usr/bin/env python3
"""Runs the same cells in this library, in PyTorch and in NumPy, and compares.

Usage: tests/peers/compare.py [--json=FILE] [--rounds=N] [--filter=REGEX] [--binary=PATH]
                              [--device=cuda:0] [--mpi=PATH]

The peers are the PyTorch and the NumPy of the Python that runs this script,
each in a process of its own: pytorch-1 and numpy-1 have one thread, pytorch-all
has as many as there are cores. "ours" runs on the first of two virtual devices,
which share the cores; "ours-all" runs on one virtual device with all of them.
Cells of two or four devices have as many virtual ones, and their peer processes
of one thread each. --mpi names our mpi_benchmark, which measures Open MPI.

With --device=cuda:0 everything runs on that GPU, and the peer is pytorch-cuda. A
cell that needs two devices gets two logical ones on it.

Each round runs every cell once in this library and in each peer, so that other
load on the machine affects all of them alike. The figures are medians over the
rounds. Everything runs at a real-time priority where this process may have one, and
the heading says what part of the cores other programs took. --json's file is written
after each round, and the table is printed even if Ctrl-C or SIGTERM ends the comparison
early.
"""
import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import typing

from cells import CELLS
from results import PYTORCH_ALL, heading, kind, make_rows, quietness, remarks, table

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = "//tests/peers:cells_benchmark"
MIN_SECONDS = "0.1"

# A process that takes longer hangs: seconds to start, and seconds per benchmark, most
# of which take one or two.
START_LIMIT = 60
BENCHMARK_LIMIT = 5

# --devices of ours-all: a single virtual device has all cores.
ALL_CORES = "cpu:0"

# Name, module, threads (0: all), by kind of device.
PEERS = {
    "cpu": [
        ("pytorch-1", "pytorch_cells", 1),
        ("numpy-1", "numpy_cells", 1),
        (PYTORCH_ALL, "pytorch_cells", 0),
    ],
    "cuda": [("pytorch-cuda", "pytorch_cells", 0)],
}

HOW_TO_INSTALL = """\
%s not installed for %s.
To compare with what is not there:
  python3 -m venv ~/peers && ~/peers/bin/pip install torch numpy
  ~/peers/bin/python %s"""


class CompareError(Exception):
    """The comparison is not possible."""


class CellError(Exception):
    """Cells have no figure: "skipped: ..." or "failed: ..."."""


class Stopped(Exception):
    """SIGTERM has arrived."""


def note(text):
    print(text, file=sys.stderr, flush=True)


class Progress:
    """On a terminal, a line that is written over; otherwise a line per round."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.done = 0
        self.terminal = sys.stderr.isatty()
        self.start = time.monotonic()

    def show(self, text):
        if self.terminal:
            sys.stderr.write("\r\033[Kround %d of %d, %s" % (self.done + 1, self.rounds, text))
            sys.stderr.flush()

    def end_round(self):
        self.done += 1
        if not self.terminal:
            note("round %d of %d done after %.0f s" % (
                self.done, self.rounds, time.monotonic() - self.start))

    def clear(self):
        if self.terminal:
            sys.stderr.write("\r\033[K")


# ---- Running.


def build(device):
    """Builds the benchmark, and returns its path."""
    root = os.path.join(HERE, "..", "..")
    if not os.path.exists(os.path.join(root, "WORKSPACE")):
        raise CompareError("this is not in the repository, where Bazel builds the benchmark; "
                           "--binary=PATH names one that is built")
    options = ["--config=cuda"] if kind(device) == "cuda" else []
    note("building it: " + " ".join(["bazel build", *options, TARGET]))
    try:
        subprocess.run(["bazel", "build", *options, TARGET], check=True, cwd=root,
                       stdout=sys.stderr)
        folder = subprocess.run(["bazel", "info", *options, "bazel-bin"], check=True, cwd=root,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        raise CompareError("bazel is not on PATH; --binary=PATH names a benchmark that is built")
    except subprocess.CalledProcessError as error:
        raise CompareError("bazel failed with code %d" % error.returncode)
    return os.path.join(folder.stdout.strip(), "tests/peers/cells_benchmark")


def device_list(device, count):
    """--devices of the benchmark for a cell that needs `count` devices."""
    if kind(device) == "cpu":
        return ",".join("cpu:%d" % i for i in range(max(count, 2)))
    return ",".join([device] * count)


def benchmark_command(binary, devices):
    command = [binary, "--devices=" + devices]
    if kind(devices) == "cuda":
        command.append("--benchmark_min_warmup_time=" + MIN_SECONDS)
    return command


def run_command(command, benchmarks=0):
    """Returns the command's output. CellError if it fails."""
    limit = START_LIMIT + BENCHMARK_LIMIT * benchmarks
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             timeout=limit)
    except OSError as error:
        raise CompareError("%s: %s" % (command[0], error.strerror))
    except subprocess.TimeoutExpired:
        raise CellError("failed: not done after %d s: %s" % (limit, shlex.join(command)))
    if run.returncode != 0:
        raise CellError("failed: %s ended with code %d:\n%s" % (
            shlex.join(command), run.returncode, run.stderr[-2000:].strip()))
    return run.stdout


def check_benchmark(binary, device):
    """CompareError if the benchmark does not run on the device at all."""
    try:
        run_command(benchmark_command(binary, device_list(device, 1)) +
                    ["--benchmark_list_tests"])
    except CellError as error:
        reason = str(error).replace("failed: ", "", 1)
        raise CompareError("the benchmark does not start on %s: %s" % (device, reason))


def run_benchmarks(binary, devices, names):
    """Runs them in one process: {name: Figures}, {name: why it has no figure}, and the binary's
    descriptions of the devices. If it fails, each benchmark gets a process of its own."""
    try:
        printed = run_command(benchmark_command(binary, devices) + [
            "--benchmark_format=json",
            "--benchmark_min_time=" + MIN_SECONDS,
            "--benchmark_filter=^(%s)/real_time$" % "|".join(names),
        ], len(names))
    except CellError as error:
        if len(names) == 1:
            return {}, {names[0]: str(error)}, []
        figures, failures, descriptions = {}, {}, []
        for name in names:
            one = run_benchmarks(binary, devices, [name])
            figures.update(one[0])
            failures.update(one[1])
            descriptions += one[2]
        return figures, failures, descriptions
    try:
        output = json.loads(printed)
    except ValueError:  # the output is not JSON if no benchmark matches
        output = {"benchmarks": [], "context": {}}
    descriptions = [text for key, text in output["context"].items()
                    if key.startswith(kind(devices) + ":")]
    return (*read_benchmarks(output, names), descriptions)


class Figures(typing.NamedTuple):
    """The figures of a benchmark, per item."""
    ns: float
    bound_ns: typing.Optional[float] = None  # the time at the device's peaks; 0: not known
    flop: typing.Optional[float] = None


def read_benchmarks(output, names):
    figures, failures = {}, {}
    for benchmark in output["benchmarks"]:
        name = benchmark["name"].rsplit("/real_time", 1)[0]
        # Google Benchmark has only errors before version 1.8: see Skip in
        # cells_benchmark.cc.
        message = benchmark.get("error_message") or benchmark.get("skip_message")
        if message:
            reason = message if message.startswith("skipped: ") else "failed: " + message
            failures[name] = "%s (%s)" % (reason, benchmark["name"])
        else:
            figures[name] = Figures(1e9 / benchmark["items_per_second"],
                                    benchmark.get("bound_ns"), benchmark.get("flop"))
    missing = set(names) - set(figures) - set(failures)
    if missing:
        raise CompareError("the benchmark does not have " + ", ".join(sorted(missing)))
    return figures, failures


def peer_command(module, threads, device):
    return [sys.executable, os.path.join(HERE, "peer.py"), module, str(threads), device]


class Peer:
    """A peer's process, which runs a cell on request."""

    def __init__(self, device, name, module, threads):
        self.name = name
        environment = dict(os.environ)
        if threads:
            for library in ("OMP", "MKL", "OPENBLAS"):
                environment[library + "_NUM_THREADS"] = str(threads)
        self.process = subprocess.Popen(
            peer_command(module, threads, device),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        hello = self._read()
        self.missing = hello.get("missing")
        self.unusable = hello.get("unusable")
        self.cells = set(hello.get("cells", []))
        self.library = hello.get("library")

    def measure(self, cell):
        """ns per unit; None if the peer never had the cell, or has it no longer."""
        if cell not in self.cells:
            return None
        self.process.stdin.write(cell + "\n")
        self.process.stdin.flush()
        try:
            answer = self._read()
        except CompareError as error:  # the other cells still have figures
            self.cells = {cell}
            answer = {"error": str(error)}
        if "error" in answer:
            self.cells.remove(cell)
            note("%s fails in %s: %s" % (self.name, cell, answer["error"]))
        return answer.get("ns")

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise CompareError("%s: the process ended; its error is above" % self.name)
        return json.loads(line)


def start_peers(device, mpi):
    """mpi: the path of mpi_benchmark, or None."""
    wanted = list(PEERS[kind(device)])
    if mpi:
        os.environ["D2L_MPI_BENCHMARK"] = os.path.abspath(mpi)
        wanted.insert(1, ("open-mpi", "openmpi_cells", 1))
    peers = [Peer(device, *arguments) for arguments in wanted]
    missing = sorted({peer.missing for peer in peers if peer.missing})
    if missing:
        note(HOW_TO_INSTALL % (" and ".join(missing) + (" is" if len(missing) == 1 else " are"),
                               sys.executable, shlex.join(sys.argv)))
    for peer in peers:
        if peer.unusable:
            note("Without %s, which does not run on %s: %s" % (peer.name, device, peer.unusable))
    return peers


class Samples:
    """The measurements of the rounds."""

    def __init__(self):
        # (cell, who): [by round]; "ours", "ours_all", "bound", "in_turn" or a peer, and
        # "flop", which is no time
        self.ns = {}
        self.without = {}  # cell: why it has no figures
        self.devices = {}  # the binary's descriptions of them, in order; no values

    def run_round(self, binary, device, cells, peers, progress):
        """Runs all cells in ours, in a process per list of devices, then in the peers."""
        cells = [cell for cell in cells if cell.name not in self.without]
        for devices, benchmarks in processes(device, cells).items():
            progress.show("ours on %s" % devices)
            names = list(dict.fromkeys(benchmarks.values()))
            figures, failures, descriptions = run_benchmarks(binary, devices, names)
            self.devices.update(dict.fromkeys(descriptions))
            for (cell, who), name in benchmarks.items():
                if name in failures:
                    self.without.setdefault(cell, failures[name])
                    continue
                self.ns.setdefault((cell, who), []).append(figures[name].ns)
                if who != "ours":
                    continue
                if figures[name].bound_ns and (cell, "bound") not in benchmarks:
                    self.ns.setdefault((cell, "bound"), []).append(figures[name].bound_ns)
                if figures[name].flop:
                    self.ns[cell, "flop"] = [figures[name].flop]
        for index, cell in enumerate(cells):
            progress.show("peers, cell %d of %d: %s" % (index + 1, len(cells), cell.name))
            for peer in peers if cell.name not in self.without else []:
                ns = peer.measure(cell.name)
                if ns is not None:
                    self.ns.setdefault((cell.name, peer.name), []).append(ns)

    def rows(self, device, cells, peers):
        """The rows of the cells that have figures."""
        cells = [cell for cell in cells
                 if (cell.name, "ours") in self.ns and cell.name not in self.without]
        return make_rows(self.ns, cells, device, [peer.name for peer in peers])


def processes(device, cells):
    """{--devices: {(cell, who): benchmark}} of this library."""
    result = {}
    for cell in cells:
        on_them = result.setdefault(device_list(device, cell.device_count), {})
        benchmarks = {"ours": cell.name, "bound": cell.on(kind(device)).bound,
                      "in_turn": cell.in_turn}
        on_them.update({(cell.name, who): name for who, name in benchmarks.items() if name})
        if cell.has_ours_all(kind(device)):
            result.setdefault(ALL_CORES, {})[cell.name, "ours_all"] = cell.name
    return result


def write_json(path, rows):
    """Replaces the file only when all is written, since this may be stopped."""
    with open(path + ".part", "w") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


# ---- The machine.


def raise_priority():
    """Other programs wait for the comparison, if this process may ask for that. By turns, so
    that none of its own threads waits long for one that spins."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:  # needs root, or a limit on RLIMIT_RTPRIO that allows it
        return False
    return True


def core_seconds():
    """What all programs have taken of the cores since the machine started, and what this
    process and those that it has started have."""
    with open("/proc/stat") as file:
        user, nice, system, _, _, *more = [int(ticks) for ticks in file.readline().split()[1:9]]
    parents, used = {}, {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % entry) as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        parents[int(entry)] = int(fields[1])
        used[int(entry)] = sum(int(ticks) for ticks in fields[11:15])  # with ended children

    def is_ours(process):
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    tick = os.sysconf("SC_CLK_TCK")
    ours = sum(ticks for process, ticks in used.items() if is_ours(process))
    return (user + nice + system + sum(more)) / tick, ours / tick


class Machine:
    """What else ran on this machine since the object was made."""

    def __init__(self):
        self.realtime = raise_priority()
        self.load = os.getloadavg()[0]
        self.start = time.monotonic()
        self.taken = core_seconds()

    def describe(self):
        """A sentence of the heading."""
        everything, ours = (now - then for now, then in zip(core_seconds(), self.taken))
        seconds = time.monotonic() - self.start
        return quietness(self.load, os.getloadavg()[0], self.realtime,
                         (everything - ours) / (seconds * os.cpu_count()))


# ---- The program.


def device_name(text):
    if text == "cuda":
        return "cuda:0"
    if text == "cpu" or re.fullmatch(r"cuda:[0-9]+", text):
        return text
    raise argparse.ArgumentTypeError("%r is none; there are cpu, cuda:0, cuda:1 and so on" % text)


def parse_arguments(words=None):
    """words: by default those of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--rounds", metavar="N", type=int, default=5, help="default: 5")
    parser.add_argument("--filter", metavar="REGEX", default="", help="only cells that match")
    parser.add_argument("--binary", metavar="PATH",
                        help="the benchmark; without it, it is built by Bazel")
    parser.add_argument("--device", metavar="DEVICE", type=device_name, default="cpu",
                        help="cpu (default), or a GPU such as cuda:0")
    parser.add_argument("--mpi", metavar="PATH",
                        help="mpi_benchmark; without it, Open MPI is left out")
    arguments = parser.parse_args(words)
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        arguments.cells = [cell for cell in CELLS if re.search(arguments.filter, cell.name)]
    except re.error as error:
        parser.error("--filter is no regular expression: %s" % error)
    if not arguments.cells:
        parser.error("no cell matches; there are: " + " ".join(cell.name for cell in CELLS))
    return arguments


def stop(*_):
    raise Stopped


def main():
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, stop)
    device = arguments.device
    binary = os.path.abspath(arguments.binary) if arguments.binary else build(device)
    check_benchmark(binary, device)
    machine = Machine()  # before the peers start: they get its priority
    peers = start_peers(device, arguments.mpi)
    progress = Progress(arguments.rounds)
    samples = Samples()
    stopped = None
    try:
        while progress.done < arguments.rounds:
            samples.run_round(binary, device, arguments.cells, peers, progress)
            rows = samples.rows(device, arguments.cells, peers)
            if arguments.json:
                write_json(arguments.json, rows)
            progress.end_round()
        for peer in peers:
            peer.close()
    except (KeyboardInterrupt, Stopped) as why:
        stopped = why
        for peer in peers:
            peer.process.kill()
        rows = samples.rows(device, arguments.cells, peers)
        if arguments.json:
            write_json(arguments.json, rows)
    finally:
        progress.clear()
    libraries = [peer.library for peer in peers if peer.library]
    lines = heading(device, libraries, samples.devices, progress.done, machine.describe())
    print("\n".join(lines) + "\n")
    if rows:
        print(table(rows) + "\n")
    print("\n".join(remarks(rows) + ["%s %s" % item for item in samples.without.items()]),
          flush=True)
    if stopped:
        raise stopped
    failed = [name for name, why in samples.without.items() if why.startswith("failed: ")]
    if failed:
        raise CompareError("no figures of " + ", ".join(failed))


if __name__ == "__main__":
    try:
        main()
    except CompareError as error:
        sys.exit("Error: %s" % error)
    except KeyboardInterrupt:
        sys.exit(130)
    except Stopped:
        sys.exit(143)
