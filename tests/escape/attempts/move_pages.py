"""move_pages(2): on which node memory lies."""

from escape import attempt, call


@attempt
def move_pages():
    call("move_pages", 0, 0, None, None, None, 0)
    return "asked for pages"
