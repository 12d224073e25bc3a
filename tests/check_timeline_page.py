#!/usr/bin/env python3
"""Checks the page that WriteHtmlTimeline wrote, in a headless Chromium.

Usage: tests/check_timeline_page.py FILE.html [--screenshots=DIR]

Zooms and drags it with real mouse and key events, in windows of several widths, in light
and in dark. Ends with 77 if there is no Chromium.
"""
import argparse
import json
import os
import sys

from browser import add_options, browser_of

HEIGHT = 760
WIDTHS = (1300, 430)  # a screen, a phone
IN_SIGHT = "blocks.filter((block) => block.rect.style.display === '').length"


class Check:
    def __init__(self, browser, screenshots):
        self.browser = browser
        self.screenshots = screenshots
        self.failures = 0

    def expect(self, what, holds, detail=""):
        if not holds:
            self.failures += 1
            print(f"FAILED: {what}: {detail}")

    def picture(self, name):
        if self.screenshots:
            self.browser.screenshot(os.path.join(self.screenshots, name + ".png"))

    def window(self, width, scheme):
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=HEIGHT,
                          deviceScaleFactor=1, mobile=False)
        self.browser.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme}])
        self.browser.settle()

    def view(self):
        return self.browser.value("[from, from + 1 / zoom]")

    def expect_view(self, what, expected):
        shown = self.view()
        self.expect(what, all(abs(a - b) < 1e-9 for a, b in zip(shown, expected)),
                    f"{shown}, not {expected}")

    def check_looks(self):
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                self.window(width, scheme)
                self.picture(f"{width}-{scheme}")
                self.expect("nothing is wider than the window", self.browser.value(
                    "document.documentElement.scrollWidth") <= width, width)
                self.expect("the picture fills the window", self.browser.value(
                    "number(svg, 'width')") in range(width - 60, width))
        self.window(WIDTHS[0], "light")

    def check_blocks(self):
        """Each lies where its begin and end are, none is outside of the time axis."""
        wrong = self.browser.value("""blocks.filter(({rect, begin, end}) => {
          if (rect.style.display !== '') return end >= from && begin <= from + 1 / zoom;
          const x = number(rect, 'x'), right = x + number(rect, 'width');
          const first = Math.max(xOf(begin), left);
          const last = Math.min(xOf(end), left + axisWidth);
          return Math.abs(x - first) > 0.01 || Math.abs(right - last) > 1.5;
        }).length""")
        self.expect("blocks lie where they belong", wrong == 0, wrong)

    def check_zoom(self):
        self.check_blocks()
        self.expect("everything is in sight at first",
                    self.browser.value(f"{IN_SIGHT} === blocks.length"))
        self.browser.key("+")
        begin, end = self.view()
        self.expect("+ zooms in", 0.6 < end - begin < 0.7, self.view())
        self.browser.key("ArrowRight")
        self.expect("the arrow moves", self.view()[0] > begin, self.view())
        self.check_blocks()
        self.browser.key("ArrowLeft")
        self.expect_view("the other one moves back", [begin, end])
        self.browser.key("0")
        self.expect_view("0 shows everything", [0, 1])

        place = self.browser.value(
            "(({left, top}) => [left + 700, top + 60])(box.getBoundingClientRect())")
        under = self.browser.value("timeAt(700)")
        for _ in range(10):
            self.browser.mouse("mouseWheel", *place, deltaX=0, deltaY=-120)
        self.browser.settle()
        begin, end = self.view()
        self.expect("the wheel zooms in", end - begin < 0.2, self.view())
        self.expect("the wheel zooms about the mouse",
                    abs(self.browser.value("timeAt(700)") - under) < 1e-9)
        self.check_blocks()
        self.picture("zoomed")
        self.browser.mouse("mousePressed", *place, button="left", clickCount=1)
        for moved in (20, 60, 90):
            self.browser.mouse("mouseMoved", place[0] - moved, place[1], button="left",
                               buttons=1)
        self.browser.mouse("mouseReleased", place[0] - 90, place[1], button="left",
                           clickCount=1)
        self.browser.settle()
        self.expect("dragging takes the time along",
                    abs(self.browser.value("timeAt(610)") - under) < 1e-9)
        self.browser.mouse("mouseMoved", place[0] + 50, place[1])
        self.browser.settle()
        self.expect("the mouse drags only while it is pressed",
                    abs(self.browser.value("timeAt(610)") - under) < 1e-9)
        for _ in range(200):
            self.browser.mouse("mouseWheel", *place, deltaX=0, deltaY=-500)
        self.browser.settle()
        begin, end = self.view()
        self.expect("100 ns fill the window at last",
                    abs(self.browser.value("NANOS / zoom") - 100) < 1e-3 or
                    self.browser.value("NANOS") <= 100, self.view())
        self.check_blocks()
        self.browser.value("document.querySelector('[data-key]').click()")
        self.browser.settle()
        self.expect_view("the button shows everything", [0, 1])

    def check_about(self):
        x, y, about = self.browser.value("""(() => {
          const {rect} = blocks.filter(({rect}) => rect.textContent && number(rect, 'width') > 4
              ).pop();
          const {left, top, width, height} = rect.getBoundingClientRect();
          return [left + width / 2, top + height / 2, rect.textContent];
        })()""")
        self.browser.mouse("mouseMoved", x, y)
        self.browser.settle()
        self.expect("the block under the mouse is described",
                    self.browser.value("about.textContent") == about, about)

    def check_events(self, url):
        for event in self.browser.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                self.expect("no exception", False, json.dumps(params)[:600])
            elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
                self.expect("no error in the log", False, params["entry"]["text"])
            elif method == "Network.requestWillBeSent":
                asked = params["request"]["url"]
                self.expect("no other file is asked for", asked == url, asked)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", metavar="FILE.html")
    add_options(parser)
    arguments = parser.parse_args()
    with browser_of(arguments) as browser:
        check = Check(browser, arguments.screenshots)
        check.window(WIDTHS[0], "light")
        url = f"file://{os.path.abspath(arguments.page)}"
        browser.call("Page.navigate", url=url)
        browser.wait_for("Page.loadEventFired")
        browser.settle()
        blocks = browser.value("blocks.length")
        if blocks:
            check.check_looks()
            check.check_zoom()
            check.check_about()
        check.check_events(url)
    print(f"{blocks} blocks, {check.failures} failures")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
