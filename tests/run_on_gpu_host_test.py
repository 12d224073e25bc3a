#!/usr/bin/env python3
"""Tests which programs run_on_gpu_host.sh runs, with fake programs in place of the packed ones."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "peers"))

from cells import CELLS

# A suite with a test on every device, and one whose test takes the first.
ALL_TESTS = """\
#!/bin/sh
if [ "$1" = --gtest_list_tests ]; then
  echo "OnAll/AddTest."
  for device in $(echo "$D2L_TEST_DEVICES" | tr , ' '); do echo "  Adds/$device"; done
  echo "TrainerTest."
  echo "  Trains"
else
  echo "$D2L_TEST_DEVICES $1" >> ran
fi
"""

COMPARE = """\
import sys
with open("compared", "a") as file:
    file.write(" ".join(sys.argv[1:]) + "\\n")
"""


class RunnerTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.write("bin/all_tests", ALL_TESTS)
        self.write("bin/all_benchmarks", "#!/bin/sh\n")  # a GPU can be used
        self.write("peers/compare.py", COMPARE)
        self.write("torch.py", "")
        self.write("built.txt", "")
        shutil.copy(os.path.join(HERE, "run_on_gpu_host.sh"), self.folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, 0o700)

    def read(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read().splitlines()

    def run_steps(self, steps):
        """Returns the output."""
        run = subprocess.run(["./run_on_gpu_host.sh", "--steps=" + steps], cwd=self.folder,
                             env=dict(os.environ, PYTHONPATH=self.folder), timeout=60,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(run.returncode, 0, run.stdout)
        return run.stdout

    def test_every_suite_runs_on_gpus_alone(self):
        self.run_steps("tests")
        four = "cuda:0,cuda:0,cuda:0,cuda:0"
        self.assertEqual([line.split(" --gtest_filter=") for line in self.read("ran")], [
            ["cpu:0,cpu:1,cpu:2,cuda:0", "OnAll/AddTest.Adds/cuda:0"],
            ["cpu:0,cpu:1,cpu:2,cuda:0,cuda:0",
             "OnAll/AddTest.Adds/cuda:0:OnAll/AddTest.Adds/cuda:0"],
            [four, ":".join(4 * ["OnAll/AddTest.Adds/cuda:0"])],
            [four, "TrainerTest.Trains"]])

    def test_the_main_cells_are_compared_before_all(self):
        self.run_steps("peers")
        first, second = self.read("compared")
        self.assertIn(" --rounds=1 ", first)
        main = re.search(r"--filter=(\S+)", first)[1]
        named = re.sub(r"[^\w|]", "", main).split("|")
        self.assertEqual(sorted(cell.name for cell in CELLS if re.search(main, cell.name)),
                         sorted(named))
        self.assertNotIn("--filter", second)
        self.assertNotIn("--rounds", second)


if __name__ == "__main__":
    unittest.main(verbosity=2)
