"""Makes the folders that `npm pack` packs: make_platform.py BUILD ARCHIVE TARGET_FOLDER. `linux-x64` has the programs, the
libraries that they need and a packed template, as the wheel does; `main` has what was compiled, and names it as optional: npm
installs it where it fits. No script runs at an installation."""

import json
import pathlib
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "python"))
from make_wheel import collect  # noqa: E402

INDEX = """"use strict";
const { join } = require("node:path");
exports.program = join(__dirname, "programs", "glovebox");
exports.archive = join(__dirname, "programs", "minimal.tar.gz");
"""


def write(folder, package):
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")


def main(build, archive, target):
    package = json.loads((HERE / "package.json").read_text())
    platform = {name: package[name] for name in ("version", "license")} | {
        "name": f"{package['name']}-linux-x64", "description": "The Linux programs of glovebox-sandbox",
        "os": ["linux"], "cpu": ["x64"], "main": "index.js", "files": ["index.js", "programs"]}
    programs = target / "linux-x64" / "programs"
    programs.mkdir(parents=True)
    collect(build, programs)
    for cache in sorted(programs.rglob("__pycache__")):
        shutil.rmtree(cache)
    shutil.copy(archive, programs / "minimal.tar.gz")
    (target / "linux-x64" / "index.js").write_text(INDEX)
    write(target / "linux-x64", platform)

    shutil.copytree(HERE / "dist", target / "main" / "dist")
    shutil.copy(HERE / "README.md", target / "main")
    kept = {name: value for name, value in package.items() if name not in ("scripts", "devDependencies")}
    write(target / "main", kept | {"optionalDependencies": {platform["name"]: package["version"]}})


main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:4]))
