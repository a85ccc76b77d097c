"""Figures of matplotlib that a cell leaves open are shown, as in a notebook, and plt.show() shows at once.

Programs that never import matplotlib pay nothing: its module is met on the way in."""

import sys

NAME = "matplotlib.pyplot"
show_one = None


class Meeting:
    """An entry of sys.meta_path that lets pyplot be imported as ever and then gives it our show()."""

    def find_spec(self, name, path=None, target=None):
        if name != NAME:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                adopt(module)

            spec.loader.exec_module = exec_module
        return spec


def watch(show):
    """From now on plt.show() hands every open figure to `show`."""
    global show_one
    show_one = show
    if NAME in sys.modules:
        adopt(sys.modules[NAME])
    elif not any(isinstance(finder, Meeting) for finder in sys.meta_path):
        sys.meta_path.insert(0, Meeting())


def unwatch():
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, Meeting)]


def adopt(pyplot):
    def show(*_arguments, **_options):
        """Shows all open figures, and closes them."""
        show_open(show_one)

    pyplot.show = show


def show_open(show):
    pyplot = sys.modules.get(NAME)
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            show(figure)
        finally:
            pyplot.close(figure)


def forget(value):
    """A figure that is the value of the cell is shown as such and not a second time."""
    pyplot = sys.modules.get(NAME)
    figure_type = getattr(sys.modules.get("matplotlib.figure"), "Figure", None)
    if pyplot is not None and figure_type is not None and isinstance(value, figure_type):
        pyplot.close(value)
