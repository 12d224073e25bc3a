#!/usr/bin/env python3
"""Counts of count_tests.py, and its errors for wrong event files."""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from xml.sax import saxutils

import count_tests


def configured(label, kind="cc_test rule", tags=()):
    return {"id": {"targetConfigured": {"label": label}},
            "configured": {"targetKind": kind, "tag": list(tags)}}


def completed(label, **event):
    return {"id": {"targetCompleted": {"label": label}}, **event}


class CountTests(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def result(self, label, xml, status="PASSED"):
        path = os.path.join(self.folder, label.strip("/:") + ".xml")
        with open(path, "w") as file:
            file.write("<testsuites><testsuite>%s</testsuite></testsuites>" % xml)
        output = {"name": "test.xml", "uri": "file://" + path}
        return {"id": {"testResult": {"label": label, "run": 1}},
                "testResult": {"status": status, "testActionOutput": [output]}}

    def count(self, *lines, exit_code=0):
        """Returns its output, and the totals; each line is an event, or text."""
        events, totals = (os.path.join(self.folder, f) for f in ("events", "totals"))
        with open(events, "w") as file:
            for line in lines:
                file.write((line if isinstance(line, str) else json.dumps(line)) + "\n")
        done = subprocess.run(
            [sys.executable, count_tests.__file__, "--step=plain", "--exit_code=%d" % exit_code,
             "--events=" + events, "--totals=" + totals], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(totals) as file:
            return done.stdout, file.read()

    def test_googletest(self):
        xml = ('<testcase classname="A" name="Ok" status="run"/>'
               '<testcase classname="A" name="Bad"><failure message="a.cc:1&#10;1 is not 2"/>'
               '</testcase><testcase classname="A" name="Later" status="notrun"/>'
               '<testcase classname="A" name="Gpu"><skipped message="a.cc:2&#10;no GPU"/></testcase>')
        printed, totals = self.count(
            configured("//:a"), self.result("//:a", xml, "FAILED"), exit_code=3)
        self.assertEqual(totals, "1 1 2\n")
        self.assertIn("FAILED   //:a A.Bad: a.cc:1 | 1 is not 2\n", printed)
        self.assertIn("SKIPPED  //:a A.Gpu: no GPU\n", printed)
        self.assertIn("SKIPPED  //:a A.Later: disabled in the source\n", printed)
        self.assertIn("[plain] 1 passed; 1 failed; 2 skipped\n", printed)

    def test_unittest(self):
        log = ("test_a (b_test.B) ... ok\ntest_c (b_test.B) ... skipped 'no terminal'\n"
               "test_d (b_test.B) ... FAIL\n=====\nFAIL: test_d (b_test.B)\n-----\nwhy\n"
               "Ran 3 tests in 0.1s\n\nFAILED (failures=1, skipped=1)\n")
        xml = '<testcase name="b"/><system-out>%s</system-out>' % saxutils.escape(log)
        printed, totals = self.count(self.result("//:b", xml, "FAILED"), exit_code=3)
        self.assertEqual(totals, "1 1 1\n")
        self.assertIn("SKIPPED  //:b test_c (b_test.B): no terminal\n", printed)
        self.assertIn("FAILED   //:b test_d (b_test.B)", printed)

    def test_targets(self):
        said, totals = self.count(
            configured("//:f", tags=["fuzz"]), completed("//:f", aborted={"reason": "SKIPPED"}),
            configured("//:g"), completed("//:g", completed={}),
            configured("//:h"), completed("//:h", completed={"success": True}),
            self.result("//:h", "", "TIMEOUT"), self.result("//:i", ""),
            configured("//:j", kind="script_test rule", tags=["needs:a library"]),
            completed("//:j", aborted={"reason": "SKIPPED"}), exit_code=1)
        self.assertEqual(totals, "1 2 2\n")
        self.assertIn("SKIPPED  //:j: needs a library\n", said)
        self.assertIn("only built with --config=fuzz", said)
        self.assertIn("//:g: does not build", said)
        self.assertIn("//:h: TIMEOUT, outside of its test cases", said)

    def test_bazel_that_failed(self):
        self.assertIn("plain: bazel exited with 2", self.count(exit_code=2)[0])

    def test_lines_that_are_no_events(self):
        good = self.result("//:a", '<testcase classname="A" name="Ok"/>')
        for line in ("", "{", '{"id": {"testRes'):
            said, totals = self.count(good, line)
            self.assertTrue(totals.endswith("1 1 0\n"), line)
            self.assertIn("its line 2 is no build event", said)

    def test_file_that_is_not_there(self):
        counts = count_tests.Counts()
        with contextlib.redirect_stdout(io.StringIO()) as said:
            count_tests.count(os.path.join(self.folder, "nothing"), counts)
        self.assertIn("No such file or directory", said.getvalue())
        self.assertEqual((counts.passed, counts.failed), (0, 1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
