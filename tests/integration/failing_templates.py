"""Templates in which every program of ours fails in one way: it crashes, hangs, says nonsense, or says nothing.

They have the root of `minimal` and another manifest: whatever is to be run there, python or node, is one line of
shell. So a checker fails as if its interpreter did, whatever it was given."""

import json

from serving import let_others_in

WAYS = {
    "crashes": "kill -SEGV $$",
    "fails": "exit 3",
    "eats": "/usr/bin/python3 -c 'bytearray(10**9); print(\"end 0\")'",
    "floods": "yes end 0",
    "silent": "exit 0",
    "nonsense": "echo all is well",
    "cut": "printf 'end 0'",
    "twice": "printf 'end 0\\nend 0\\n'",
    "binary": "printf 'end 0\\n\\0'",
    "hangs": "while :; do :; done",
}
LANGUAGES = ("python", "bash", "node")  # what the three checkers read


def add_to(state, original):
    """Adds a template for each way beside those that `state` has; `original` is the folder of minimal."""
    state.mkdir()
    let_others_in(state)
    manifest = json.loads((original / "manifest.json").read_text())
    for name, line in WAYS.items():
        folder = state / "templates" / name
        folder.mkdir(parents=True)
        (folder / "root").symlink_to(original / "root")
        languages = {language: {"command": ["/bin/bash", "-c", line, "{file}"], "file": "main"} for language in LANGUAGES}
        (folder / "manifest.json").write_text(json.dumps(manifest | {"name": name, "languages": languages, "zygotes": {}}))
        (folder / "digest").write_text(manifest["digest"] + "\n")
