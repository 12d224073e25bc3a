#!/usr/bin/env python3
"""Counts the test cases of one bazel run from its build events.

Usage: tools/count_tests.py --step=NAME --exit_code=N --events=FILE [--totals=FILE]

FILE is what `bazel test --build_event_json_file=FILE` wrote.  Only tests that
the file names are counted, so results of earlier runs in bazel-testlogs are
not; but run this before the next bazel command overwrites the XML files.

Prints what failed, and what was skipped with the reason; then one line of
counts.  Appends "PASSED FAILED SKIPPED" to the totals file.
"""
import argparse
import json
import re
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


class Counts:

    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def fail(self, what, why):
        self.failed += 1
        print("  FAILED   %s: %s" % (what, why))

    def skip(self, what, why):
        self.skipped += 1
        print("  SKIPPED  %s: %s" % (what, why))


def one_line(text, without_place=False):
    """GoogleTest's message: the place in the source, then the text."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    if without_place and len(lines) > 1:
        lines = lines[1:]
    return " | ".join(lines)[:300] or "no reason given"


def xml_path(result):
    for output in result.get("testActionOutput", []):
        if output.get("name") == "test.xml":
            return urllib.parse.unquote(urllib.parse.urlparse(output.get("uri", "")).path)
    return None


def count_unittest(label, log, counts):
    """Counts the cases of Python's unittest in a test's log; False if there are none."""
    ran = re.search(r"^Ran (\d+) tests? in ", log or "", re.MULTILINE)
    if not ran:
        return False
    skipped = re.findall(r"^(.*) \.\.\. skipped ['\"](.*)['\"]$", log, re.MULTILINE)
    failed = sorted(set(re.findall(r"^(?:FAIL|ERROR): (\S+ \S+)", log, re.MULTILINE)))
    for name, why in skipped:
        counts.skip("%s %s" % (label, name), one_line(why))
    for name in failed:
        counts.fail("%s %s" % (label, name), "see its log")
    counts.passed += int(ran[1]) - len(skipped) - len(failed)
    return True


def count_cases(label, path, counts):
    """Counts one test.xml; False if it has nothing to count."""
    try:
        xml = ElementTree.parse(path)
    except (OSError, TypeError, ElementTree.ParseError):
        return False
    cases = list(xml.iter("testcase"))
    # For other tests than GoogleTest's, Bazel writes one case, the target, and its log.
    if len(cases) == 1 and count_unittest(
            label, "".join(log.text or "" for log in xml.iter("system-out")), counts):
        return True
    for case in cases:
        suite = case.get("classname")
        name = "%s %s.%s" % (label, suite, case.get("name")) if suite else label
        broken = [e for tag in ("failure", "error") for e in case.findall(tag)]
        skipped = case.find("skipped")
        if broken:
            counts.fail(name, one_line(broken[0].get("message")))
        elif skipped is not None:
            counts.skip(name, one_line(skipped.get("message"), without_place=True))
        elif case.get("status") == "notrun":
            counts.skip(name, "disabled in the source")
        else:
            counts.passed += 1
    return bool(cases)


def count_result(label, result, counts):
    """Counts one run of a test target (one shard of it, if it is sharded)."""
    status = result.get("status", "NO_STATUS")
    passed = status in ("PASSED", "FLAKY")
    failed_before = counts.failed
    counted = count_cases(label, xml_path(result), counts)
    if not passed and counts.failed == failed_before:
        # No case failed, but the target: a leak found at exit, a time limit, a lost
        # file.
        counts.fail(label, "%s, outside of its test cases" % status)
    elif passed and not counted:
        counts.passed += 1


def why_left_out(tags):
    """Why a build leaves a target with these tags out."""
    needs = [tag[len("needs:"):] for tag in tags if tag.startswith("needs:")]
    if needs:
        return "needs " + ", ".join(needs)
    return "only built with --config=" + ("fuzz" if "fuzz" in tags else "cuda")


class Events:
    """The results of tests in the events of one bazel run."""

    def __init__(self):
        self.tests = {}  # label -> tags
        self.results = {}  # label, run and shard -> the last attempt

    def add(self, event, counts):
        for kind, ident in event.get("id", {}).items():
            if kind == "targetConfigured":
                configured = event.get("configured", {})
                if configured.get("targetKind", "").endswith("_test rule"):
                    self.tests[ident["label"]] = configured.get("tag", [])
            elif kind == "targetCompleted":
                label, aborted = ident["label"], event.get("aborted", {})
                if aborted.get("reason") == "SKIPPED":
                    if label in self.tests:
                        counts.skip(label, why_left_out(self.tests[label]))
                elif not event.get("completed", {}).get("success"):
                    counts.fail(label, "does not build")
            elif kind == "testResult":
                key = ident["label"], ident.get("run", 0), ident.get("shard", 0)
                self.results[key] = event["testResult"]


def count(path, counts):
    events = Events()
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = f.read().splitlines()
    except OSError as error:
        counts.fail(path, error.strerror)
        return
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
        except ValueError:  # bazel was killed while writing
            counts.fail(path, "its line %d is no build event" % number)
            continue
        events.add(event, counts)
    for (label, _, _), result in sorted(events.results.items()):
        count_result(label, result, counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--step", required=True)
    parser.add_argument("--exit_code", type=int, required=True)
    parser.add_argument("--events", required=True)
    parser.add_argument("--totals")
    args = parser.parse_args()

    counts = Counts()
    count(args.events, counts)
    if args.exit_code != 0 and counts.failed == 0:
        counts.fail(args.step, "bazel exited with %d" % args.exit_code)
    print("[%s] %d passed; %d failed; %d skipped" % (
        args.step, counts.passed, counts.failed, counts.skipped))
    if args.totals:
        with open(args.totals, "a", encoding="utf-8") as f:
            f.write("%d %d %d\n" % (counts.passed, counts.failed, counts.skipped))


if __name__ == "__main__":
    sys.exit(main())
