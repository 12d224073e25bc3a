#!/usr/bin/env python3
"""Tests of tools/mutants.py: the changes that it makes of a solution."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import mutants  # noqa: E402

SOLUTION = """namespace d2l {
namespace {

float Sum(const std::vector<float>& xs, int first, Device device) {
  // SOLUTION
  // At least one: i < 7.
  float sum = 0;
  for (std::size_t i = first; i < xs.size(); ++i) sum += xs[i];
  Synchronize(device);
  return sum;
  // END
}

D2L_ANSWER("sum", Sum);
"""


def names_of(most):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "sum.cc"
        file.write_text(SOLUTION, encoding="utf-8")
        return [m.name for m in mutants.mutants_of(file, most)]


class MutantsTest(unittest.TestCase):

    def test_changes_of_each_kind(self):
        made = names_of(100)
        for kind, line in [
                ("bound", "for (std::size_t i = first; i <= xs.size(); ++i) sum += xs[i];"),
                ("condition", "for (std::size_t i = first; i >= xs.size(); ++i) sum += xs[i];"),
                ("accumulation", "for (std::size_t i = first; i < xs.size(); ++i) sum -= xs[i];"),
                ("stride", "for (std::size_t i = first; i < xs.size(); i += 2) sum += xs[i];"),
                ("index", "for (std::size_t i = first; i < xs.size(); ++i) sum += xs[i + 1];"),
                ("number", "float sum = 1;"),
                ("constant argument",
                 "for (std::size_t i = 2; i < xs.size(); ++i) sum += xs[i];"),
                ("first argument", "static auto& first_device = "
                 "*new std::decay_t<decltype(device)>(device);"),
                ("removed", "for (std::size_t i = first; i < xs.size(); ++i);"),
                ("wait removed", "; instead of Synchronize(device);"),
                ("sleep for a wait", mutants.SLEEP),
                ("result", "return {};"),
                ("first result", "static auto& first_result = *new float([&]() -> float {")]:
            self.assertIn(f"{kind}: {line}", made)
        self.assertFalse([name for name in made if "At least" in name])

    def test_some_are_of_as_many_kinds_as_they_can(self):
        some = names_of(8)
        self.assertEqual(len({name.split(":")[0] for name in some}), 8)
        self.assertEqual(some, names_of(8))

    def test_every_exercise_has_mutants(self):
        for exercise in mutants.exercises.all_exercises(mutants.ROOT, "en"):
            if not exercise.is_question:
                made = mutants.mutants_of(exercise.solution, 100)
                self.assertGreater(len(made), 3, exercise.name)  # one line

    def test_equal_mutants_are_mutants(self):
        names = {e.name: {m.name for m in mutants.mutants_of(e.solution, 1000)}
                 for e in mutants.exercises.all_exercises(mutants.ROOT, "en")
                 if not e.is_question}
        for name, equal in mutants.equal_mutants().items():
            self.assertFalse(equal - names.get(name, set()), name)


if __name__ == "__main__":
    unittest.main()
