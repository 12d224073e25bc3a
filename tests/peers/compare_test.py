"""What compare.py computes and prints, without running anything.

    python3 -m unittest discover -s tests/peers -p '*_test.py'
"""
import re
import unittest

import compare
from cells import CELLS, Cell


def samples_of(cells, ns):
    """All of `ns` for ours and for every peer, as long as 3 rounds."""
    samples = {}
    for cell in cells:
        for who in ["ours"] + [peer for peer, _, _ in compare.PEERS]:
            samples[cell.name, who] = [ns] * 3
        if cell.bound:
            samples[cell.name, "bound"] = [ns / cell.bound_items] * 3
        if cell.in_turn:
            samples[cell.name, "in_turn"] = [2 * ns] * 3
    return samples


class NumbersTest(unittest.TestCase):

    def test_duration(self):
        for ns, text in [
            (None, ""), (0.6249, "0.62ns"), (9.996, "10.0ns"), (180, "180ns"), (999.4, "999ns"),
            (999.6, "1.00µs"), (12345, "12.3µs"), (4e6, "4.00ms"), (2.5e9, "2.50s"),
        ]:
            self.assertEqual(compare.duration(ns), text)

    def test_times(self):
        self.assertEqual(compare.times(0.954), "0.95")
        self.assertEqual(compare.times(9.994), "9.99")
        self.assertEqual(compare.times(9.996), "10")
        self.assertEqual(compare.times(37.4), "37")

    def test_median_and_spread(self):
        self.assertEqual(compare.median([3, 100, 1, 2, 4]), 3)
        self.assertIsNone(compare.median(None))
        # The quartiles of 1..5 are 2 and 4.
        self.assertAlmostEqual(compare.spread([5, 1, 4, 2, 3]), 1 / 3)
        self.assertIsNone(compare.spread([1]))
        self.assertIsNone(compare.spread(None))


class BenchmarksTest(unittest.TestCase):

    def test_reads_ns_per_item(self):
        output = {"benchmarks": [{"name": "a/real_time", "items_per_second": 2e6}]}
        self.assertEqual(compare.read_benchmarks(output, ["a"]), {"a": 500})

    def test_an_error_in_a_benchmark_is_one(self):
        output = {"benchmarks": [
            {"name": "a/real_time", "error_occurred": True, "error_message": "not equal"}]}
        with self.assertRaisesRegex(compare.CompareError, "a/real_time: not equal"):
            compare.read_benchmarks(output, ["a"])

    def test_what_did_not_run_is_an_error(self):
        with self.assertRaisesRegex(compare.CompareError, "does not have a, b"):
            compare.read_benchmarks({"benchmarks": []}, ["b", "a"])


class RowsTest(unittest.TestCase):

    def test_a_row_per_cell_and_peer(self):
        cell = Cell("c", "product", aim_bounds=1.1, bound="bound_x", bound_items=10, flop=400)
        samples = {
            ("c", "ours"): [100, 200, 900],
            ("c", "bound"): [8, 9, 10],
            ("c", "pytorch-1"): [300, 500, 400],
        }
        one, every, numpy = compare.make_rows(samples, [cell])
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

    def test_without_aim_and_bound(self):
        row = compare.make_rows({("c", "ours"): [1]}, [Cell("c", "sum")])[0]
        self.assertIsNone(row["aim_ns"])
        self.assertIsNone(row["bound_ns"])

    def test_two_devices(self):
        cell = Cell("c", "pair", in_turn="other")
        samples = {("c", "ours"): [10], ("c", "in_turn"): [19]}
        rows = compare.make_rows(samples, [cell])
        self.assertAlmostEqual(rows[0]["speed_up_over_in_turn"], 1.9)
        self.assertIn("c: 1.90 times", compare.remarks(rows)[0])

    def test_missed_aims_are_named(self):
        cells = [Cell("met", "", aim_ns=100), Cell("missed", "", aim_ns=99)]
        samples = {("met", "ours"): [100], ("missed", "ours"): [100]}
        self.assertEqual(compare.remarks(compare.make_rows(samples, cells)),
                         ["aim missed: missed takes 100ns, aim 99.0ns"])


class TableTest(unittest.TestCase):

    def test_all_cells_fit_100_columns(self):
        # As wide as figures get, and ratios of two decimals.
        samples = samples_of(CELLS, 1.11e6)
        for line in compare.table(compare.make_rows(samples, CELLS)).split("\n"):
            self.assertLessEqual(len(line), 100)

    def test_every_line_has_the_same_columns(self):
        samples = samples_of(CELLS, 123.4)
        del samples[CELLS[0].name, "numpy-1"]
        lines = compare.table(compare.make_rows(samples, CELLS)).split("\n")
        self.assertEqual(len(lines), len(CELLS) + 2)
        self.assertEqual({line.count("|") for line in lines}, {9})
        self.assertEqual({len(line) for line in lines}, {len(lines[0])})


class CellsTest(unittest.TestCase):

    def test_the_cells_are_those_of_the_benchmark(self):
        with open(compare.HERE + "/cells_benchmark.cc") as source:
            names = set(re.findall(r'->Name\("(\w+)"\)', source.read()))
        wanted = set()
        for cell in CELLS:
            wanted |= {name for name in (cell.name, cell.bound, cell.in_turn) if name}
        self.assertEqual(names, wanted)

    def test_the_peers_have_no_others(self):
        for peer in ("pytorch_cells.py", "numpy_cells.py"):
            with open(compare.HERE + "/" + peer) as source:
                names = set(re.findall(r'^    "(\w+)": \(', source.read(), re.MULTILINE))
            self.assertGreater(len(names), 20)
            self.assertLessEqual(names, {cell.name for cell in CELLS})


if __name__ == "__main__":
    unittest.main()
