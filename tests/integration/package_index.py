"""An index of Python packages (PEP 503) on loopback: a folder of wheels that a test has made, and who fetches from it."""

import base64
import hashlib
import http.server
import pathlib
import threading
import zipfile

from web_server import WebServer


def wheel_of(folder, name, version, files, needs=()):
    """A wheel (PEP 427) whose record is right."""
    papers = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nLicense: MIT\nAuthor: A. Nobody\x1b[31m\n" \
               f"Summary: Says hello.\n" + "".join(f"Requires-Dist: {need}\n" for need in needs)
    files = {**files, f"{papers}/METADATA": metadata,
             f"{papers}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    digest = lambda text: base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    record = "".join(f"{path},sha256={digest(text)},{len(text)}\n" for path, text in files.items())
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for entry, text in {**files, f"{papers}/RECORD": record + f"{papers}/RECORD,,\n"}.items():
            archive.writestr(entry, text)
    return path


def ids_of_fetchers():
    """Users and capabilities of those who run pip or npm now, for a review."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"--no-deps" in words or b"--package-lock-only" in words:
                status = dict(line.split(":\t", 1) for line in (entry / "status").read_text().splitlines() if ":\t" in line)
                yield (int(status["Uid"].split()[0]), int(status["CapEff"], 16), int(status["Seccomp"]))
        except OSError:
            pass


class IndexServer(WebServer):
    """`asked`: the wheels that were asked for. The wheel that `stalls` names is answered by half."""

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Index)
        self.folder, self.registry, self.fetchers, self.asked, self.stalls = folder, {}, set(), [], None
        self.stalled, self.let_go = threading.Event(), threading.Event()


class Index(http.server.BaseHTTPRequestHandler):
    """PEP 503: a page a package, with links to what lies in the folder."""

    def do_GET(self):
        self.server.fetchers.update(ids_of_fetchers())
        if self.path in self.server.registry:
            kind, body = "application/octet-stream", self.server.registry[self.path]
            return self.answer(kind, body)
        folder, name = self.server.folder, self.path.strip("/").rpartition("/")[2]
        if self.path.startswith("/simple/"):
            links = [f'<a href="/files/{entry.name}">{entry.name}</a>' for entry in sorted(folder.iterdir())
                     if entry.name.startswith(f"{name}-")]
            kind, body = "text/html", "".join(links).encode()
        else:
            kind, body = "application/octet-stream", (folder / name).read_bytes() if (folder / name).is_file() else b""
            self.server.asked.append(name)
            if name == self.server.stalls:  # in the middle of it, until the test lets go
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[:len(body) // 2])
                self.server.stalled.set()
                self.server.let_go.wait(60)
                return None
        return self.answer(kind, body)

    def answer(self, kind, body):
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass
