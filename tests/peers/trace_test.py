#!/usr/bin/env python3
"""Opens a program's trace with Holistic Trace Analysis, which is made for PyTorch's."""
import json
import os
import subprocess
import tempfile
import unittest

try:
    from hta.trace_analysis import TraceAnalysis
    MISSING = None
except ImportError as error:
    MISSING = "%s; pip install HolisticTraceAnalysis" % error

BINARY = os.path.abspath("examples/first_program")


@unittest.skipIf(MISSING, MISSING)
class TraceTest(unittest.TestCase):

    def test_the_analysis_finds_kernels_and_ranges(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BINARY], cwd=folder, check=True, timeout=100,
                           stdout=subprocess.DEVNULL,
                           env={**os.environ, "BUILD_WORKING_DIRECTORY": folder})
            path = os.path.join(folder, "trace.json")
            with open(path, encoding="utf-8") as file:
                slices = [event for event in json.load(file)["traceEvents"]
                          if event["ph"] == "X"]
            analysis = TraceAnalysis(trace_files={0: path})
            spent = analysis.get_temporal_breakdown(visualize=False).iloc[0]
            kinds, kernels = analysis.get_gpu_kernel_breakdown(visualize=False)
            ranges = analysis.get_gpu_user_annotation_breakdown(
                use_gpu_annotation=False, visualize=False)
            events = analysis.t.get_trace(0)
        on_devices = [event for event in slices if "stream" in event["args"]]
        self.assertGreater(len(on_devices), 1000)
        self.assertEqual(sum(events["stream"] >= 0), len(on_devices))
        # Each is linked with the call that requested it.
        self.assertEqual(sum(events["index_correlation"] > 0), 2 * len(on_devices))
        self.assertGreater(spent["compute_time(us)"], 0)
        self.assertIn("COMPUTATION", list(kinds["kernel_type"]))
        self.assertIn("matmul", list(kernels["name"]))
        self.assertIn("step", list(ranges["name"]))


if __name__ == "__main__":
    unittest.main()
