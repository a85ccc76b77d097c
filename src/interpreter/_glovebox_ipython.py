"""Replaces IPython for programs: modules of that name if the template has none, get_ipython(), and, in
libraries with support for notebooks, the few functions that would open a window."""

import sys
import types

import _glovebox_display

shell = None  # set by _glovebox_cell


def get_ipython():
    """The shell in which this cell runs."""
    return shell


class Interactivity:
    """IPython.core.interactiveshell.InteractiveShell, with the setting that programs use."""

    ast_node_interactivity = "last_expr"

    @classmethod
    def instance(cls, *_arguments, **_options):
        return shell

    @classmethod
    def initialized(cls):
        return shell is not None


def nothing(*_arguments, **_options):
    """Accepted, without effect."""


MODULES = {
    "IPython": {"get_ipython": get_ipython, "display": _glovebox_display.display, "version_info": (8, 37, 0, ""),
                "__version__": "8.37.0"},
    "IPython.display": _glovebox_display.NAMES | {"set_matplotlib_formats": nothing, "set_matplotlib_close": nothing},
    "IPython.core": {},
    "IPython.core.display": _glovebox_display.NAMES,
    "IPython.core.display_functions": _glovebox_display.FUNCTIONS,
    "IPython.core.getipython": {"get_ipython": get_ipython},
    "IPython.core.interactiveshell": {"InteractiveShell": Interactivity},
    "IPython.lib": {},
    "IPython.lib.display": _glovebox_display.NAMES,
    "IPython.utils": {},
    "nest_asyncio": {"apply": nothing},  # asyncio.run() works in a cell as it is
}


class StandIns:
    """The last entry of sys.meta_path, so that an installed IPython is preferred."""

    def find_spec(self, name, path=None, target=None):
        if name not in MODULES:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, is_package=any(each.startswith(name + ".") for each in MODULES))

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__dict__.update(MODULES[module.__name__])


# --- libraries that are changed when they are imported -------------------------------------------

def adopt_ipython(module):
    """An installed IPython would show values by its own shell, which does not run here."""
    for name, value in _glovebox_display.FUNCTIONS.items():
        if name in module.__dict__:
            module.__dict__[name] = value
    if "get_ipython" in module.__dict__:
        module.get_ipython = get_ipython


def adopt_pillow(module):
    module.Image.show = lambda image, *_arguments, **_options: _glovebox_display.display(image)


def adopt_plotly(module):
    module.BaseFigure.show = lambda figure, *_arguments, **_options: _glovebox_display.display(figure)


def adopt_progress(module):
    """tqdm.notebook needs ipywidgets and a browser."""
    import tqdm

    module.tqdm = module.tqdm_notebook = tqdm.tqdm
    module.trange = module.tnrange = tqdm.trange


def adopt_sympy(module):
    """init_printing() would set up formatters of IPython; sympy's own methods show its values without that."""
    module._init_ipython_printing = nothing


ADOPTED = {
    "IPython.core.display_functions": adopt_ipython,
    "IPython.core.getipython": adopt_ipython,
    "PIL.Image": adopt_pillow,
    "plotly.basedatatypes": adopt_plotly,
    "sympy.interactive.printing": adopt_sympy,
    "tqdm.notebook": adopt_progress,
}  # and matplotlib.pyplot: _glovebox_figures


class Meeting:
    """The first entry of sys.meta_path: changes these modules after their import."""

    def __init__(self):
        self.away = False

    def find_spec(self, name, path=None, target=None):
        if name not in ADOPTED or self.away:
            return None
        import importlib.util

        self.away = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.away = False
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, StandIns):
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                ADOPTED[name](module)

            spec.loader.exec_module = exec_module
        return spec


def settle(the_shell, adopts):
    """Called before the first cell. `adopts`: also changes libraries that are imported already."""
    global shell
    shell = the_shell
    sys.modules["builtins"].__dict__.update(display=_glovebox_display.display, get_ipython=get_ipython)
    for name, adopt in ADOPTED.items():
        module = sys.modules.get(name)
        if adopts and isinstance(module, types.ModuleType):
            adopt(module)
    if not any(isinstance(finder, Meeting) for finder in sys.meta_path):
        sys.meta_path.insert(0, Meeting())
        sys.meta_path.append(StandIns())


def unsettle():
    global shell
    shell = None
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, (Meeting, StandIns))]
    for name in ("display", "get_ipython"):
        sys.modules["builtins"].__dict__.pop(name, None)
