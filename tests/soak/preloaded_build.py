"""A build whose gloveboxd has a library loaded before the others. The supervisor starts it with an empty environment, and
looks for it beside its own program."""

import pathlib
import shutil


def preloaded_build(build, folder, library, programs=("gloveboxd",), **variables):
    """The folder of the build, whose programs are copies: the spawner follows no links. `library` lies in `build`.
    `{program}` in a variable is the name of the program that gets it."""
    place = pathlib.Path(folder, "preloaded")
    place.mkdir()
    for entry in pathlib.Path(build).resolve().iterdir():
        if entry.name.startswith(("glovebox", "lib", library)) and entry.is_file():
            shutil.copy(entry, place / entry.name)
        elif entry.name == "python":
            shutil.copytree(entry, place / entry.name)
        else:
            (place / entry.name).symlink_to(entry)
    for program in programs:
        (place / program).rename(place / f"{program}.real")
        words = " ".join(f"{name}={value}" for name, value in variables.items()).replace("{program}", program)
        (place / program).write_text(
            f"#!/bin/sh\n{words} LD_PRELOAD={place}/{library} exec {place}/{program}.real \"$@\"\n")
        (place / program).chmod(0o755)
    return place
