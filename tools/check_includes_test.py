#!/usr/bin/env python3
"""Uses that check_includes.py finds, and texts that are no uses."""
import os
import subprocess
import sys
import tempfile
import unittest

import check_includes

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_includes.py")


def problems(text, own_header=""):
    return list(check_includes.problems("foo.cc", text, own_header))


class CheckIncludesTest(unittest.TestCase):

    def test_a_name_without_its_header_is_a_problem(self):
        text = 'absl::StatusOr<int> F() { return absl::InternalError(absl::StrCat("a", 1)); }'
        self.assertEqual(problems('#include "absl/strings/str_cat.h"\n' + text), [
            'foo.cc uses absl::InternalError without #include "absl/status/status.h"',
            'foo.cc uses absl::StatusOr without #include "absl/status/statusor.h"'])

    def test_macros_are_names(self):
        self.assertEqual(problems("int x ABSL_GUARDED_BY(mutex);"), [
            'foo.cc uses ABSL_GUARDED_BY without #include "absl/base/thread_annotations.h"'])

    def test_its_own_header_may_bring_it(self):
        self.assertEqual(problems("absl::Span<int> x;", '#include "absl/types/span.h"\n'), [])

    def test_a_program_with_one_header_for_all_needs_no_other(self):
        self.assertEqual(problems('#include "common/d2l.h"\nabsl::Status x;'), [])

    def test_comments_and_strings_are_no_uses(self):
        for text in ("// absl::Span", 'f("absl::Span");', 'f(R"cc(\nabsl::Span "x\n)cc");',
                     "char c = '\"';  // absl::Span\"", r'f("\"absl::Span");'):
            self.assertEqual(problems(text), [])
        self.assertEqual(len(problems("char c = '\"'; absl::Span<char> x; c = '\"';")), 1)

    def test_a_name_that_it_does_not_know_is_a_problem(self):
        self.assertEqual(problems("absl::SomethingNew x;"), [
            "foo.cc uses absl::SomethingNew, whose header tools/check_includes.py does not know"])

    def test_exits_with_1_if_there_is_a_problem(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a_test.cc")
            with open(path, "w") as file:
                file.write("absl::Span<int> x;\n")
            run = subprocess.run([sys.executable, SCRIPT, path], stdout=subprocess.PIPE, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn("a_test.cc uses absl::Span", run.stdout)
            with open(os.path.join(folder, "a.h"), "w") as file:
                file.write('#include "absl/types/span.h"\n')
            self.assertEqual(subprocess.run([sys.executable, SCRIPT, path]).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
