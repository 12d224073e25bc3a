"""A headless Chromium, for the checks of pages: check_book.py, check_timeline_page.py."""
import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

NOT_CHECKED = 77
WIDTH, HEIGHT = 1000, 760
PATIENCE = 60  # seconds for an answer of the browser


class Browser:
    """A page in Chromium, controlled by the DevTools protocol over two pipes."""

    def __init__(self, program, profile_dir):
        to_browser_read, self.to_browser = os.pipe()
        self.from_browser, from_browser_write = os.pipe()
        flags = ["--headless=new", "--disable-gpu", "--no-first-run",
                 "--user-data-dir=" + profile_dir, "--remote-debugging-pipe",
                 "--disable-dev-shm-usage", f"--window-size={WIDTH},{HEIGHT}"]
        if os.geteuid() == 0:
            flags.append("--no-sandbox")  # root cannot have a sandbox
        # The protocol is on file descriptors 3 and 4.
        command = f'exec "$@" 3<&{to_browser_read} 4>&{from_browser_write}'
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", program, *flags, "about:blank"],
            pass_fds=(to_browser_read, from_browser_write),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser_read)
        os.close(from_browser_write)
        self.unread = b""
        self.calls = 0
        self.session = None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]

    def read(self, deadline):
        while b"\0" not in self.unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_browser], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.from_browser, 1 << 16)
            if not got:
                raise ConnectionError("the browser ended")
            self.unread += got
        message, self.unread = self.unread.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.calls += 1
        request = {"id": self.calls, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self.read(deadline)
            if message.get("id") == self.calls:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def wait_for(self, method):
        deadline = time.monotonic() + PATIENCE
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self.read(deadline))

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def settle(self):
        """Waits until all requested drawing is done."""
        self.value("new Promise((done) => requestAnimationFrame("
                   "() => requestAnimationFrame(() => done(0))))")

    def key(self, key):
        more = {"Enter": {"text": "\r", "windowsVirtualKeyCode": 13},
                "Tab": {"windowsVirtualKeyCode": 9}}.get(
                    key, {"text": key} if len(key) == 1 else {})
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def screenshot(self, path):
        picture = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture))

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(timeout=PATIENCE)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def add_options(parser):
    parser.add_argument("--screenshots", metavar="DIR", help="where to write pictures")
    parser.add_argument("--chromium", metavar="PATH")


@contextlib.contextmanager
def browser_of(options):
    """A Browser, with the folder for pictures; ends with "not checked" if there is none."""
    program = options.chromium or shutil.which("chromium") or shutil.which(
        "chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("Not checked: there is no Chromium. Debian: sudo apt-get install chromium")
        sys.exit(NOT_CHECKED)
    if options.screenshots:
        os.makedirs(options.screenshots, exist_ok=True)
    with tempfile.TemporaryDirectory() as profile_dir:
        browser = Browser(program, profile_dir)
        try:
            for domain in ("Page", "Runtime", "Log", "Network"):
                browser.call(domain + ".enable")
            yield browser
        finally:
            browser.close()
