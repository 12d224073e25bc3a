#!/usr/bin/env python3
"""Mutation testing of the judges: are small changes of each solution judged wrong?

Usage: tools/mutants.py [NAME...]      all exercises, or these
       tools/mutants.py --minutes=8    a sample, another one for each commit

Changes each solution in one place at a time: a bound, a condition, a number, an
argument, a wait, ... An exercise's mutants are compiled as one file, and each is judged
in a process of its own. A mutant that is judged wrong, that crashes or does not end, is
killed. Mutants that do what the solution does are listed with the reason, in
tools/equal_mutants.txt. Prints how many are made, killed, equal, and have survived, and
ends with an error if fewer than 98 % of those that differ are killed.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

import answers
import exercises

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 40  # of one solution
SAMPLE = 12
BATCH = 4  # exercises that are built at a time
WANTED = 0.98
SLEEP = "std::this_thread::sleep_for(std::chrono::milliseconds(100));"
INCLUDES = "#include <chrono>\n#include <thread>\n"

# The kind, what is replaced, and by what.
RULES = [
    ("bound", r" < ", " <= "), ("bound", r" <= ", " < "),
    ("bound", r" > ", " >= "), ("bound", r" >= ", " > "),
    ("condition", r" < ", " >= "), ("condition", r" > ", " <= "),
    ("condition", r" >= ", " < "), ("condition", r" <= ", " > "),
    ("condition", r" == ", " != "), ("condition", r" != ", " == "),
    ("condition", r" && ", " || "), ("condition", r" \|\| ", " && "),
    ("condition", r" \? ", " && false ? "), ("condition", r" \? ", " || true ? "),
    ("condition", r"!std::", "std::"), ("condition", r"!(\w+\.)", r"\1"),
    ("operator", r" \+ ", " - "), ("operator", r" - ", " + "), ("operator", r" \* ", " + "),
    ("operator", r" / ", " * "), ("operator", r" % ", " / "), ("operator", r" \* ", " / "),
    ("accumulation", r" \+= ", " = "), ("accumulation", r" \+= ", " -= "),
    ("accumulation", r" -= ", " += "), ("accumulation", r" \*= ", " += "),
    ("stride", r"\+\+(\w+)\)", r"\1 += 2)"), ("stride", r"--(\w+)\)", r"\1 -= 2)"),
    ("stride", r" /= 2", " /= 4"), ("stride", r" \+= ([^;{}]+)\) ", r" += 2 * (\1)) "),
    ("stride", r" \*= 2", " *= 4"),
    ("number", r"(?<![\w.])(\d+)(?![\w.])", lambda n: str(int(n[1]) + 1)),
    ("number", r"(?<![\w.])([1-9]\d*)(?![\w.])", lambda n: str(int(n[1]) - 1)),
    ("number", r"(?<![\w.])(\d+\.\d+)", r"(2 * \1)"), ("number", r"-INFINITY", "0"),
    ("number", r"(?<![\w.])0\.0|(?<![\w.])0\.(?!\d)", "1.0"),
    ("arguments", r"(?<!min\()(?<!max\()(?<!fmin\()(?<!fmaxf\()(?<=[\w)]\()"
     r"([^(),;]+), ([^(),;]+)(?=[,)])", r"\2, \1"),
    ("arguments", r", ([^(),;{}]+), ([^(),;{}]+)(?=[,)}])", r", \2, \1"),
    ("index", r"(?<!float tile)(?<!int mine)(?<!float sum)(?<!Vec sums)(?<=\w)\[([^][&=]+)\]",
     r"[\1 + 1]"),
    ("index", r"(?<!float tile)(?<=\w)\[([^][&=]+)\]", r"[0]"),
    ("axis", r"(threadIdx|blockIdx|blockDim|gridDim)\.x", r"\1.y"),
    ("axis", r"(threadIdx|blockIdx|blockDim|gridDim)\.y", r"\1.x"),
    ("axis", r"threadIdx", "blockIdx"), ("axis", r"blockIdx", "threadIdx"),
    ("axis", r"blockDim", "gridDim"), ("axis", r"gridDim", "blockDim"),
    ("function", r"\bmin\b", "max"), ("function", r"\bmax\b", "min"),
    ("function", r"\bfmin\b", "fmax"), ("function", r"\bfmaxf\b", "fminf"),
    ("function", r"kAdd", "kCopy"), ("function", r"kCopy", "kAdd"),
    ("function", r"\btrue\b", "false"), ("function", r"\bfalse\b", "true"),
    ("function", r"\bSum\b", "Max"), ("function", r"\bClone\((\w+)\)", r"\1"),
    ("function", r"OnesLike", "ZerosLike"), ("function", r"ZerosLike", "OnesLike"),
    ("function", r"\blround\b", "ceil"), ("function", r"\bsqrt\b", "cbrt"),
    ("function", r"\bfront\b", "back"), ("function", r"\bsignbit\b", "isnan"),
    ("function", r"\batomicAdd\((&[^,]+), ([^()]+)\)", r"(*(\1) += \2)"),
    ("memory", r"__shared__ ", "static "),
    ("argument dropped", r"(?<=[\w)}>]), ([^(),;{}]+(?:\(\))?)\)", ")"),
    ("result", r"\breturn (?!0;|false;)([^;{}]+);", "return {};"),
    ("result", r"\breturn ([^;{}]+);", r"return (\1) + 1;"),
    ("result", r"\breturn ((?!0;|false;|.* == )[^;]+);", r"return 2 * (\1);"),
    ("string", r"\"(\w+)\W\"", r'"\1"'),
]
COUNTS = re.compile(r"[-+]=|\+\+|--|push|pop|atomicAdd|"
                    r"\b(?:enqueue|more|move|program|send|work)\(")
NUMBERS = ("int", "float", "double")
WAIT = re.compile(r"\bSynchronize\(|\bWait\(|\b__sync\w+\(")


def statements(code):
    """The places of simple statements that could be left out."""
    depth = begin = 0
    for i, letter in enumerate(code):
        depth += (letter in "([") - (letter in ")]")
        if letter in "{}" and depth == 0:
            begin = i + 1
        elif letter == ";" and depth == 0:
            text = code[begin:i + 1]
            start = begin + len(text) - len(text.lstrip())
            controls = re.match(r"\s*(?:else\b\s*)?(?:for|while|if) \(", text)
            declares = re.match(r"\s*(?:const|constexpr|static|using|return|__shared__|"
                                r"[\w:]+(?:<.*>)?[&*]* \w+(?: =|;|\[|\())", text)
            if controls and not declares:  # only what the last parenthesis controls
                yield begin + closing(text, controls.end()), i + 1
            elif not declares and text.strip() != ";":
                yield start, i + 1
            begin = i + 1


def closing(code, begin):
    """Behind the parenthesis that closes the one before `begin`."""
    depth = 1
    while depth:
        depth += (code[begin] == "(") - (code[begin] == ")")
        begin += 1
    return begin


def changed_statements(code):
    """Statements left out, made twice, or in another order; waits that only sleep."""
    simple = list(statements(code))
    for (begin, end), (begin_2, end_2) in zip(simple, simple[1:]):
        between = code[end:begin_2]
        if not between.strip() and "case " not in code[begin:end]:
            yield "order", begin, end_2, code[begin_2:end_2] + between + code[begin:end]
    for begin, end in simple:
        waits = WAIT.search(code, begin, end)
        yield "wait removed" if waits else "removed", begin, end, ";"
        if waits and "__sync" not in waits[0]:
            yield "sleep for a wait", begin, end, SLEEP
        if COUNTS.search(code, begin, end):
            yield "twice", begin, end, "{ " + 2 * (code[begin:end] + " ") + "}"


def changed_function(text, code):
    """Other values of the parameters; what is kept from the first call."""
    name = re.search(r'D2L_ANSWER\("\w+", (\w+)\)', text)[1]
    result, parameters = re.search(rf"\n([^\n]*?) {name}\(([^{{}}]*)\) \{{\n", text).groups()
    kernel = "__global__" in result
    parameters = [re.fullmatch(r"(.*?)[ ]?(&?)(\w+)", p.strip().replace("& ", " &"), re.S).groups()
                  for p in re.split(r",(?![^<(]*[>)])", parameters)]
    for type_, _, name in parameters:
        use = re.compile(rf"(?<![\w.]){name}\b")
        others = [other for other_type, _, other in parameters
                  if other_type == type_ and other != name]
        for match in use.finditer(code):
            for other in others:
                yield "argument", match.start(), match.end(), other
            if (type_ in NUMBERS or type_.endswith("*") or type_ == "const Tensor"
                    and not code.startswith((".shape", ".device", ".numel"), match.end())):
                yield "argument", match.start(), match.end(), f"({name} + 1)"
            if type_ in NUMBERS:
                yield "constant argument", match.start(), match.end(), "2"
        # What refers to the caller's variables cannot be kept from call to call.
        if not kernel and "std::function" not in type_ and "Send" not in type_:
            yield ("first argument", 0, len(code),
                   f"static auto& first_{name} = *new std::decay_t<decltype({name})>({name});\n"
                   + use.sub(f"first_{name}", code))
    if not kernel and result != "void":
        yield ("first result", 0, len(code),
               f"static auto& first_result = *new {result}([&]() -> {result} {{\n"
               f"{code}\n}}());\nreturn first_result;\n")


def changes(text):
    """All (kind, begin, end, replacement) of a solution."""
    first = text.index("// SOLUTION\n") + len("// SOLUTION\n")
    code = re.sub(r"//[^\n]*", lambda m: " " * len(m[0]), text[first:text.index("// END")])
    found = []
    for kind, pattern, replacement in RULES:
        for match in re.finditer(pattern, code):
            new = replacement(match) if callable(replacement) else match.expand(replacement)
            found.append((kind, match.start(), match.end(), new))
    for match in re.finditer(r"\b(if|while) \(", code):
        begin, end = match.end(), closing(code, match.end())
        found.append(("condition", begin, end, f"!({code[begin:end]})"))
    found += changed_statements(code)
    found += changed_function(text, code)
    return [(kind, first + begin, first + end, new) for kind, begin, end, new in found]


class Mutant:
    """One changed solution, named by the first line that is changed in it."""

    def __init__(self, kind, text, begin, end, new):
        changed = text[:begin] + new + text[end:]
        self.kind = kind
        self.text = INCLUDES + changed
        lines = zip(text.split("\n"), changed.split("\n"))
        before, after = next((b.strip(), a.strip()) for b, a in lines if b != a)
        self.name = f"{kind}: " + (f"; instead of {before}" if after == ";" else after)


def mutants_of(solution, most):
    """Up to `most` mutants of a solution, of as many kinds as there are; always the same."""
    text = solution.read_text(encoding="utf-8")
    generator = random.Random(0)
    by_kind, seen = collections.defaultdict(list), set()
    for kind, begin, end, new in changes(text):
        if text[begin:end] == new:
            continue
        mutant = Mutant(kind, text, begin, end, new)
        if mutant.text not in seen:
            by_kind[kind].append(mutant)
        seen.add(mutant.text)
    for mutants in by_kind.values():
        generator.shuffle(mutants)
    chosen, kinds = [], sorted(by_kind)
    while len(chosen) < most and any(by_kind.values()):
        for kind in kinds:
            if by_kind[kind] and len(chosen) < most:
                chosen.append(by_kind[kind].pop())
    return chosen


class Exercise:
    """An exercise, and the mutants of its solution that compile."""

    def __init__(self, exercise):
        self.name, self.folder = exercise.name, exercise.folder
        self.solution = exercise.solution
        self.file = ROOT / self.folder / "mutants" / (self.name + self.solution.suffix)
        self.mutants = []

    def write(self):
        files = [("solution" + self.solution.suffix,
                  self.solution.read_text(encoding="utf-8"))]
        files += [(f"mutant_{self.name}_{i}{self.solution.suffix}", m.text)
                  for i, m in enumerate(self.mutants)]
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(answers.together(files), encoding="utf-8")

    def judge(self, index, seconds):
        """Whether answer `index` is judged right."""
        program = ROOT / "bazel-bin" / self.folder / (self.name + "_mutants")
        try:
            return subprocess.run([program, str(index)], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=seconds,
                                  check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def build(chosen):
    """Builds the mutants' programs. Those that do not compile are left out."""
    for exercise in chosen:
        exercise.write()
    while True:
        done = subprocess.run(
            ["bazel", "build", "--keep_going", "--color=no", "--curses=no", "--noshow_progress",
             "--experimental_ui_max_stdouterr_bytes=-1"]
            + [f"//{e.folder}:{e.name}_mutants" for e in chosen],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode == 0:
            return
        wrong = set(re.findall(r"mutant_(\w+)_(\d+)\.cc?u?:\d+(?::\d+)?: (?:fatal )?error",
                               done.stdout))
        if not wrong:
            sys.exit(done.stdout[-5000:])
        for exercise in chosen:
            kept = [m for i, m in enumerate(exercise.mutants)
                    if (exercise.name, str(i)) not in wrong]
            if len(kept) != len(exercise.mutants):
                exercise.mutants = kept
                exercise.write()


def equal_mutants():
    """The names of mutants that are right, too, by exercise."""
    equal = collections.defaultdict(set)
    text = (ROOT / "tools/equal_mutants.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line and not line.startswith(("#", " ")):
            name, _, changed = line.partition(": ")
            equal[name].add(changed)
    return equal


def judge_all(exercise, jobs):
    """The mutants of an exercise that are judged right."""
    begin = time.monotonic()
    if not exercise.judge(0, 120):
        sys.exit(f"{exercise.name}: the solution is judged wrong")
    seconds = 10 + 10 * (time.monotonic() - begin)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        right = list(pool.map(lambda i: exercise.judge(i + 1, seconds),
                              range(len(exercise.mutants))))
    return [m for m, is_right in zip(exercise.mutants, right) if is_right]


def judge_batches(chosen, minutes, jobs):
    """Yields each exercise with those of its mutants that are judged right."""
    begin = time.monotonic()
    try:
        for first in range(0, len(chosen), BATCH):
            if minutes and time.monotonic() - begin > 60 * minutes * 0.75:
                print(f"{len(chosen) - first} exercises are left for other commits.")
                return
            batch = chosen[first:first + BATCH]
            build(batch)
            for exercise in batch:
                yield exercise, judge_all(exercise, jobs)
    finally:
        for folder in {e.file.parent for e in chosen}:
            shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", help="exercises; none: all")
    parser.add_argument("--minutes", type=float, help="how long it may take, with up to "
                        f"{SAMPLE} mutants of an exercise")
    parser.add_argument("--seed", help="of the sample; else the commit")
    parser.add_argument("--jobs", type=int, default=2, help="judgements at a time")
    options = parser.parse_args()
    seed = options.seed or subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
        check=True).stdout.strip()
    generator = random.Random(seed)
    runnable = [e for e in exercises.all_exercises(ROOT, "en") if not e.is_question]
    unknown = set(options.names) - {e.name for e in runnable}
    if unknown:
        sys.exit(f"There is no exercise {', '.join(sorted(unknown))}.")
    chosen = [Exercise(e) for e in runnable if not options.names or e.name in options.names]
    generator.shuffle(chosen)
    for exercise in chosen:
        mutants = mutants_of(exercise.solution, MOST)
        exercise.mutants = (generator.sample(mutants, min(SAMPLE, len(mutants)))
                            if options.minutes else mutants)
    names = equal_mutants()
    total, kinds = collections.Counter(), collections.Counter()
    for exercise, right in judge_batches(chosen, options.minutes, options.jobs):
        survived = [m for m in right if m.name not in names[exercise.name]]
        counts = {"made": len(exercise.mutants), "killed": len(exercise.mutants) - len(right),
                  "equal": len(right) - len(survived), "survived": len(survived)}
        print(f"{exercise.name:22}" + ", ".join(f"{n:3} {what}" for what, n in counts.items()))
        for mutant in survived:
            print(f"{exercise.name}: {mutant.name}")
        sys.stdout.flush()
        total.update(counts)
        kinds.update(m.kind for m in exercise.mutants)
    print(", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
    print(", ".join(f"{n} {what}" for what, n in total.items()) + f"; seed {seed}")
    return 0 if total["killed"] >= WANTED * (total["killed"] + total["survived"]) else 1


if __name__ == "__main__":
    sys.exit(main())
