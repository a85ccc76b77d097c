# bash.py - checks shell scripts: `bash -n` says whether one parses, and our own reader finds the commands in it,
# also those in $( ) and after pipes. It cannot know what a word expands to; if a command is made that way, it
# reports `dynamic`.

import subprocess

COMMANDS = {
    "network": """curl wget nc ncat netcat ssh scp sftp rsync ftp telnet ping dig nslookup host socat git pip pip3 npm
        npx apt apt-get aptitude dnf yum aria2c lynx openssl""",
    "subprocess": """python python2 python3 perl ruby node php Rscript lua tclsh gcc g++ cc make java go cargo gdb strace
        setsid nohup at crontab systemctl""",
    "dynamic": "eval source . alias trap xargs parallel coproc enable",
    "environment": "printenv env",
}
RULES = {name: rule for rule, names in COMMANDS.items() for name in names.split()}
SHELLS = {"bash", "sh", "dash", "zsh", "ksh", "busybox"}
IN_FRONT = {"if", "then", "elif", "else", "do", "!", "{", "time", "command", "builtin", "exec", "sudo", "nice",
            "timeout", "stdbuf", "ionice", "while", "until"}
BEFORE_ARITHMETIC = IN_FRONT | {"for"}  # "while((1))" needs no blank
WITH_OPTIONS = {"time", "command", "builtin", "exec", "sudo", "nice", "timeout", "stdbuf", "ionice"}
WITH_VALUES = {"-s", "-a", "-u", "-g", "-o", "-e", "-i"}  # their options that take a value; numbers are skipped
TRUE = {"true", ":", "/bin/true", "/usr/bin/true", "((1))", "[1]", "[[1]]", "!false"}
FALSE = {"false", "/bin/false", "/usr/bin/false", "((0))", "[]", "!true", "!:"}
ENDS = {"break", "exit", "return", "exec"}
SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "k": 1 << 10}
HUGE = 1 << 27
DEPTH_MOST = 200


class Deep(Exception):
    pass


class Word:
    def __init__(self, line, column):
        self.line, self.column = line, column
        self.text, self.is_plain = "", True


class Reader:
    """Reads the text once. Nesting is kept in a list, so that a hostile text cannot exhaust the stack."""

    def __init__(self, text):
        self.text, self.at, self.line, self.begins = text, 0, 1, 0
        self.commands, self.words, self.word = [], [], None
        self.open = []  # open constructs: the sign that closes each, and the words around it
        self.here = []  # ends of here-documents that begin on the next line
        self.is_target, self.targets = False, []  # targets of redirections, which are not words of a command

    def peek(self, count=1):
        return self.text[self.at : self.at + count]

    def take(self, count=1):
        taken = self.peek(count)
        self.at += len(taken)
        if "\n" in taken:
            self.line += taken.count("\n")
            self.begins = self.at - (len(taken) - taken.rfind("\n") - 1)
        return taken

    def put(self, text):
        if self.word is None:
            self.word = Word(self.line, self.at - self.begins - len(text) + 1)
        self.word.text += text

    def end_word(self):
        if self.word is not None:
            (self.targets if self.is_target else self.words).append(self.word)
            self.word, self.is_target = None, False

    def end_command(self):
        self.end_word()
        self.is_target = False
        if [word.text for word in self.words] in (["while"], ["until"]):
            return  # the condition follows in a line of its own, or in a subshell
        if self.words:
            self.commands.append(self.words)
        self.words = []

    def nest(self, closes):
        if len(self.open) >= DEPTH_MOST:
            raise Deep()
        self.put("")
        self.word.is_plain = False
        self.open.append((closes, self.words, self.word, self.is_target))
        self.words, self.word, self.is_target = [], None, False

    def close(self):
        self.end_command()
        _, self.words, self.word, self.is_target = self.open.pop()

    def read_expansions(self, text, line):
        """Reads a text without quoting in which commands in $( ) are run: a here-document, or arithmetic."""
        inner = Reader(text)
        inner.line, inner.commands, inner.targets = line, self.commands, self.targets
        while inner.at < len(text):
            if inner.open:
                inner.step(inner.take())
            else:
                inner.read_quoted()
        while inner.open:
            inner.close()

    def skip_here(self):
        here, self.here = self.here, []
        for end, strips, is_quoted in here:
            begin, line_of_begin = self.at, self.line
            stop_of_text = len(self.text)
            while self.at < len(self.text):
                stop_of_text = self.at
                stop = self.text.find("\n", self.at)
                line = self.take((stop if stop >= 0 else len(self.text)) - self.at)
                self.take()
                if (line.lstrip("\t") if strips else line) == end:
                    break
                stop_of_text = self.at
            if not is_quoted:
                self.read_expansions(self.text[begin:stop_of_text], line_of_begin)

    def read_here(self):
        strips = self.peek() == "-"
        self.take(strips)
        while self.peek() in (" ", "\t"):
            self.take()
        end = ""
        while self.peek() and self.peek() not in " \t\n;|&<>()":
            end += self.take()
        plain = end.replace("'", "").replace('"', "").replace("\\", "")
        self.here.append((plain, strips, plain != end))

    def arithmetic(self):
        """How many characters after "(" belong to an arithmetic command; 0: two subshells begin."""
        depth = 0
        for at in range(self.at + 1, min(len(self.text), self.at + 1000)):
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            if depth < 0:
                return at + 2 - self.at if self.text[at + 1 : at + 2] == ")" else 0
        return 0

    def read_quoted(self):
        """Reads a text in double quotes, in which expansions nest."""
        while self.at < len(self.text):
            sign = self.take()
            if sign == '"':
                return True
            if sign == "\\":
                self.put(self.take())
            elif sign == "`" or (sign == "$" and self.peek() == "("):
                self.take(sign == "$")
                self.nest(('"', ")" if sign == "$" else "`"))
                return False
            else:
                self.put(sign)
                if sign == "$":
                    self.word.is_plain = False
        return True

    def read(self):
        while self.at < len(self.text):
            self.step(self.take())
        while self.open:
            self.close()
        self.end_command()
        return self.commands

    def step(self, sign):
        closes = self.open[-1][0][1] if self.open else None
        if sign == closes:
            resumes_quoted = self.open[-1][0][0] == '"'
            self.close()
            if resumes_quoted:
                self.read_quoted()
        elif sign == "\\":
            if self.peek() == "\n":
                self.take()
            else:
                self.put(self.take())
        elif sign == "'":
            stop = self.text.find("'", self.at)
            self.put(self.take((stop if stop >= 0 else len(self.text)) - self.at))
            self.take()
        elif sign == '"':
            self.put("")
            self.read_quoted()
        elif sign == "#" and self.word is None:
            stop = self.text.find("\n", self.at)
            self.take((stop if stop >= 0 else len(self.text)) - self.at)
        elif sign == "<" and self.peek() == "<" and self.peek(2) != "<<":
            self.take()
            self.end_word()
            self.read_here()
        elif sign in "<>$" and self.peek() == "(" and self.peek(2) != "((":
            self.take()
            self.nest(("", ")"))
        elif sign == "`":
            self.nest(("", "`"))
        elif sign in " \t":
            self.end_word()
        elif sign == "\n":
            self.end_command()
            self.skip_here()
        elif sign == "(" and self.peek() == "(" and (self.word is None or self.word.text in BEFORE_ARITHMETIC):
            self.end_word()
            line, rest = self.line, self.take(self.arithmetic())
            if rest:
                self.put(sign + rest)
                self.read_expansions(rest, line)
            self.end_command()
        elif sign in ";|&()":
            self.end_command()
            if sign in ";|&":
                self.commands.append([sign])
        elif sign in "<>":
            if self.word is not None and self.word.text.isdecimal():
                self.word = None  # a descriptor
            self.end_word()
            self.take(2 if self.peek(2) == "<<" else self.peek() in ("&", "|"))  # a here-string is one word
            self.is_target = True
        else:
            self.put(sign)
            if sign in "$*?[{":
                self.word.is_plain = False


def is_assignment(text):
    name, sign, _ = text.partition("=")
    return bool(sign) and name.rstrip("+").isidentifier()


def size_of(text):
    digits = text.rstrip("iBbKMGTk")
    unit = text[len(digits) :][:1]
    return int(digits) * SIZES.get(unit, 1) if digits.isdecimal() and len(digits) < 20 else 0


class Look:
    def __init__(self, report):
        self.report = report
        self.loops = []

    def add(self, rule, word, subject):
        self.report.add(rule, word.line, word.column, subject)

    def look(self, commands, targets):
        for word in targets:
            self.look_at_word(word)
        for words in commands:
            if isinstance(words[0], str):
                continue
            self.look_at_command(words)
            for word in words:
                self.look_at_word(word)
        for word, is_endless in self.loops:
            if is_endless:
                self.add("endless", word, word.text)

    def look_at_word(self, word):
        if "/dev/tcp/" in word.text or "/dev/udp/" in word.text:
            self.add("network", word, "/dev/tcp")
        if word.text.startswith("/proc/") and word.text.endswith("/environ"):
            self.add("environment", word, "/proc/self/environ")
        first, dots, last = word.text.strip("{}").partition("..")
        if dots and word.text.startswith("{") and size_of(last) - size_of(first) >= HUGE:
            self.add("allocation", word, "{..}")

    def look_at_loop(self, words):
        """Takes the words after `while`, or those of a command that ends or leaves a loop."""
        name = words[0].text
        rest = "".join("".join(word.text for word in words[1:]).split())
        if name in ("while", "until"):
            self.loops.append((words[0], rest in (TRUE if name == "while" else FALSE)))
        elif name == "for":
            self.loops.append((words[0], rest.startswith("((") and rest.split(";")[1:2] in ([""], ["1"])))
        elif name in ENDS and self.loops:
            last = len(self.loops) - 1
            for place in range(last if name == "break" else 0, last + 1):
                self.loops[place] = (self.loops[place][0], False)
        elif name == "done" and self.loops:
            word, is_endless = self.loops.pop()
            if is_endless:
                self.add("endless", word, word.text)

    def look_at_command(self, words):
        at = 0
        while at < len(words) and (words[at].text in IN_FRONT or is_assignment(words[at].text)):
            self.look_at_loop(words[at:])
            at += 1
            if words[at - 1].text in WITH_OPTIONS:
                while at < len(words) and words[at].text[:1] in set("-0123456789"):
                    at += 2 if words[at].text in WITH_VALUES else 1
        if at + 1 < len(words) and words[at].text == "function":
            self.look_at_command(words[at + 2 :])
            return
        if at >= len(words):
            return
        self.look_at_loop(words[at:])
        command, arguments = words[at], words[at + 1 :]
        name = command.text.rsplit("/", 1)[-1]
        if not command.is_plain and command.text not in ("[", "[["):
            self.add("dynamic", command, "a command that is made as it runs")
        elif name in SHELLS:
            self.add("dynamic", command, name)
        elif name in ("export", "declare", "set") and (not arguments or arguments[0].text in ("-p", "-x")):
            self.add("environment", command, name)
        elif name in ("dd", "fallocate", "truncate", "head"):
            self.look_at_size(command, arguments)
        elif name in RULES:
            self.add(RULES[name], command, name)

    def look_at_size(self, command, arguments):
        product = 1
        for word in arguments:
            value = word.text.partition("=")[2] or word.text
            size = size_of(value.lstrip("-cnls"))
            if size and (word.text.startswith(("bs=", "count=")) or "=" not in word.text):
                product *= size
        if product >= HUGE:
            self.add("allocation", command, command.text)


def fork_bomb(text):
    """name() { name | name & }: a function that starts itself twice, whatever else it does."""
    squeezed = ";".join("".join(line.split()) for line in text.splitlines())
    at = squeezed.find("(){")
    while at >= 0:
        begin = max(squeezed.rfind(sign, 0, at) for sign in ";|&(){}") + 1
        name = squeezed[begin:at]
        body = squeezed[at + 3 : at + 300].lstrip(";")
        if name and body.startswith(f"{name}|{name}&"):
            return True
        at = squeezed.find("(){", at + 1)
    return False


def check_syntax(report):
    ran = subprocess.run(["/bin/bash", "--norc", "-n", sys.argv[1]], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if ran.returncode == 0:
        return
    said = ran.stderr.decode("utf-8", "replace").splitlines()[:1] or ["bash cannot read it"]
    _, found, rest = said[0].partition(": line ")
    line, _, message = rest.partition(": ") if found else ("0", "", said[0])
    report.add("syntax", line if line.isdecimal() else 0, 0, message)


def check(text, report):
    check_syntax(report)
    script = text.replace(b"\0", b"").decode("utf-8", "replace")
    if fork_bomb(script):
        report.add("endless", 0, 0, "a function that starts itself twice")
    try:
        reader = Reader(script)
        Look(report).look(reader.read(), reader.targets)
    except (Deep, RecursionError):
        report.add("unchecked", 0, 0, "it is nested too deeply")


if __name__ == "__main__":
    findings = Report()
    check(read_text(), findings)
    findings.end()
