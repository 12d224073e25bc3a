#!/usr/bin/env python3
"""Tests which programs run_on_gpu_host.sh packs and runs, with fake ones in their place."""
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

# Data of tests.
GOLDEN = ("common/ops/print_golden.json", "common/nn/tied_golden.json")

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


# Debian's own programs stand for those that Bazel builds.
BAZEL = """\
#!/bin/sh
echo "$*" >> "$0.log"
if [ "$1" = info ]; then echo "${0%/*}/built"; fi
"""


class PackTest(unittest.TestCase):

    def pack(self, folder, newest_glibc):
        def write(name, text, mode=0o600):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, mode)

        write("bazel", BAZEL, 0o700)
        write("objdump", "#!/bin/sh\necho 'GLIBC_2.9 GLIBC_%s GLIBC_2.17'\n" % newest_glibc, 0o700)
        write("chapters/chapters.bzl", 'CHAPTERS = {\n    "a": 1,\n}\n')
        write("third_party/debian-packages.txt", "g++\nlibc6\n")
        for name in ("LICENSE", "NOTICE", "tests/peers/a.py", *GOLDEN):
            write(name, "")
        shutil.copy(os.path.join(HERE, "run_on_gpu_host.sh"), os.path.join(folder, "tests"))
        for name in ("tests/all_tests", "tests/all_benchmarks", "chapters/a/lesson",
                     "common/device/cuda/exit_test_on_devices"):
            path = os.path.join(folder, "built", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy(shutil.which("true"), path)
        return subprocess.run(
            ["tests/run_on_gpu_host.sh", "--pack=d2l.tar.xz", "--archs=none"], cwd=folder,
            env=dict(os.environ, PATH=folder + ":" + os.environ["PATH"]), timeout=60,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_it_starts_on_ubuntu_22_04(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.pack(folder, "2.35")
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("needs GLIBC_2.35\n", done.stdout)
            names = subprocess.run(["tar", "-tJf", "d2l.tar.xz"], cwd=folder, check=True,
                                   stdout=subprocess.PIPE, text=True).stdout.split()
            for name in ("run_on_gpu_host.sh", "bin/lesson_a", "built.txt", "licenses/NOTICE",
                         *GOLDEN):
                self.assertIn("d2l/" + name, names)
            with open(os.path.join(folder, "bazel.log")) as file:
                self.assertIn("build --repo_env=D2L_STATIC_LIBS=1 //tests:all_tests", file.read())

    def test_it_is_not_made_where_it_would_not_start(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.pack(folder, "2.36")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("the pack needs GLIBC_2.36; Ubuntu 22.04, Colab and Kaggle have 2.35",
                          done.stdout)
            self.assertFalse(os.path.exists(os.path.join(folder, "d2l.tar.xz")))


if __name__ == "__main__":
    unittest.main(verbosity=2)
