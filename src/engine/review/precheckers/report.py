# report.py - the output of every checker for gloveboxd: one line for each finding, then their number. A checker
# reads a text that may be hostile, in a sandbox of its own, and runs none of it.

import gc
import sys

gc.disable()  # a syntax tree has no cycles, and the collector would scan half a million of its nodes again and again
FINDINGS_MOST = 1000
SUBJECT_MOST = 79


class Report:
    def __init__(self):
        self.findings = set()

    def add(self, rule, line, column, subject, is_import=False):
        """`line` and `column` count from 1. The same finding twice in one line is reported once."""
        text = "".join(sign if " " <= sign <= "~" else "?" for sign in str(subject))[:SUBJECT_MOST]
        self.findings.add((max(int(line or 0), 0), rule, text, is_import, max(int(column or 0), 0)))

    def end(self):
        told = set()
        lines = []
        for line, rule, subject, is_import, column in sorted(self.findings, key=lambda row: (row[0], row[4], row)):
            if {(line, rule, subject, True), (line, rule, subject, is_import)} & told:
                continue  # an import is reported even after a use, since lists of modules refer to imports
            told.add((line, rule, subject, is_import))
            lines.append(f"{rule} {line} {column} {'import' if is_import else 'use'} {subject}\n")
        for line in lines[:FINDINGS_MOST]:
            sys.stdout.write(line)
        sys.stdout.write(f"end {len(lines)}\n")
        sys.stdout.flush()


def read_text():
    with open(sys.argv[1], "rb") as file:
        return file.read()


