# left_out.py - a recipe's `leave_out`: patterns of paths, in which '*' stops at '/', of a file or of a folder above it.


def left_out(patterns):
    """Gives a function that says whether a path is left out."""
    pieces = ["".join("[^/]*" if sign == "*" else "[^/]" if sign == "?" else re.escape(sign) for sign in pattern)
              for pattern in patterns]
    found = re.compile("|".join(f"(?:{piece})" for piece in pieces)) if pieces else None

    def is_left_out(path):
        parts = path.strip("/").split("/")
        return bool(found) and any(found.fullmatch("/".join(parts[:count])) for count in range(1, len(parts) + 1))
    return is_left_out
