"""python -m glovebox.kernel install | remove: the kernel for every program that starts kernels by name.

Without a verb it is the kernel itself, which Jupyter starts with `-f CONNECTION_FILE`."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
from typing import Dict, List, Optional

NAME = "glovebox-python"
# option of `install`: the environment variable that passes it to the kernel
SETTINGS = {"policy": "GLOVEBOX_KERNEL_POLICY", "template": "GLOVEBOX_KERNEL_TEMPLATE"}


def specification(display_name: str, environment: Dict[str, str]) -> Dict[str, object]:
    return {"argv": [sys.executable, "-m", "glovebox.kernel", "-f", "{connection_file}"], "display_name": display_name,
            "language": "python", "interrupt_mode": "signal", "env": environment, "metadata": {"debugger": False}}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m glovebox.kernel", description="A Jupyter kernel whose cells run in a sandbox.")
    verbs = made.add_subparsers(dest="verb", required=True)
    install = verbs.add_parser("install", help="make the kernel known to Jupyter")
    remove = verbs.add_parser("remove", help="take it out again")
    for verb in (install, remove):
        verb.add_argument("--name", default=NAME, help=f"by which programs start it ({NAME})")
    where = install.add_mutually_exclusive_group()
    where.add_argument("--user", action="store_true", help="for this user (what happens if nothing is said)")
    where.add_argument("--sys-prefix", action="store_true", help="in the environment of this Python")
    where.add_argument("--prefix", help="below this folder")
    install.add_argument("--display-name", default="Python (glovebox)", help="what menus show")
    install.add_argument("--policy", help="of its sandboxes; the server's default if it is not said")
    install.add_argument("--template", help="of its sandboxes; this-environment: the packages of this Python")
    return made


def install(arguments: argparse.Namespace) -> str:
    from jupyter_client.kernelspec import KernelSpecManager

    environment = {variable: getattr(arguments, option) for option, variable in SETTINGS.items() if getattr(arguments, option)}
    prefix = sys.prefix if arguments.sys_prefix else arguments.prefix
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        text = json.dumps(specification(arguments.display_name, environment), indent=1)
        pathlib.Path(folder, "kernel.json").write_text(text, encoding="utf-8")
        return str(KernelSpecManager().install_kernel_spec(folder, arguments.name, user=prefix is None, prefix=prefix))


def main(words: Optional[List[str]] = None) -> int:
    words = sys.argv[1:] if words is None else words
    try:
        if words[:1] == ["-f"]:
            from ipykernel.kernelapp import IPKernelApp

            from ._kernel import GloveboxKernel

            IPKernelApp.launch_instance(argv=words, kernel_class=GloveboxKernel)
            return 0
        arguments = parser().parse_args(words)
        if arguments.verb == "install":
            try:
                print(f"installed {arguments.name} in {install(arguments)}")
            except (ValueError, OSError) as error:  # an invalid name, a folder that cannot be written
                print(f"{arguments.name!r} is not installed: {error}", file=sys.stderr)
                return 1
            return 0
        from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

        try:
            print(f"removed {KernelSpecManager().remove_kernel_spec(arguments.name)}")
        except (KeyError, NoSuchKernel):
            print(f"no kernel is called {arguments.name!r}; see: jupyter kernelspec list", file=sys.stderr)
            return 1
    except ModuleNotFoundError as error:
        print(f"{error.name} is not installed; run: pip install 'glovebox-sandbox[jupyter]'", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
