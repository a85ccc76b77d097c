"""Names with a newline, an escape sequence, and bytes that are no UTF-8."""

from escape import attempt, stopped


@attempt
def artifact_name_is_hostile():
    ...
    for name in (b"/workspace/a\nb.txt", b"/workspace/\x1b]0;x\x07.txt", b"/workspace/\xff\xfe.txt"):
        open(name, "wb").close()
    return stopped("not-returned")
