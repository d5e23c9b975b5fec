"""Headless Chromium, driven over its debugging pipe: pages are opened from disk, without a network."""
import base64
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

FLAGS = ["--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
         "--proxy-server=127.0.0.1:9", "--disable-dev-shm-usage", "--force-device-scale-factor=1"]


def program():
    """Where it is; None where it is not installed."""
    return os.environ.get("MODELFLOW_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    def __init__(self, out, back):
        self._out, self._back, self._id, self._session, self._unread, self.problems = out, back, 0, None, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def _next(self):
        while b"\0" not in self._unread:
            piece = os.read(self._back, 1 << 16)
            if not piece:
                raise RuntimeError("Chromium ended")
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def _keep(self, message):
        """What a user would see in the console, and every address that was asked for."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(params["exceptionDetails"].get("exception", {}).get("description", str(params)))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(str(params["args"]))
        elif method == "Network.requestWillBeSent" and not params["request"]["url"].startswith(("file:", "data:", "about:")):
            self.problems.append("asked for " + params["request"]["url"])

    def call(self, method, **params):
        self._id += 1
        message = {"id": self._id, "method": method, "params": params, **({"sessionId": self._session} if self._session else {})}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._keep(answer)

    def wait(self, method):
        while True:
            message = self._next()
            self._keep(message)
            if message.get("method") == method:
                return message

    def size(self, width, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, file):
        self.call("Page.navigate", url=pathlib.Path(file).resolve().as_uri())
        self.wait("Page.loadEventFired")

    def run(self, script):
        """The value of a script, which may be a promise."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(done["exceptionDetails"].get("exception", {}).get("description", str(done)))
        return done["result"].get("value")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key)

    def screenshot(self, file, whole=True):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **({"clip": {"x": 0, "y": 0, "scale": 1, **self.run(
            "({width: document.documentElement.clientWidth, height: Math.min(9000, document.documentElement.scrollHeight)})")}} if whole else {}))
        pathlib.Path(file).write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def page():
    """One page in a browser of its own, with nothing of another run."""
    there, out = os.pipe()
    back, here = os.pipe()
    with tempfile.TemporaryDirectory(prefix="modelflow-chromium-", ignore_cleanup_errors=True) as folder:
        def connect():  # Chromium reads commands from 3 and answers on 4
            a, b = os.dup(there), os.dup(here)
            os.dup2(a, 3)
            os.dup2(b, 4)
        browser = subprocess.Popen([program(), *FLAGS, f"--user-data-dir={folder}"], preexec_fn=connect, close_fds=False,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(there)
        os.close(here)
        try:
            yield Page(out, back)
        finally:
            browser.kill()
            browser.wait()
            os.close(out)
            os.close(back)
