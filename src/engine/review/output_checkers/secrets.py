# secrets.py - finds texts that look like secrets. Only their kind and line are reported, never the text.

import math
import re

# Escape sequences for colours end in a letter, which is not part of a word.
COLOURS = re.compile(rb"(?:\x1b|\\u001[bB]|\\x1[bB]|\\(?:033|e))\[[0-9;]*m")
# Before a token there is no letter or digit, except that of an escape in JSON ("\n").
BEFORE = rb"(?:(?<![A-Za-z0-9_])|(?<=\\[bfnrt]))"
AFTER = rb"(?![A-Za-z0-9_])"
ASSIGNED = (rb"(?i)(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key|private[_-]?key|token|credential)s?"
            rb"\\?[\"']?[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4}\\?[\"']?([A-Za-z0-9+/_.~-]{16,200})")
LEAST_BITS = 3.2  # entropy per character of a value: words have less, keys have more

# name, literals of which one must occur before the pattern is searched, pattern
SECRETS = [
    ("private_key", [b"PRIVATE KEY"], rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"),
    ("aws_access_key", [b"AKIA", b"ASIA", b"ABIA", b"ACCA"], BEFORE + rb"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}" + AFTER),
    ("aws_secret_key", [b"ecret", b"ECRET"],
     rb"(?i)aws.{0,20}secret.{0,20}?[^A-Za-z0-9/+][A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"),
    ("github_token", [b"gh", b"github_pat_"],
     BEFORE + rb"(?:gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9_]{22,251})" + AFTER),
    ("gitlab_token", [b"glpat-"], BEFORE + rb"glpat-[A-Za-z0-9_.-]{20,200}"),
    ("slack_token", [b"xox"], BEFORE + rb"xox[abeoprs]-[A-Za-z0-9-]{10,250}"),
    ("slack_webhook", [b"hooks.slack.com"], rb"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,200}"),
    ("stripe_key", [b"k_live_"], BEFORE + rb"[sr]k_live_[A-Za-z0-9]{16,250}"),
    ("google_api_key", [b"AIza"], BEFORE + rb"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    ("anthropic_key", [b"sk-ant-"], BEFORE + rb"sk-ant-[A-Za-z0-9_-]{20,250}"),
    ("openai_key", [b"sk-"], BEFORE + rb"sk-(?!ant-)(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{20,250}|[A-Za-z0-9]{32,64}"
     + AFTER + rb")"),
    ("npm_token", [b"npm_"], BEFORE + rb"npm_[A-Za-z0-9]{36}" + AFTER),
    ("pypi_token", [b"pypi-"], BEFORE + rb"pypi-[A-Za-z0-9_-]{50,250}"),
    ("glovebox_key", [b"glb_"], BEFORE + rb"glb_[A-Za-z0-9]{4,40}_[A-Za-z0-9_-]{40,50}"),
    ("jwt", [b"eyJ"], BEFORE + rb"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}"),
    ("url_password", [b"://"], rb"://[^\s/:@\"'<>]{1,64}:[^\s/@\"'<>]{3,128}@[A-Za-z0-9\[]"),
    ("assigned", None, ASSIGNED),
]
COMPILED = [(name, hints, re.compile(pattern)) for name, hints, pattern in SECRETS]


def looks_like_chance(value):
    counts = [value.count(sign) for sign in set(value)]
    bits = -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
    return bits >= LEAST_BITS and re.search(rb"[0-9]", value) is not None and re.search(rb"[A-Za-z]", value) is not None


def secrets_in(data):
    """(line, name) of each, sorted; the same twice in one line is reported once."""
    found = set()
    for text in {data, COLOURS.sub(b" ", data), COLOURS.sub(b"", data)}:
        search(text, found)
    return sorted(found)


def search(data, found):
    for name, hints, pattern in COMPILED:
        if hints is not None and not any(hint in data for hint in hints):
            continue
        line, at = 1, 0
        for match in pattern.finditer(data):
            if name == "assigned" and not looks_like_chance(match.group(1)):
                continue
            line += data.count(b"\n", at, match.start())
            at = match.start()
            found.add((line, name))
            if len(found) > 1000:
                return
