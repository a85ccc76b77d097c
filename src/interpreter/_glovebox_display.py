"""display() and the classes of IPython.display, for programs written for a notebook."""

import base64
import os

import _glovebox
import _glovebox_mime

request = None  # of the cell that runs


def send(what, bundle):
    if request is not None and (bundle.data or bundle.update):
        _glovebox.result(request.number, what, bundle.to_json())


def show_value(value, is_last):
    if show_by_itself(value):
        return
    bundle = _glovebox_mime.bundle_of(value)
    if is_last and bundle.data:
        _glovebox.hold_value(request.number, bundle.to_json())
    else:
        send(_glovebox.VALUE, bundle)


def show_by_itself(value):
    if type(value) in _glovebox_mime.SIMPLE or isinstance(value, type) or \
            (type(value).__module__.startswith("plotly.")):
        return False
    if _glovebox_mime.has(value, "_a_name_that_nobody_has_") or \
            not _glovebox_mime.has(value, "_ipython_display_"):
        return False
    try:
        value._ipython_display_()
    except NotImplementedError:
        return False
    return True


class DisplayHandle:
    """Shows again, with other content, what was shown under its id."""

    def __init__(self, display_id=None):
        self.display_id = display_id or os.urandom(16).hex()

    def __repr__(self):
        return f"<DisplayHandle display_id={self.display_id}>"

    def display(self, value, **options):
        display(value, display_id=self.display_id, **options)

    def update(self, value, **options):
        update_display(value, display_id=self.display_id, **options)


DisplayHandle.__module__ = "IPython.core.display_functions"


def display(*values, include=None, exclude=None, metadata=None, transient=None, display_id=None, raw=False,
            clear=False, update=False, **_options):
    """Shows values in all their forms; with raw=True, a dict is a complete MIME bundle."""
    if display_id is None and transient:
        display_id = transient.get("display_id")
    if display_id is True:
        display_id = os.urandom(16).hex()
    if update and display_id is None:
        raise TypeError("display_id required for update_display")
    for value in values:
        if not raw and show_by_itself(value):
            continue
        if raw:
            bundle = _glovebox_mime.given(value, metadata)
            bundle.keep_only(include, exclude)
        else:
            bundle = _glovebox_mime.bundle_of(value, include, exclude)
            if metadata:
                bundle.add_metadata(metadata)
        bundle.id, bundle.update = None if display_id is None else str(display_id), update
        send(_glovebox.DISPLAY, bundle)
    return DisplayHandle(display_id) if display_id is not None and not update else None


def update_display(value, *, display_id, **options):
    display(value, display_id=display_id, **options | {"update": True})


def publish_display_data(data, metadata=None, source=None, *, transient=None, update=False, **_options):
    display(data, metadata=metadata, transient=transient, raw=True, update=update)


def clear_output(wait=False):
    """Does nothing: what was shown may have been read already."""


def display_as(kind):
    def show(*values, raw=False, metadata=None):
        for value in values:
            if raw:
                display({kind: value}, raw=True, metadata=metadata)
            else:
                display(value, metadata=metadata, include={"text/plain", kind})

    return show


def read(place, mode):
    with open(place, mode) as file:
        return file.read()


class DisplayObject:
    """Something that is shown as one MIME type."""

    kind = None
    mode = "r"

    def __init__(self, data=None, url=None, filename=None, metadata=None):
        if data is not None and isinstance(data, (str, os.PathLike)) and filename is None and \
                self.takes_path(os.fspath(data)):
            data, filename = None, os.fspath(data)
        if data is not None and isinstance(data, str) and url is None and \
                data.startswith(("http://", "https://")) and self.kind != "text/html":
            data, url = None, data
        self.data, self.url, self.filename, self.metadata = data, url, filename, metadata or {}
        self.reload()

    def takes_path(self, _text):
        return False

    def reload(self):
        if self.data is None and self.filename is not None:
            self.data = read(self.filename, self.mode)
        elif self.data is None and self.url is not None:
            from urllib.request import urlopen

            with urlopen(self.url) as answer:
                body = answer.read()
            self.data = body if self.mode == "rb" else body.decode("utf-8", "replace")

    def __repr__(self):
        return f"<{type(self).__module__}.{type(self).__name__} object>"

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.kind is None or self.data is None:
            return {}
        return {self.kind: self.data}, {self.kind: self.metadata} if self.metadata else {}


def simple(name, kind):
    return type(name, (DisplayObject,), {"kind": kind, "__module__": "IPython.core.display"})


class HTML(DisplayObject):
    kind = "text/html"

    def __html__(self):
        return self.data


class Math(DisplayObject):
    kind = "text/latex"

    def _repr_mimebundle_(self, include=None, exclude=None):
        body = self.data.strip("$")
        return {self.kind: f"$\\displaystyle {body}$"}


class JSON(DisplayObject):
    kind = "application/json"

    def __init__(self, data=None, url=None, filename=None, expanded=False, metadata=None, root="root", **more):
        super().__init__(data, url, filename, {"expanded": expanded, "root": root} | (metadata or {}) | more)

    def reload(self):
        super().reload()
        if isinstance(self.data, (str, bytes)):
            import json

            self.data = json.loads(self.data)


class Javascript(DisplayObject):
    kind = "application/javascript"

    def __init__(self, data=None, url=None, filename=None, lib=None, css=None):
        super().__init__(data, url, filename)


IMAGES = {"png": "image/png", "jpeg": "image/jpeg", "jpg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}
SIGNATURES = {b"\x89PNG": "png", b"\xff\xd8": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


class Image(DisplayObject):
    mode = "rb"

    def __init__(self, data=None, url=None, filename=None, format=None, embed=None, width=None, height=None,
                 retina=False, unconfined=False, metadata=None, alt=None):
        super().__init__(data, url if embed else None, filename, metadata)
        self.address = None if embed else url
        self.width, self.height, self.alt = width, height, alt
        self.format = (format or self.guessed(filename or url)).lower()
        self.kind = IMAGES.get(self.format)
        if self.kind is None:
            raise ValueError(f"Cannot embed the '{self.format}' image format")
        for name in ("width", "height", "alt"):
            if getattr(self, name) is not None:
                self.metadata[name] = getattr(self, name)

    def takes_path(self, text):
        return text.rpartition(".")[2].lower() in IMAGES and not text.startswith(("http:", "https:"))

    def guessed(self, place):
        for begin, name in SIGNATURES.items():
            if isinstance(self.data, bytes) and self.data.startswith(begin):
                return name
        ending = (place or "").rpartition(".")[2].lower()
        return ending if ending in IMAGES else "png"

    def _repr_mimebundle_(self, include=None, exclude=None):
        if self.address is not None:
            return {"text/html": f'<img src="{self.address}"/>'}
        data = self.data.encode("ascii", "replace") if isinstance(self.data, str) else self.data
        return {self.kind: data}, {self.kind: self.metadata} if self.metadata else {}


class Framed:
    """Shown as a piece of HTML that a browser loads."""

    def __repr__(self):
        return f"<{type(self).__module__}.{type(self).__name__} object>"


class IFrame(Framed):
    def __init__(self, src, width, height, extras=None, **params):
        self.src, self.width, self.height, self.params, self.extras = src, width, height, params, extras or []

    def _repr_html_(self):
        from urllib.parse import urlencode

        query = "?" + urlencode(self.params) if self.params else ""
        return (f'<iframe width="{self.width}" height="{self.height}" src="{self.src}{query}" frameborder="0" '
                f'allowfullscreen {" ".join(self.extras)}></iframe>')


class Media(Framed):
    tag, kind = "", ""

    def __init__(self, data=None, filename=None, url=None, rate=None, **_options):
        if isinstance(data, str) and os.path.exists(data):
            data, filename = None, data
        elif isinstance(data, str) and url is None:
            data, url = None, data
        if filename is not None:
            data = read(filename, "rb")
        elif data is not None and rate is not None:
            data = to_wave(data, rate)
        self.data, self.url = data, url

    def _repr_html_(self):
        source = self.url or f"data:{self.kind};base64,{base64.b64encode(self.data or b'').decode()}"
        return f'<{self.tag} controls="controls" src="{source}"></{self.tag}>'


def to_wave(samples, rate):
    import array
    import io
    import wave

    values = [float(value) for value in samples]
    most = max(map(abs, values), default=1.0) or 1.0
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((1, 2, int(rate), 0, "NONE", "NONE"))
        out.writeframes(array.array("h", (int(value / most * 32767) for value in values)).tobytes())
    return file.getvalue()


class Audio(Media):
    tag, kind = "audio", "audio/wav"


class Video(Media):
    tag, kind = "video", "video/mp4"


class FileLink(Framed):
    """A file that stays in the sandbox: its path is shown, and the file itself becomes an artifact."""

    def __init__(self, path, **_options):
        self.path = os.fspath(path)

    def __repr__(self):
        return os.path.abspath(self.path)

    def _repr_html_(self):
        return f"<a href='{self.path}' target='_blank'>{self.path}</a><br>"


class FileLinks(FileLink):
    """The files below a folder."""

    def names(self):
        return sorted(os.path.relpath(os.path.join(folder, name)) for folder, _folders, names in os.walk(self.path)
                      for name in names)

    def __repr__(self):
        return "\n".join(self.names())

    def _repr_html_(self):
        return "".join(FileLink(name)._repr_html_() for name in self.names())


def framed(name, address):
    """A page that shows what an id names."""
    def __init__(self, id, width=400, height=300, **params):
        IFrame.__init__(self, address.format(id), width, height, **params)

    return type(name, (IFrame,), {"__init__": __init__})


class ProgressBar:
    """Iterated over, it shows how far it is."""

    def __init__(self, total):
        self.total, self.progress, self.shown = total, 0, DisplayHandle()

    def __repr__(self):
        done = 60 * self.progress // max(self.total, 1)
        return f"[{'=' * done}{' ' * (60 - done)}] {self.progress}/{self.total}"

    def __iter__(self):
        self.shown.display(self)
        for self.progress in range(self.total):
            yield self.progress
        self.progress = self.total
        self.shown.update(self)


class Code(DisplayObject):
    def __init__(self, data=None, url=None, filename=None, language=None):
        self.language = language
        super().__init__(data, url, filename)

    def _repr_mimebundle_(self, include=None, exclude=None):
        from html import escape

        return {"text/html": f"<pre>{escape(self.data)}</pre>", "text/plain": self.data}


class Pretty(DisplayObject):
    def _repr_pretty_(self, printer, _cycle):
        printer.text(self.data)


Markdown = simple("Markdown", "text/markdown")
Latex = simple("Latex", "text/latex")
SVG = simple("SVG", "image/svg+xml")
GeoJSON = simple("GeoJSON", "application/geo+json")
TextDisplayObject = simple("TextDisplayObject", None)
YouTubeVideo = framed("YouTubeVideo", "https://www.youtube.com/embed/{}")
VimeoVideo = framed("VimeoVideo", "https://player.vimeo.com/video/{}")

CLASSES = (DisplayObject, TextDisplayObject, HTML, Markdown, Latex, Math, SVG, JSON, GeoJSON, Javascript, Image,
           IFrame, YouTubeVideo, VimeoVideo, Audio, Video, FileLink, FileLinks, ProgressBar, Code, Pretty)
for one in CLASSES:
    one.__module__ = "IPython.lib.display" if one in (IFrame, YouTubeVideo, VimeoVideo, Audio, FileLink, FileLinks, Code) else "IPython.core.display"

FUNCTIONS = {"display": display, "update_display": update_display, "clear_output": clear_output,
             "publish_display_data": publish_display_data, "DisplayHandle": DisplayHandle}
NAMES = {one.__name__: one for one in CLASSES} | FUNCTIONS | {
    "display_" + name: display_as(kind) for name, kind in (
        ("html", "text/html"), ("markdown", "text/markdown"), ("svg", "image/svg+xml"), ("png", "image/png"),
        ("jpeg", "image/jpeg"), ("pdf", "application/pdf"), ("latex", "text/latex"), ("json", "application/json"),
        ("javascript", "application/javascript"), ("pretty", "text/plain"))}
