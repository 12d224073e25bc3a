#!/usr/bin/env python3
"""Checks the page that WriteHtmlTimeline wrote, in a headless Chromium.

Usage: tests/check_timeline_page.py FILE.html [--lang=zh] [--screenshots=DIR]
           [--chromium=PATH]

It looks for JavaScript errors and for requests of other files, then zooms,
moves, hovers, selects and searches with real mouse and key events, and compares
what the page shows with the data in the file. The time that drawing took is
printed, not judged.

Exits with 0 if all is well, 1 if not, and 77, "not checked", if there is no
Chromium (Debian: sudo apt-get install chromium). Needs only Python's library.
"""
import argparse
import json
import os
import re
import sys

from browser import HEIGHT, WIDTH, add_options, browser_of


class Check:
    def __init__(self, browser, data, language, screenshots):
        self.browser = browser
        self.language = language
        self.on_the_device = "on the device" if language == "en" else "在设备上"
        self.data = data
        self.screenshots = screenshots
        self.failures = 0
        spans = data["spans"]
        self.count = len(spans["kind"])
        self.names = [data["texts"][i] for i in spans["name"]]
        self.has_work = [stream >= 0 and measured == 0 for stream, measured
                         in zip(spans["stream"], spans["device_time"])]

    def expect(self, what, ok, detail=""):
        if not ok:
            self.failures += 1
            print(f"FAILED: {what} {detail}")

    def picture(self, name):
        if self.screenshots:
            self.browser.screenshot(os.path.join(self.screenshots, name + ".png"))

    def view(self):
        return self.browser.value("[view.from, view.to]")

    def text(self, element):
        return self.browser.value(
            f"document.getElementById({json.dumps(element)}).textContent")

    def is_hidden(self, element):
        return self.browser.value(
            f"document.getElementById({json.dumps(element)}).hidden")

    def place_on_page(self, x, y):
        box = self.browser.value(
            "(({left, top}) => [left, top])(canvas.getBoundingClientRect())")
        return box[0] + x, box[1] + y

    def terms(self, element):
        return self.browser.value(f"[...document.querySelectorAll('#{element} dt')]"
                                  ".map((term) => term.textContent)")

    def check_terms(self, element):
        terms = self.terms(element)
        self.expect("the terms are in the page's language", terms and all(
            term.isascii() == (self.language == "en") for term in terms), terms)

    def check_texts(self):
        self.expect("title", self.text("title") == self.data["title"])
        self.expect("number of calls",
                    self.text("summary").startswith(f"{self.count:,} call")
                    if self.language == "en" else
                    f"共{self.count:,}次调用" in self.text("summary"),
                    self.text("summary"))
        self.expect("the language", self.browser.value(
            "[document.documentElement.lang, ...new Set([...document.querySelectorAll("
            "'span[lang]')].filter((span) => span.getClientRects().length)"
            ".map((span) => span.lang))]") == [self.language] * 2)
        self.expect("the threads are named in the page's language", self.browser.value(
            "data.threads.every((name) => /^(front end|前端)/.test(name) && "
            "name.startsWith(say('front end')))"))
        for element in ("notes", "devices"):
            shown = self.browser.value(
                f"[...document.querySelectorAll('#{element} li')]"
                ".map((item) => item.textContent)")
            self.expect(element, shown == self.data[element], shown)

    def check_zoom(self):
        self.picture("full")
        everything = self.view()
        for key, back in (("w", "s"), ("ArrowUp", "ArrowDown")):
            self.browser.key("0")
            self.browser.key(key)
            closer = self.view()
            self.expect(f"{key} zooms in",
                        closer[1] - closer[0] < 0.9 * (everything[1] - everything[0]))
            self.browser.key(back)
            self.expect(f"{back} zooms out",
                        self.view()[1] - self.view()[0] > closer[1] - closer[0])
        for key, back in (("d", "a"), ("ArrowRight", "ArrowLeft")):
            self.browser.key("0")
            self.browser.key("w")
            before = self.view()
            self.browser.key(key)
            self.expect(f"{key} moves on", self.view()[0] > before[0])
            self.browser.key(back)
            self.expect(f"{back} moves back", abs(self.view()[0] - before[0]) < 1)
        self.browser.key("0")
        self.expect("0 shows everything", self.view() == everything)

        x = 700
        page_x, page_y = self.place_on_page(x, 60)
        under = self.browser.value(f"timeAt({x})")
        for _ in range(5):
            self.browser.mouse("mouseWheel", page_x, page_y, deltaX=0, deltaY=-120)
        self.browser.settle()
        closer = self.view()
        self.expect("the wheel zooms in",
                    closer[1] - closer[0] < 0.6 * (everything[1] - everything[0]))
        tolerance = 1e-6 * (everything[1] - everything[0])
        self.expect("the wheel zooms about the mouse",
                    abs(self.browser.value(f"timeAt({x})") - under) < tolerance)
        self.picture("zoomed")
        self.browser.mouse("mousePressed", page_x, page_y, button="left", clickCount=1)
        for moved in (20, 60, 90):
            self.browser.mouse("mouseMoved", page_x - moved, page_y, button="left",
                               buttons=1)
        self.browser.mouse("mouseReleased", page_x - 90, page_y, button="left",
                           clickCount=1)
        self.browser.settle()
        self.expect("dragging takes the time along",
                    abs(self.browser.value(f"timeAt({x - 90})") - under) < tolerance)
        self.expect("dragging selects nothing", self.is_hidden("panel"))
        self.browser.key("0")

    def check_calls(self):
        """Selects calls by key, looks at them, and finds them by mouse."""
        last = min(self.count, 60)
        for i in range(last):
            self.browser.key("n")
            self.browser.key("f")
            name = self.names[i]
            self.expect("n selects the next call",
                        self.browser.value("selected") == i, f"{i}: {name}")
            self.expect("the panel names it", self.text("panel-name") == name)
            self.expect("the panel has its device time",
                        (self.on_the_device in self.terms("panel")) ==
                        self.has_work[i], f"{i}: {name}")
            self.check_terms("panel")
            self.check_slice(i, name, "hostBegin", "hostEnd",
                             "rowY(requestRow(selected)) + level[selected] * LANE_HEIGHT")
            if self.has_work[i]:
                self.check_slice(i, name, "workBegin", "workEnd",
                                 "rowY(workRow(selected))")
        if last:
            self.picture("selected")
            shown = [i for i in range(last) if self.has_work[i]]
            if shown:
                self.browser.value(f"select({shown[len(shown) // 2]}); zoomToSelected()")
                self.browser.key("s")
                self.browser.key("s")
                self.browser.key("s")
                self.picture("arrow")
        self.browser.key("Escape")
        self.expect("Escape closes the panel", self.is_hidden("panel"))

    def check_slice(self, i, name, begin, end, top):
        """The slice is drawn where it belongs; the mouse finds it there."""
        # A position cannot tell a slice of no duration from the slice around
        # it.
        left, right, y, height = self.browser.value(
            f"[Math.max(xOf({begin}[selected]), GUTTER), "
            f"Math.min(xOf({end}[selected]), width), {top}, height]")
        if right - left < 6 or y < 24 or y + 19 > height:
            return
        x = (left + right) / 2
        page_x, page_y = self.place_on_page(x, y + 9)
        self.browser.mouse("mouseMoved", page_x, page_y)
        self.browser.settle()
        tooltip = "" if self.is_hidden("tooltip") else self.text("tooltip")
        if i == min(self.count, 60) // 2:
            self.picture("tooltip")
        self.expect("the tooltip tells its name", tooltip.startswith(name),
                    f"{i}: {name}, not {tooltip}")
        self.expect("the tooltip tells its device time",
                    (self.on_the_device in self.terms("tooltip")) ==
                    self.has_work[i], tooltip)
        self.check_terms("tooltip")
        # Beside the text and the frame: near the lower edge.
        drawn, empty = self.browser.value(
            "((ratio, hex) => [[...pen.getImageData("
            f"{x} * ratio, {y + 14} * ratio, 1, 1).data].slice(0, 3), "
            "[1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16))])"
            "(devicePixelRatio, colours.stripe)")
        self.expect("the slice is drawn", drawn != empty, f"{i}: {name} {drawn}")
        self.browser.click(page_x, page_y)
        self.expect("a click selects it",
                    self.browser.value("selected") == i, f"{i}: {name}")

    def check_search(self):
        # Line ends and the like cannot be typed.
        for name in sorted(filter(str.isprintable, set(self.names)))[:10]:
            self.browser.key("Escape")
            self.browser.key("/")
            part = name[1:].strip() or name
            self.browser.call("Input.insertText", text=part)
            self.browser.settle()
            matching = [i for i in range(self.count)
                        if part.strip().lower() in self.names[i].lower()]
            self.expect("the search counts",
                        self.text("found") ==
                        (f"{len(matching):,} of {self.count:,} calls"
                         if self.language == "en" else
                         f"{self.count:,}次调用中有{len(matching):,}次"),
                        f"{name}: {self.text('found')}, not {len(matching)}")
            self.browser.key("Enter")
            self.expect("Enter selects the first match",
                        self.browser.value("selected") == matching[0], name)
        if self.count:
            self.browser.key("Escape")
            self.browser.key("0")
            self.browser.key("/")
            middle = sorted(set(self.names))[len(set(self.names)) // 2]
            self.browser.call("Input.insertText", text=middle)
            self.browser.settle()
            self.picture("search")
        self.browser.key("Escape")
        self.expect("Escape ends the search", self.text("found") == "")

    def check_looks(self):
        self.browser.key("0")
        if self.count:
            self.browser.key("n")
            self.browser.key("f")
        self.browser.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark"}])
        self.browser.settle()
        self.expect("dark colours are followed",
                    self.browser.value("colours.dark"))
        self.picture("dark")
        self.browser.call("Emulation.setEmulatedMedia", features=[])
        self.browser.key("Escape")
        self.browser.key("0")
        self.expect("nothing is wider than the window",
                    self.browser.value("document.documentElement.scrollWidth") <= WIDTH)

    def measure(self):
        times = self.browser.value("""(() => {
          const times = [];
          showEverything();
          for (let k = 0; k < 60; ++k) {
            const before = performance.now();
            draw();
            pen.getImageData(0, 0, 1, 1);  // waits for it
            times.push(performance.now() - before);
            zoom(1 / 1.3, duration / 2);
          }
          showEverything();
          return times;
        })()""")
        print(f"{self.count:,} calls; drawing everything takes {times[0]:.1f} ms, "
              f"while zooming in {sorted(times)[len(times) // 2]:.1f} ms (median), "
              f"at most {max(times):.1f} ms")

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
        self.expect("the page reports no error", self.text("error") == "",
                    self.text("error"))


def embedded_data(path):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    return json.loads(re.search(
        r'<script id="profile" type="application/json">(.*?)</script>', page,
        re.DOTALL).group(1))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", metavar="FILE.html")
    parser.add_argument("--lang", default="en", choices=["en", "zh"],
                        help="the language to show it in")
    add_options(parser)
    arguments = parser.parse_args()
    data = embedded_data(arguments.page)
    with browser_of(arguments) as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=WIDTH,
                     height=HEIGHT, deviceScaleFactor=1, mobile=False)
        url = f"file://{os.path.abspath(arguments.page)}?lang={arguments.lang}"
        browser.call("Page.navigate", url=url)
        browser.wait_for("Page.loadEventFired")
        browser.settle()
        check = Check(browser, data, arguments.lang, arguments.screenshots)
        check.check_texts()
        if check.count:
            check.check_zoom()
        check.check_calls()
        check.check_search()
        check.check_looks()
        check.measure()
        check.check_events(url)
    print(f"{check.failures} failures" if check.failures else "All is well.")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
