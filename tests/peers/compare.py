#!/usr/bin/env python3
"""Runs the same cells in this library, in PyTorch and in NumPy, and compares.

Usage: tests/peers/compare.py [--json=FILE] [--rounds=N] [--filter=REGEX] [--binary=PATH]

The peers are the PyTorch and the NumPy that this Python has, each in a process
of its own: pytorch-1 and numpy-1 with one thread, pytorch-all with as many as
there are processors. A cell of ours runs on a virtual device; of the two there
are, it has half of the processors.

In each round every cell runs in each of them in turn, so that what else the
machine does hits all alike. The figures are medians over the rounds.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

from cells import CELLS

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = "//tests/peers:cells_benchmark"
MIN_SECONDS = "0.1"

# Name, module, threads (0: all).
PEERS = [
    ("pytorch-1", "pytorch_cells", 1),
    ("pytorch-all", "pytorch_cells", 0),
    ("numpy-1", "numpy_cells", 1),
]

HOW_TO_INSTALL = """\
%s not installed for %s.
To compare with what is not there:
  python3 -m venv ~/peers && ~/peers/bin/pip install torch numpy
  ~/peers/bin/python tests/peers/compare.py"""


class CompareError(Exception):
    pass


def note(text):
    print(text, file=sys.stderr, flush=True)


class Progress:
    """A line that is written over on a terminal; else a line per round."""

    def __init__(self, rounds, cells):
        self.rounds = rounds
        self.cells = cells
        self.terminal = sys.stderr.isatty()
        self.start = time.monotonic()

    def show(self, round_index, cell_index, name):
        if self.terminal:
            sys.stderr.write("\r\033[Kround %d of %d, cell %d of %d: %s" % (
                round_index + 1, self.rounds, cell_index + 1, self.cells, name))
            sys.stderr.flush()

    def end_round(self, round_index):
        if not self.terminal:
            note("round %d of %d done after %.0f s" % (
                round_index + 1, self.rounds, time.monotonic() - self.start))

    def clear(self):
        if self.terminal:
            sys.stderr.write("\r\033[K")


# ---- Running.


def build():
    """The path of the benchmark, up to date."""
    root = os.path.join(HERE, "..", "..")
    note("building it: bazel build " + TARGET)
    try:
        subprocess.run(["bazel", "build", TARGET], check=True, cwd=root, stdout=sys.stderr)
        folder = subprocess.run(["bazel", "info", "bazel-bin"], check=True, cwd=root,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        raise CompareError("bazel is not on PATH; --binary=PATH names a benchmark that is built")
    except subprocess.CalledProcessError as error:
        raise CompareError("bazel failed with code %d" % error.returncode)
    return os.path.join(folder.stdout.strip(), "tests/peers/cells_benchmark")


def run_benchmarks(binary, names):
    """{name: ns per item} of benchmarks, and what the binary says of itself."""
    command = [
        binary,
        "--benchmark_format=json",
        "--benchmark_min_time=" + MIN_SECONDS,
        "--benchmark_filter=^(%s)/real_time$" % "|".join(names),
    ]
    try:
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise CompareError("%s: %s" % (binary, error.strerror))
    if run.returncode != 0:
        raise CompareError("%s failed with code %d:\n%s" % (
            " ".join(command), run.returncode, run.stderr[-2000:]))
    try:
        output = json.loads(run.stdout)
    except ValueError:  # what it prints if nothing matches is not JSON
        output = {"benchmarks": [], "context": {}}
    return read_benchmarks(output, names), output["context"]


def read_benchmarks(output, names):
    result = {}
    for benchmark in output["benchmarks"]:
        if benchmark.get("error_occurred"):
            raise CompareError("%(name)s: %(error_message)s" % benchmark)
        name = benchmark["name"].rsplit("/real_time", 1)[0]
        result[name] = 1e9 / benchmark["items_per_second"]
    missing = set(names) - set(result)
    if missing:
        raise CompareError("the benchmark does not have " + ", ".join(sorted(missing)))
    return result


class Peer:
    """A peer's process, which runs a cell when it is asked to."""

    def __init__(self, name, module, threads):
        self.name = name
        environment = dict(os.environ)
        if threads:
            for library in ("OMP", "MKL", "OPENBLAS"):
                environment[library + "_NUM_THREADS"] = str(threads)
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "peer.py"), module, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        hello = self._read()
        self.missing = hello.get("missing")
        self.cells = set(hello.get("cells", []))
        self.library = "%s %s" % (hello.get("name"), hello.get("version"))

    def measure(self, cell):
        """ns per unit, or None if the peer does not have the cell."""
        if cell not in self.cells:
            return None
        self.process.stdin.write(cell + "\n")
        self.process.stdin.flush()
        return self._read()["ns"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise CompareError("%s: the process ended; its error is above" % self.name)
        return json.loads(line)


def start_peers():
    peers = [Peer(*arguments) for arguments in PEERS]
    missing = sorted({peer.missing for peer in peers if peer.missing})
    if missing:
        note(HOW_TO_INSTALL % (" and ".join(missing) + (" is" if len(missing) == 1 else " are"),
                               sys.executable))
    return peers


def run_rounds(binary, peers, cells, rounds, progress):
    """{(cell, who): [ns by round]}, who being "ours", "bound", "in_turn" or a
    peer, and what the binary says of itself."""
    samples = {}
    context = {}
    for r in range(rounds):
        for c, cell in enumerate(cells):
            progress.show(r, c, cell.name)
            benchmarks = {"ours": cell.name, "bound": cell.bound, "in_turn": cell.in_turn}
            benchmarks = {who: name for who, name in benchmarks.items() if name}
            ours, context = run_benchmarks(binary, list(benchmarks.values()))
            measured = {who: ours[name] for who, name in benchmarks.items()}
            measured.update({peer.name: peer.measure(cell.name) for peer in peers})
            for who, ns in measured.items():
                if ns is not None:
                    samples.setdefault((cell.name, who), []).append(ns)
        progress.end_round(r)
    return samples, context


# ---- Results.


def median(samples):
    return statistics.median(samples) if samples else None


def spread(samples):
    """Half of what the middle half of the samples covers, as a part of the median."""
    if not samples or len(samples) < 2:
        return None
    low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
    return (high - low) / 2 / statistics.median(samples)


def per_second(amount, ns):
    """Of an amount each `ns`, the billions per second."""
    return None if amount is None or ns is None else amount / ns


def make_rows(samples, cells):
    """A row per cell and peer; None where something does not exist."""
    rows = []
    for cell in cells:
        ours = samples[cell.name, "ours"]
        ours_ns = median(ours)
        bound_ns = median(samples.get((cell.name, "bound")))
        if bound_ns is not None:
            bound_ns *= cell.bound_items
        in_turn_ns = median(samples.get((cell.name, "in_turn")))
        for peer, _, _ in PEERS:
            theirs = samples.get((cell.name, peer))
            peer_ns = median(theirs)
            rows.append({
                "cell": cell.name,
                "per": cell.per,
                "ours_ns": ours_ns,
                "ours_min_ns": min(ours),
                "ours_spread": spread(ours),
                "ours_gflops": per_second(cell.flop, ours_ns),
                "peer": peer,
                "peer_ns": peer_ns,
                "peer_min_ns": min(theirs) if theirs else None,
                "peer_spread": spread(theirs),
                "peer_gflops": per_second(cell.flop, peer_ns),
                "ratio": None if peer_ns is None else peer_ns / ours_ns,
                "aim_ns": cell.aim(bound_ns),
                "bound_ns": bound_ns,
                "speed_up_over_in_turn": None if in_turn_ns is None else in_turn_ns / ours_ns,
                "rounds": len(ours),
            })
    return rows


# ---- Printing.


def three_digits(x):
    decimals = 2 if x < 9.995 else 1 if x < 99.95 else 0
    return "%.*f" % (decimals, x)


def duration(ns):
    if ns is None:
        return ""
    for unit, size in (("ns", 1), ("µs", 1e3), ("ms", 1e6)):
        if ns < 999.5 * size:
            return three_digits(ns / size) + unit
    return three_digits(ns / 1e9) + "s"


def percent(part):
    return "" if part is None else "%.0f%%" % (100 * part)


def times(ratio):
    return "%.2f" % ratio if ratio < 9.995 else "%.0f" % ratio


def markdown(header, lines):
    """A pipe table; the first column to the left, the others to the right."""
    # At least 2: the rule's fields need a dash beside the colon.
    widths = [max([2] + [len(row[i]) for row in [header] + lines]) for i in range(len(header))]

    def line(fields):
        padded = [fields[0].ljust(widths[0])]
        padded += [field.rjust(width) for field, width in zip(fields[1:], widths[1:])]
        return "| %s |" % " | ".join(padded)

    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    return "\n".join([line(header), line(rule)] + [line(fields) for fields in lines])


def by_cell(rows):
    cells = {}
    for row in rows:
        cells.setdefault(row["cell"], []).append(row)
    return cells.values()


def table(rows):
    lines = []
    for group in by_cell(rows):
        row = group[0]
        fields = [row["cell"], duration(row["ours_ns"]), percent(row["ours_spread"]),
                  duration(row["aim_ns"]), duration(row["bound_ns"])]
        for row in group:
            ratio = row["ratio"]
            fields.append("" if ratio is None else duration(row["peer_ns"]) + " " + times(ratio))
        lines.append(fields)
    return markdown(["cell", "ours", "±", "aim", "bound"] + [peer for peer, _, _ in PEERS], lines)


def remarks(rows):
    """What the table has no room for, line by line."""
    lines = []
    for group in by_cell(rows):
        row = group[0]
        if row["ours_gflops"] is not None:
            rates = ["ours %.0f" % row["ours_gflops"]]
            rates += ["%s %.0f" % (row["peer"], row["peer_gflops"]) for row in group
                      if row["peer_gflops"] is not None]
            lines.append("%s in GFLOP/s: %s" % (row["cell"], ", ".join(rates)))
        if row["speed_up_over_in_turn"] is not None:
            lines.append("%s: %.2f times as fast as one device after the other" % (
                row["cell"], row["speed_up_over_in_turn"]))
    missed = [row for row, *_ in by_cell(rows)
              if row["aim_ns"] is not None and row["ours_ns"] > row["aim_ns"]]
    lines += ["aim missed: %s takes %s, aim %s" % (
        row["cell"], duration(row["ours_ns"]), duration(row["aim_ns"])) for row in missed]
    return lines


def processor():
    try:
        with open("/proc/cpuinfo") as info:
            names = [line.split(":")[1].strip() for line in info if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return "processor"


def heading(peers, context, rounds, load):
    lines = ["%d x %s, load %.1f before and %.1f after" % (
        os.cpu_count(), processor(), load[0], load[1])]
    lines += [value for key, value in context.items() if key.startswith("cpu:")]
    libraries = [peer.library for peer in peers if not peer.missing]
    lines.append("Peers: " + (", ".join(dict.fromkeys(libraries)) or "none"))
    lines.append("Medians of %d round%s; ± is half the interquartile range. A peer's second figure" % (
        rounds, "" if rounds == 1 else "s"))
    lines.append("is how many times as long it takes: above 1, ours is faster.")
    return lines


# ---- The program.


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--rounds", metavar="N", type=int, default=5, help="default: 5")
    parser.add_argument("--filter", metavar="REGEX", default="", help="only cells that match")
    parser.add_argument("--binary", metavar="PATH",
                        help="the benchmark; without it, it is built by Bazel")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    try:
        arguments.cells = [cell for cell in CELLS if re.search(arguments.filter, cell.name)]
    except re.error as error:
        parser.error("--filter is no regular expression: %s" % error)
    if not arguments.cells:
        parser.error("no cell matches; there are: " + " ".join(cell.name for cell in CELLS))
    return arguments


def main():
    arguments = parse_arguments()
    binary = arguments.binary or build()
    peers = start_peers()
    load = [os.getloadavg()[0]]
    progress = Progress(arguments.rounds, len(arguments.cells))
    try:
        samples, context = run_rounds(binary, peers, arguments.cells, arguments.rounds, progress)
    finally:
        progress.clear()
    load.append(os.getloadavg()[0])
    for peer in peers:
        peer.close()
    rows = make_rows(samples, arguments.cells)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")
    print("\n".join(heading(peers, context, arguments.rounds, load)) + "\n")
    print(table(rows) + "\n")
    print("\n".join(remarks(rows)))


if __name__ == "__main__":
    try:
        main()
    except CompareError as error:
        sys.exit("Error: %s" % error)
    except KeyboardInterrupt:
        sys.exit(130)
