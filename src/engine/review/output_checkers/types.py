# types.py - recognizes a type by the bytes alone: names are ignored, and nothing is unpacked.

import csv
import io
import re

CONTROLS = re.compile("[\\x00-\\x08\\x0b\\x0e-\\x1f\\x7f-\\x9f]")
TAIL = 66000  # the end of a ZIP archive lies within it
OFFICE = "application/vnd.openxmlformats-officedocument."


def text_of(data):
    """Plain text, or None."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if CONTROLS.search(text) else text


def is_json(data):
    try:
        read_json(data)
    except NoJson:
        return False
    return True


def is_csv(data):
    text = text_of(data)
    if text is None:
        return False
    try:
        widths = {len(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row}
    except csv.Error:
        return False
    return len(widths) == 1


def is_svg(data):
    text = text_of(data)
    if text is None:
        return False
    beginning = re.sub("<!--.*?-->|<[?!][^>]*>", "", text[:65536], flags=re.DOTALL)
    return re.match("[ \\t\\r\\n]*<svg[ \\t\\r\\n/>]", beginning) is not None


def is_zip(data):
    return data[:4] in (b"PK\3\4", b"PK\5\6") and b"PK\5\6" in data[-TAIL:]


def is_office(name):
    return lambda data: is_zip(data) and b"[Content_Types].xml" in data and name in data


def is_webp(data):
    return data[:4] == b"RIFF" and data[8:12] == b"WEBP"


def begins(*magics):
    return lambda data: data.startswith(magics)


KINDS = {
    "application/gzip": begins(b"\x1f\x8b\x08"),
    "application/json": is_json,
    "application/pdf": lambda data: data.startswith(b"%PDF-") and b"%%EOF" in data[-1024:],
    "application/vnd.apache.parquet": lambda data: len(data) >= 12 and data[:4] == data[-4:] == b"PAR1",
    OFFICE + "presentationml.presentation": is_office(b"ppt/presentation.xml"),
    OFFICE + "spreadsheetml.sheet": is_office(b"xl/workbook.xml"),
    OFFICE + "wordprocessingml.document": is_office(b"word/document.xml"),
    "application/vnd.sqlite3": begins(b"SQLite format 3\0"),
    "application/zip": is_zip,
    "image/gif": begins(b"GIF87a", b"GIF89a"),
    "image/jpeg": begins(b"\xff\xd8\xff"),
    "image/png": begins(b"\x89PNG\r\n\x1a\n"),
    "image/svg+xml": is_svg,
    "image/webp": is_webp,
    "image/*": lambda data: any(KINDS[name](data) for name in KINDS if name.startswith("image/") and name[6:] != "*"),
    "text/csv": is_csv,
    "text/plain": lambda data: text_of(data) is not None,
}
