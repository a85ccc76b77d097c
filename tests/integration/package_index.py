"""An index of Python packages (PEP 503) on loopback: a folder of wheels that a test has made, and who fetches from it."""

import base64
import hashlib
import http.server
import io
import json
import pathlib
import re
import tarfile
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


def normal(name):
    """As an index spells it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def npm_package(index, name, versions, whole=None):
    """A package in the registry of the test: its versions, each with what package.json says and its files, or an archive
    as it is."""
    place = f"http://127.0.0.1:{index.server_port}/{name}/-/"
    listed = {}
    for version, (paper, files) in versions.items():
        paper = {"name": name, "version": version, **paper}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for path, text in {"package.json": json.dumps(paper), **files}.items():
                entry = tarfile.TarInfo(f"package/{path}")
                entry.size = len(text)
                if text.startswith("-> "):
                    entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, text[3:], 0
                archive.addfile(entry, io.BytesIO(text.encode()))
        content = whole or packed.getvalue()
        digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
        listed[version] = {**paper, "dist": {"tarball": f"{place}{version}.tgz", "integrity": f"sha512-{digest}"}}
        index.registry[f"/{name}/-/{version}.tgz"] = content
    about = json.dumps({"name": name, "dist-tags": {"latest": max(versions)}, "versions": listed}).encode()
    index.registry[f"/{name}"] = index.registry["/" + name.replace("/", "%2f")] = about


def ids_of_fetchers():
    """Users and capabilities of those who run pip now, for a review."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"--no-deps" in words:
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
        if self.path in self.server.registry:
            self.server.asked.append(self.path)
            body = self.server.registry[self.path]
            return body(self) if callable(body) else self.answer("application/octet-stream", body)
        self.server.fetchers.update(ids_of_fetchers())
        folder, name = self.server.folder, self.path.strip("/").rpartition("/")[2]
        if self.path.startswith("/simple/"):
            links = [f'<a href="/files/{entry.name}">{entry.name}</a>' for entry in sorted(folder.iterdir())
                     if normal(entry.name.partition("-")[0]) == name]
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
