#!/usr/bin/env python3
"""Tests of compare.py and results.py that measure nothing and need no peer."""
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import compare
import results
from cells import CELLS, COMPUTES, LAUNCHES, MOVES, Cell, On

PEERS = {device: [name for name, _, _ in peers] for device, peers in compare.PEERS.items()}


def samples_of(cells, ns, device="cpu"):
    """3 rounds in which ours and every peer take `ns` in all cells."""
    samples = {}
    for cell in cells:
        for who in ["ours"] + PEERS[device]:
            samples[cell.name, who] = [ns] * 3
        samples[cell.name, "bound"] = [ns] * 3
        if cell.in_turn:
            samples[cell.name, "in_turn"] = [2 * ns] * 3
        if cell.has_ours_all(device):
            samples[cell.name, "ours_all"] = [ns / 2] * 3
    return samples


def rows_of(samples, cells, device="cpu"):
    return results.make_rows(samples, cells, device, PEERS[device])


def source(name):
    with open(os.path.join(compare.HERE, name)) as file:
        return file.read()


class NumbersTest(unittest.TestCase):

    def test_duration(self):
        for ns, text in [
            (None, ""), (0.00153, "1.53ps"), (0.0994, "99.4ps"), (0.0996, "0.10ns"),
            (0.6249, "0.62ns"), (9.996, "10.0ns"), (180, "180ns"), (999.4, "999ns"),
            (999.6, "1.00µs"), (12345, "12.3µs"), (4e6, "4.00ms"), (2.5e9, "2.50s"),
        ]:
            self.assertEqual(results.duration(ns), text)

    def test_times(self):
        self.assertEqual(results.times(0.954), "0.95")
        self.assertEqual(results.times(9.994), "9.99")
        self.assertEqual(results.times(9.996), "10")
        self.assertEqual(results.times(37.4), "37")

    def test_median_and_spread(self):
        self.assertEqual(results.median([3, 100, 1, 2, 4]), 3)
        self.assertIsNone(results.median(None))
        # The quartiles of 1..5 are 2 and 4.
        self.assertAlmostEqual(results.spread([5, 1, 4, 2, 3]), 1 / 3)
        self.assertIsNone(results.spread([1]))
        self.assertIsNone(results.spread(None))


class BenchmarksTest(unittest.TestCase):

    def test_reads_ns_per_item(self):
        output = {"benchmarks": [
            {"name": "a/real_time", "items_per_second": 2e6, "bound_ns": 400, "flop": 18},
            {"name": "b/real_time", "items_per_second": 1e9}]}
        self.assertEqual(compare.read_benchmarks(output, ["a", "b"]),
                         ({"a": (500, 400, 18), "b": (1, None, None)}, {}))

    def test_an_error_in_a_benchmark_is_one_of_it_alone(self):
        output = {"benchmarks": [
            {"name": "a/real_time", "error_occurred": True, "error_message": "not equal"},
            {"name": "b/real_time", "items_per_second": 1e9}]}
        self.assertEqual(compare.read_benchmarks(output, ["a", "b"]),
                         ({"b": (1, None, None)}, {"a": "failed: not equal (a/real_time)"}))

    def test_a_skipped_benchmark_is_no_failure(self):
        why = "skipped: there is no second device"
        for told in [{"error_occurred": True, "error_message": why},  # Google Benchmark 1.7
                     {"skipped": True, "skip_message": why}]:
            output = {"benchmarks": [{"name": "a/real_time", **told}]}
            self.assertEqual(compare.read_benchmarks(output, ["a"]),
                             ({}, {"a": why + " (a/real_time)"}))

    def test_what_did_not_run_is_an_error(self):
        with self.assertRaisesRegex(compare.CompareError, "does not have a, b"):
            compare.read_benchmarks({"benchmarks": []}, ["b", "a"])


class RowsTest(unittest.TestCase):

    def test_a_row_per_cell_and_peer(self):
        cell = Cell("c", "product", cpu=On(aim_bounds=1.1))
        samples = {
            ("c", "ours"): [100, 200, 900],
            ("c", "bound"): [80, 90, 100],
            ("c", "flop"): [400],
            ("c", "pytorch-1"): [300, 500, 400],
        }
        one, numpy, every = rows_of(samples, [cell])
        self.assertEqual(one["ours_ns"], 200)
        self.assertEqual(one["peer"], "pytorch-1")
        self.assertEqual(one["peer_ns"], 400)
        self.assertEqual(one["peer_min_ns"], 300)
        self.assertEqual(one["ratio"], 2)
        self.assertEqual(one["bound_ns"], 90)
        self.assertAlmostEqual(one["aim_ns"], 99)
        self.assertEqual(one["ours_gflops"], 2)
        self.assertEqual(one["peer_gflops"], 1)
        self.assertIsNone(one["speed_up_over_in_turn"])
        for row in (every, numpy):
            self.assertIsNone(row["peer_ns"])
            self.assertIsNone(row["ratio"])

    def test_all_cores_are_compared_with_all_cores(self):
        cell = Cell("c", "product")
        samples = {
            ("c", "flop"): [4000],
            ("c", "ours"): [200],
            ("c", "ours_all"): [90, 100, 140],
            ("c", "pytorch-1"): [300],
            ("c", "numpy-1"): [500],
            ("c", "pytorch-all"): [149, 150, 151],
        }
        rows = rows_of(samples, [cell])
        for row in rows:
            self.assertEqual(row["ours_all_ns"], 100)
            self.assertEqual(row["ours_all_min_ns"], 90)
            # The quartiles are 95 and 120.
            self.assertAlmostEqual(row["ours_all_spread"], 0.125)
            self.assertEqual(row["ours_all_gflops"], 40)
        self.assertEqual([(row["peer"], row["ratio"], row["ratio_all"]) for row in rows],
                         [("pytorch-1", 1.5, None), ("numpy-1", 2.5, None),
                          ("pytorch-all", 0.75, 1.5)])
        self.assertIn("c in GFLOP/s: ours 20, ours-all 40, pytorch-1 13, numpy-1 8, pytorch-all 27",
                      results.remarks(rows))

    def test_without_ours_or_theirs_on_all_cores_there_is_no_ratio(self):
        for who in ("ours_all", "pytorch-all"):
            for row in rows_of({("c", "ours"): [10], ("c", who): [5]}, [Cell("c", "")]):
                self.assertIsNone(row["ratio_all"])
                self.assertEqual(row["ours_all_ns"], 5 if who == "ours_all" else None)

    def test_cells_slower_on_all_cores_are_named(self):
        cells = [Cell("slower", ""), Cell("as_fast", ""), Cell("slow", ""), Cell("alone", "")]
        samples = {(cell.name, "ours"): [100] for cell in cells}
        samples.update({(cell.name, "ours_all"): [80] for cell in cells})
        samples.update({("slower", "pytorch-all"): [40], ("as_fast", "pytorch-all"): [80],
                        ("slow", "pytorch-all"): [79.84]})
        self.assertEqual(results.remarks(rows_of(samples, cells)),
                         ["slower than pytorch-all with all cores: slower 0.500, slow 0.998"])

    def test_without_aim_and_bound(self):
        row = rows_of({("c", "ours"): [1]}, [Cell("c", "sum")])[0]
        self.assertIsNone(row["aim_ns"])
        self.assertIsNone(row["bound_ns"])

    def test_two_devices(self):
        cell = Cell("c", "pair", in_turn="other", device_count=2)
        samples = {("c", "ours"): [10], ("c", "in_turn"): [19]}
        rows = rows_of(samples, [cell])
        self.assertAlmostEqual(rows[0]["speed_up_over_in_turn"], 1.9)
        self.assertIn("c: 1.90 times", results.remarks(rows)[0])

    def test_missed_aims_are_named(self):
        cells = [Cell("met", "", cpu=On(aim_ns=100)), Cell("missed", "", cpu=On(aim_ns=99))]
        samples = {("met", "ours"): [100], ("missed", "ours"): [100]}
        self.assertEqual(results.remarks(rows_of(samples, cells)),
                         ["aim missed: missed takes 100ns, aim 99.0ns"])


class AimsTest(unittest.TestCase):

    def test_the_longest_time_allowed(self):
        self.assertEqual(On().aim(10, 20), None)
        self.assertEqual(On(aim_ns=5).aim(None, None), 5)
        self.assertEqual(On(aim_bounds=2).aim(10, 99), 20)
        self.assertEqual(On(aim_ratio=4).aim(99, 20), 5)

    def test_without_what_it_is_relative_to_there_is_none(self):
        self.assertIsNone(On(aim_bounds=2).aim(None, 20))
        self.assertIsNone(On(aim_ratio=4).aim(10, None))

    def judged(self, on, ours, bound=None, theirs=None):
        samples = {("c", "ours"): [ours]}
        if bound is not None:
            samples["c", "bound"] = [bound]
        if theirs is not None:
            samples["c", "pytorch-cuda"] = [theirs]
        row, = rows_of(samples, [Cell("c", "", cuda=on)], "cuda")
        return results.judged_aim(row)

    def test_of_the_peer(self):
        self.assertEqual(self.judged(LAUNCHES, 10, theirs=15), "1.50 met")
        self.assertEqual(self.judged(LAUNCHES, 10, theirs=14.9), "1.50 missed")
        self.assertEqual(self.judged(COMPUTES, 100, theirs=98.1), "0.98 met")
        self.assertEqual(self.judged(COMPUTES, 100, theirs=97.9), "0.98 missed")
        self.assertEqual(self.judged(LAUNCHES, 10), "1.50 n/a")

    def test_of_the_bound(self):
        self.assertEqual(self.judged(MOVES, 10, bound=8.6), "85% met")
        self.assertEqual(self.judged(MOVES, 10, bound=8.4), "85% missed")
        self.assertEqual(self.judged(MOVES, 10, theirs=15), "85% n/a")

    def test_no_aim_is_not_judged(self):
        self.assertEqual(self.judged(On(), 10, bound=1), "")
        self.assertEqual(self.judged(On(), 10, theirs=1), "")

    def test_a_cell_has_one_aim_on_a_device_and_what_it_needs(self):
        for cell in CELLS:
            for on in (cell.cpu, cell.cuda):
                aims = [aim for aim in (on.aim_ns, on.aim_bounds, on.aim_ratio) if aim is not None]
                self.assertLessEqual(len(aims), 1, cell.name)

    def test_aims_of_the_peer_are_for_cells_that_it_has(self):
        for cell in CELLS:
            if cell.cuda.aim_ratio is not None or cell.cpu.aim_ratio is not None:
                self.assertIn('    "%s": (' % cell.name, source("pytorch_cells.py"))


class TableTest(unittest.TestCase):

    def test_all_cells_fit_110_columns(self):
        # As wide as figures get, and ratios of two decimals.
        samples = samples_of(CELLS, 1.11e6)
        for line in results.table(rows_of(samples, CELLS)).split("\n"):
            self.assertLessEqual(len(line), 110)

    def test_every_line_has_the_same_columns(self):
        samples = samples_of(CELLS, 123.4)
        del samples[CELLS[0].name, "numpy-1"]
        lines = results.table(rows_of(samples, CELLS)).split("\n")
        self.assertEqual(len(lines), len(CELLS) + 2)
        self.assertEqual({line.count("|") for line in lines}, {10})
        self.assertEqual({len(line) for line in lines}, {len(lines[0])})

    def test_on_a_cpu(self):
        cells = [Cell("sum", "", cpu=On(aim_bounds=1.5)),
                 Cell("pair", "", in_turn="one_by_one", device_count=2), Cell("alone", "")]
        samples = {
            ("sum", "ours"): [4e3], ("sum", "bound"): [3e3], ("sum", "ours_all"): [2e3],
            ("sum", "pytorch-1"): [5e3], ("sum", "numpy-1"): [48e3],
            ("sum", "pytorch-all"): [1.8e3],
            ("pair", "ours"): [4e3], ("pair", "in_turn"): [8e3], ("pair", "pytorch-all"): [4e3],
            ("alone", "ours"): [4e3], ("alone", "ours_all"): [3e3],
        }
        self.assertEqual(results.table(rows_of(samples, cells)), """\
| cell  |   ours |  ± |    aim |  bound |   pytorch-1 |   numpy-1 | ours-all | pytorch-all |
| ----- | -----: | -: | -----: | -----: | ----------: | --------: | -------: | ----------: |
| sum   | 4.00µs |    | 4.50µs | 3.00µs | 5.00µs 1.25 | 48.0µs 12 |   2.00µs | 1.80µs 0.90 |
| pair  | 4.00µs |    |        |        |             |           |          |      4.00µs |
| alone | 4.00µs |    |        |        |             |           |   3.00µs |             |""")

    def test_on_a_gpu_all_cells_fit_80_columns(self):
        rows = rows_of(samples_of(CELLS, 1.11e6, "cuda"), CELLS, "cuda")
        for row in rows:
            row["aim_met"] = None if row["aim_met"] is None else False
        for line in results.table(rows).split("\n"):
            self.assertLessEqual(len(line), 80)

    def test_on_a_gpu(self):
        cells = [Cell("launch", "", cuda=LAUNCHES), Cell("numbers", "", cuda=MOVES),
                 Cell("alone", "")]
        samples = {
            ("launch", "ours"): [4e3], ("launch", "pytorch-cuda"): [8e3],
            ("numbers", "ours"): [4e3], ("numbers", "pytorch-cuda"): [4e3],
            ("numbers", "bound"): [2e3],
            ("alone", "ours"): [4e3],
        }
        rows = rows_of(samples, cells, "cuda")
        self.assertEqual(results.table(rows), """\
| cell    |   ours |  ± | pytorch-cuda |      bound |        aim |
| ------- | -----: | -: | -----------: | ---------: | ---------: |
| launch  | 4.00µs |    |  8.00µs 2.00 |            |   1.50 met |
| numbers | 4.00µs |    |  4.00µs 1.00 | 2.00µs 50% | 85% missed |
| alone   | 4.00µs |    |              |            |            |""")
        self.assertEqual(results.remarks(rows),
                         ["aim missed: numbers takes 4.00µs, aim 2.35µs"])

    def test_the_legend_fits_80_columns(self):
        for device in ("cpu", "cuda:0"):
            lines = results.heading(device, [], [], 10, results.quietness(9, 99, False, 1))[1:]
            for line in "\n".join(lines).split("\n"):
                self.assertLessEqual(len(line), 80)


class MachineTest(unittest.TestCase):

    def test_a_machine_that_is_not_quiet_is_marked(self):
        self.assertNotIn("NOT QUIET", results.quietness(1, 2, True, 0.02))
        self.assertIn("NOT QUIET", results.quietness(1, 2, True, 0.2))

    def test_what_this_process_and_its_children_take_is_its_own(self):
        command = [sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass\n"
                   "print(flush=True)\ninput()"]
        _, before = compare.core_seconds()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            everything, running = compare.core_seconds()
            child.communicate(b"\n")
        _, ended = compare.core_seconds()
        self.assertGreater(running - before, 0.25)
        self.assertGreaterEqual(ended, running)
        self.assertGreater(everything, running)


class ArgumentsTest(unittest.TestCase):

    def refused(self, *words):
        """The error's text."""
        said = io.StringIO()
        with self.assertRaises(SystemExit) as exit_, contextlib.redirect_stderr(said):
            compare.parse_arguments(words)
        self.assertEqual(exit_.exception.code, 2)
        return said.getvalue()

    def test_defaults(self):
        arguments = compare.parse_arguments([])
        self.assertEqual(arguments.device, "cpu")
        self.assertEqual(arguments.rounds, 5)
        self.assertEqual(arguments.cells, CELLS)

    def test_devices(self):
        for word, device in [("cpu", "cpu"), ("cuda", "cuda:0"), ("cuda:0", "cuda:0"),
                             ("cuda:12", "cuda:12")]:
            self.assertEqual(compare.parse_arguments(["--device=" + word]).device, device)
        for word in ("", "cpu:0", "cuda:", "cuda:x", "cuda:0,cuda:1", "gpu"):
            self.assertIn("there are cpu, cuda:0", self.refused("--device=" + word))

    def test_cells_are_picked(self):
        cells = compare.parse_arguments(["--filter=^rand_"]).cells
        self.assertEqual([cell.name for cell in cells], ["rand_1e6", "rand_1e7"])
        self.assertIn("there are: 003_c5 ", self.refused("--filter=nothing"))
        self.assertIn("no regular expression", self.refused("--filter=("))
        self.assertIn("at least 1", self.refused("--rounds=0"))


class CommandsTest(unittest.TestCase):

    def test_the_benchmark_on_a_cpu_has_both_devices(self):
        for count in (1, 2):
            self.assertEqual(compare.device_list("cpu", count), "cpu:0,cpu:1")
        self.assertEqual(compare.device_list("cpu", 4), "cpu:0,cpu:1,cpu:2,cpu:3")

    def test_the_benchmark_on_a_gpu_has_as_many_as_it_needs(self):
        devices = [compare.device_list("cuda:3", cell.device_count)
                   for cell in CELLS if cell.name.startswith("000_In6")]
        self.assertEqual(devices, ["cuda:3", "cuda:3,cuda:3"])

    def test_the_benchmark_warms_up_on_a_gpu(self):
        self.assertEqual(compare.benchmark_command("b", "cpu:0,cpu:1"),
                         ["b", "--devices=cpu:0,cpu:1"])
        self.assertEqual(compare.benchmark_command("b", "cuda:3"),
                         ["b", "--devices=cuda:3", "--benchmark_min_warmup_time=0.1"])

    def test_the_peers(self):
        commands = [compare.peer_command(module, threads, "cuda:3")[1:]
                    for _, module, threads in compare.PEERS["cuda"]]
        self.assertEqual(commands, [
            [os.path.join(compare.HERE, "peer.py"), "pytorch_cells", "0", "cuda:3"]])

    def test_a_command_that_fails_is_told_from_one_that_is_not_there(self):
        command = [sys.executable, "-c", "import sys; print('words'); sys.exit(%s)"]
        self.assertEqual(compare.run_command(command[:2] + [command[2] % "0"]), "words\n")
        with self.assertRaisesRegex(compare.CellError, "(?s)^failed: .*code 1:\nno such device$"):
            compare.run_command(command[:2] + [command[2] % "'no such device'"])
        with self.assertRaisesRegex(compare.CompareError, "No such file"):
            compare.run_command([os.path.join(compare.HERE, "nothing")])

    def test_a_benchmark_that_does_not_start_ends_the_comparison(self):
        with self.assertRaisesRegex(compare.CompareError, "does not start on cuda:0: .*false"):
            compare.check_benchmark("false", "cuda:0")


# A benchmark's binary: each benchmark takes 5 ns on one device, 10 ns beside another.
# The binary notes its starts in a file beside it, ends with code 1 if it is to run "crashes",
# and lasts for ever if there is a file "hangs" and it is started a third time.
BENCHMARK = """\
#!%s
import json, os, re, sys, time
if "--benchmark_list_tests" in sys.argv:
    sys.exit()
with open(sys.argv[0] + ".starts", "a+") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
    file.seek(0)
    if os.path.exists(sys.argv[0] + ".hangs") and len(file.readlines()) >= 3:
        file.close()
        time.sleep(1000)
options = dict(word[2:].split("=", 1) for word in sys.argv[1:])
devices = options["devices"].split(",")
names = re.fullmatch(r"\\^\\((.*)\\)/real_time\\$", options["benchmark_filter"])[1].split("|")
if "crashes" in names:
    sys.exit("a kernel failed")
print(json.dumps({
    "context": {device: "%%s of %%d" %% (device, len(devices)) for device in devices},
    "benchmarks": [{"name": name + "/real_time", "items_per_second": 2e8 / len(devices),
                    "bound_ns": 4, "flop": 18} for name in names]}))
"""


class RoundsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.binary = self.write("benchmark", BENCHMARK % sys.executable)
        os.chmod(self.binary, 0o700)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def starts(self):
        """The --devices of each start."""
        with open(self.binary + ".starts") as file:
            return [re.search(r"--devices=(\S+)", line)[1] for line in file]

    def run_rounds(self, device, cells):
        """Runs two rounds."""
        samples = compare.Samples()
        with contextlib.redirect_stderr(io.StringIO()):
            for _ in range(2):
                samples.run_round(self.binary, device, cells, [], compare.Progress(2))
        return samples

    def test_each_round_runs_ours_on_half_and_on_all_of_the_cores(self):
        cells = [Cell("one", "", cpu=On(bound="bound_one")),
                 Cell("two", "", in_turn="turns", device_count=2)]
        samples = self.run_rounds("cpu", cells)
        self.assertEqual(samples.without, {})
        self.assertEqual(samples.ns, {
            ("one", "ours"): [10, 10], ("one", "bound"): [10, 10], ("one", "ours_all"): [5, 5],
            ("one", "flop"): [18],
            ("two", "ours"): [10, 10], ("two", "in_turn"): [10, 10], ("two", "bound"): [4, 4],
            ("two", "flop"): [18]})
        self.assertEqual(list(samples.devices), ["cpu:0 of 2", "cpu:1 of 2", "cpu:0 of 1"])

    def test_on_a_gpu_ours_runs_once(self):
        samples = self.run_rounds("cuda:0", [Cell("one", "")])
        self.assertEqual(samples.ns, {
            ("one", "ours"): [5, 5], ("one", "bound"): [4, 4], ("one", "flop"): [18]})

    def test_a_round_starts_one_process_for_all_cells_of_a_list_of_devices(self):
        # Loading cuBLAS takes longer than most cells.
        samples = self.run_rounds("cuda:0", CELLS)
        self.assertEqual(samples.without, {})
        lists = ["cuda:0", "cuda:0,cuda:0", "cuda:0,cuda:0,cuda:0,cuda:0"]
        self.assertEqual(self.starts(), 2 * lists)

    def test_a_cell_that_fails_takes_no_other_with_it_and_is_not_run_again(self):
        cells = [Cell("one", ""), Cell("crashes", "")]
        samples = self.run_rounds("cuda:0", cells)
        self.assertRegex(samples.without["crashes"], "(?s)^failed: .*code 1:\na kernel failed$")
        self.assertEqual(samples.ns, {
            ("one", "ours"): [5, 5], ("one", "bound"): [4, 4], ("one", "flop"): [18]})
        self.assertEqual(len(self.starts()), 3 + 1)
        rows = samples.rows("cuda:0", cells, [mock.Mock()])
        self.assertEqual([row["cell"] for row in rows], ["one"])

    def test_sigterm_leaves_what_the_rounds_before_it_have_measured(self):
        for module in ("torch", "numpy"):
            self.write(module + ".py", "raise ModuleNotFoundError(name='%s')" % module)
        self.write("benchmark.hangs", "")
        path = os.path.join(self.folder, "rows.json")
        process = subprocess.Popen(
            [sys.executable, os.path.join(compare.HERE, "compare.py"), "--binary=" + self.binary,
             "--json=" + path, "--filter=^add_1$"],
            env=dict(os.environ, PYTHONPATH=self.folder), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in process.stderr:
            if line.startswith("round 1 of 5 done"):
                break
        process.terminate()
        printed, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("Medians of 1 round;", printed)
        self.assertIn("| add_1 | 10.0ns |", printed)
        with open(path) as file:
            self.assertEqual({row["ours_ns"] for row in json.load(file)}, {10})


class PyTorchTest(unittest.TestCase):

    def test_products_and_convolutions_are_full_float32(self):
        torch = mock.MagicMock(__version__="0")
        torch.nn.Module = object
        modules = {"torch": torch, "torch.nn": torch.nn, "torch.distributed": torch.distributed}
        with mock.patch.dict(sys.modules, modules):
            import pytorch_cells
            pytorch_cells.set_up(1, "cuda:0")
        self.assertIs(torch.backends.cuda.matmul.allow_tf32, False)
        self.assertIs(torch.backends.cudnn.allow_tf32, False)


class CellsTest(unittest.TestCase):

    def test_the_cells_are_those_of_the_benchmark(self):
        names = set(re.findall(r'->Name\("(\w+)"\)', source("cells_benchmark.cc") +
                               source("parallel_cells_benchmark.cc")))
        wanted = set()
        for cell in CELLS:
            wanted |= {name for name in (cell.name, cell.cpu.bound, cell.cuda.bound, cell.in_turn)
                       if name}
        self.assertEqual(names, wanted)

    def test_the_peers_have_no_others(self):
        for module, least in [("pytorch_cells.py", 20), ("numpy_cells.py", 20),
                              ("openmpi_cells.py", 2)]:
            names = set(re.findall(r'^    "(\w+)": \(', source(module), re.MULTILINE))
            self.assertGreaterEqual(len(names), least)
            self.assertLessEqual(names, {cell.name for cell in CELLS})


if __name__ == "__main__":
    unittest.main(verbosity=2)
