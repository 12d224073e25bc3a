#!/usr/bin/env python3
"""Output and errors of compile_commands.py, with a fake bazel."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import compile_commands

SCRIPT = os.path.abspath(compile_commands.__file__)


class CompileCommands(unittest.TestCase):

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)
        os.makedirs(self.root + "/tools")
        os.makedirs(self.root + "/bin")
        shutil.copy(SCRIPT, self.root + "/tools")

    def bazel(self, commands):
        with open(self.root + "/bin/bazel", "w") as file:
            file.write("#!/bin/sh\n" + commands + "\n")
        os.chmod(self.root + "/bin/bazel", 0o755)

    def run_script(self, *args):
        done = subprocess.run(
            [sys.executable, self.root + "/tools/compile_commands.py", *args], text=True,
            env={"PATH": self.root + "/bin"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def test_help(self):
        for flag in ("-h", "--help"):
            done = self.run_script(flag)
            self.assertEqual(done.returncode, 0)
            self.assertIn("Usage: tools/compile_commands.py", done.stdout)

    def test_refusals(self):
        done = self.run_script()
        self.assertEqual((done.returncode, done.stderr),
                         (1, "compile_commands.py: bazel is not on PATH.\n"))
        self.bazel("echo 'ERROR: Unrecognized option: --bogus' >&2; exit 2")
        done = self.run_script("--bogus")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Unrecognized option: --bogus\ncompile_commands.py: `bazel aquery ",
                      done.stderr)
        self.assertIn("nothing is written", done.stderr)
        self.assertFalse(os.path.exists(self.root + "/compile_commands.json"))
        self.assertIn("//common is not a flag", self.run_script("//common").stderr)

    def test_knows_an_exercise_by_the_file_that_is_edited(self):
        os.makedirs(self.root + "/x/exercises")
        with open(self.root + "/x/exercises/a.cu", "w"):
            pass
        copy = "bazel-out/k8-opt/bin/x/exercises/emulated/a.cu"
        entry, = compile_commands.commands(
            {"actions": [{"arguments": ["gcc", "-xc++", "-c", copy]}]}, self.root, "/external/")
        self.assertEqual(entry["file"], "x/exercises/a.cu")
        self.assertEqual(entry["arguments"], ["gcc", "-xc++", "-c", "x/exercises/a.cu"])

    def test_writes_each_source_once(self):
        with open(self.root + "/a.cc", "w"):
            pass
        gcc = ["gcc", "-fno-canonical-system-headers", "--include=third_party/precompiled.h",
               "-iquote", "external/x", "-c", "a.cc"]
        graph = {"actions": [{"arguments": gcc}, {"arguments": gcc + ["-fPIC"]},
                             {"arguments": ["gcc", "-c", "generated.cc"]},
                             {"arguments": ["ar", "a.o"]}]}
        self.bazel("[ $1 = info ] && echo /base && exit\nprintf '%%s' '%s'" % json.dumps(graph))
        done = self.run_script("--config=cuda")
        self.assertEqual((done.returncode, done.stdout), (0, "compile_commands.json: 1 files\n"))
        with open(self.root + "/compile_commands.json") as file:
            entries = json.load(file)
        self.assertEqual(entries, [{
            "directory": os.path.realpath(self.root), "file": "a.cc",
            "arguments": ["gcc", "-iquote", "/base/external/x", "-c", "a.cc", "-fPIC"]}])


if __name__ == "__main__":
    unittest.main(verbosity=2)
