"""Shows figures of matplotlib that a cell leaves open, as in a notebook; plt.show() shows them at once.

A figure is drawn once, and its margin is found in the drawn pixels, unlike bbox_inches="tight", which draws
twice; only a figure with something outside of its canvas is drawn again. An SVG is made if it is small, or if
the program asks for it (set_matplotlib_formats, %config InlineBackend.figure_formats)."""

import io
import sys

import _glovebox_charts
import _glovebox_display
import _glovebox_ipython
import _glovebox_magics
import _glovebox_mime

PYPLOT = "matplotlib.pyplot"
FORMATS = {"png": "image/png", "svg": "image/svg+xml", "pdf": "application/pdf", "jpeg": "image/jpeg"}
PADDING = 0.1  # inches around what was drawn, as pyplot's own tight box
SVG_POINTS_MOST = 2000
SVG_CHARACTERS_MOST = 512 << 10
DEFAULT = ("png", "svg")

formats = DEFAULT


def set_formats(*names):
    """Sets the formats of figures: png, svg, pdf, jpeg (retina is png)."""
    global formats
    names = [name for group in names for name in ((group,) if isinstance(group, str) else group)]
    wanted = tuple({"retina": "png", "png2x": "png", "jpg": "jpeg"}.get(name, name) for name in names)
    unknown = [name for name in wanted if name not in FORMATS]
    if unknown:
        raise ValueError(f"unknown format of figures: {unknown[0]}; there are {', '.join(FORMATS)}")
    formats = wanted or DEFAULT


def adopt_pyplot(pyplot):
    def show(*_arguments, **_options):
        """Shows all open figures, and closes them."""
        show_open()

    pyplot.show = show
    pyplot.Figure.show = lambda figure, *_arguments, **_options: _glovebox_display.display(figure)


def has_open():
    pyplot = sys.modules.get(PYPLOT)
    return pyplot is not None and bool(pyplot.get_fignums())


def show_open():
    pyplot = sys.modules.get(PYPLOT)
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            if figure.axes or figure.texts or figure.images or figure.patches or figure.lines:
                _glovebox_display.display(figure)
        finally:
            pyplot.close(figure)


def forget(value):
    """A figure that is the value of the cell is not shown again as an open figure."""
    pyplot = sys.modules.get(PYPLOT)
    figure_type = getattr(sys.modules.get("matplotlib.figure"), "Figure", None)
    if pyplot is not None and figure_type is not None and isinstance(value, figure_type):
        pyplot.close(value)


def capture(bundle, figure):
    """Adds the pictures of a figure and the numbers that it was drawn from."""
    box = None
    for name in formats:
        if FORMATS[name] in bundle.data:
            continue
        if name == "png":
            image, box = draw_png(figure)
            bundle.add("image/png", image)
            width, height = size_of(image)
            bundle.add_metadata({"image/png": {"width": width, "height": height}})
        elif name != "svg" or formats is not DEFAULT or points_of(figure) <= SVG_POINTS_MOST:
            image = save(figure, name, box)
            if name == "svg":
                image = image.decode("utf-8")
                if formats is DEFAULT and len(image) > SVG_CHARACTERS_MOST:
                    continue
            bundle.add(FORMATS[name], image)
    try:
        bundle.chart = _glovebox_charts.chart_of(figure)
    except Exception:
        bundle.chart = None  # an artist of an unknown kind or in an unexpected state; the picture is shown


def save(figure, name, box):
    file = io.BytesIO()
    figure.savefig(file, format=name, bbox_inches=box or "tight")
    return file.getvalue()


def size_of(png):
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def draw_png(figure):
    """Returns the picture and its box in inches; None if that needs a second drawing."""
    from matplotlib.backend_bases import FigureCanvasBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if type(figure.canvas) is FigureCanvasBase:  # made without pyplot
        FigureCanvasAgg(figure)
    if type(figure.canvas) is not FigureCanvasAgg:
        return save(figure, "png", None), None
    import numpy
    from PIL import Image

    dpi = figure.dpi
    figure.canvas.draw()
    pixels = numpy.asarray(figure.canvas.buffer_rgba())
    high, wide = pixels.shape[:2]
    drawn = pixels.view(numpy.uint32)[:, :, 0] != numpy.array(background_of(figure), numpy.uint8).view(numpy.uint32)[0]
    rows, columns = numpy.flatnonzero(drawn.any(axis=1)), numpy.flatnonzero(drawn.any(axis=0))
    if not len(rows) or rows[0] == 0 or rows[-1] == high - 1 or columns[0] == 0 or columns[-1] == wide - 1 or \
            has_texts_outside(figure, wide, high):
        box = figure.get_tightbbox(figure.canvas.get_renderer()).padded(PADDING)
        return save(figure, "png", box), box
    pad = round(PADDING * dpi)
    left, right = columns[0] - pad, columns[-1] + 1 + pad
    top, bottom = rows[0] - pad, rows[-1] + 1 + pad
    if left < 0 or top < 0 or right > wide or bottom > high:  # only the padding: it is the background
        padded = numpy.empty((high + 2 * pad, wide + 2 * pad, 4), dtype=pixels.dtype)
        padded[:] = background_of(figure)
        padded[pad : pad + high, pad : pad + wide] = pixels
        part = padded[top + pad : bottom + pad, left + pad : right + pad]
    else:
        part = pixels[top:bottom, left:right]
    file = io.BytesIO()
    Image.fromarray(numpy.ascontiguousarray(part), "RGBA").save(file, format="png", dpi=(dpi, dpi), compress_level=3)
    from matplotlib.transforms import Bbox

    return file.getvalue(), Bbox([[left / dpi, (high - bottom) / dpi], [right / dpi, (high - top) / dpi]])


def has_texts_outside(figure, wide, high):
    """Titles, texts and legends can lie wholly outside of the canvas, and then leave no pixel at its edge."""
    renderer = figure.canvas.get_renderer()
    for place in [figure, *figure.axes]:
        for artist in [*place.texts, getattr(place, "title", None), getattr(place, "legend_", None),
                       *getattr(place, "legends", ())]:
            if artist is None or not artist.get_visible() or getattr(artist, "get_text", lambda: "-")() == "":
                continue
            extent = artist.get_window_extent(renderer)
            if extent.x0 < 0 or extent.y0 < 0 or extent.x1 > wide or extent.y1 > high:
                return True
    return False


def background_of(figure):
    from matplotlib.colors import to_rgba

    return [round(part * 255) for part in to_rgba(figure.get_facecolor())]


def points_of(figure):
    """Estimates the size of an SVG: the points of lines, paths and images."""
    count = 0
    for axes in figure.axes:
        for line in axes.lines:
            count += len(line.get_xydata())
        for collection in axes.collections:
            offsets = collection.get_offsets()
            count += 4 * len(offsets) + sum(len(path.vertices) for path in collection.get_paths()[:SVG_POINTS_MOST])
        for image in axes.images:
            shape = image.get_array().shape
            count += shape[0] * shape[1] // 16
        count += 4 * len(axes.patches)
    return count


_glovebox_mime.SPECIAL[("matplotlib", "Figure")] = capture
_glovebox_ipython.ADOPTED[PYPLOT] = adopt_pyplot
_glovebox_ipython.MODULES["IPython.display"]["set_matplotlib_formats"] = set_formats
_glovebox_ipython.MODULES["matplotlib_inline.backend_inline"] = {"set_matplotlib_formats": set_formats}
_glovebox_ipython.MODULES["matplotlib_inline"] = {}
_glovebox_ipython.MODULES["IPython.utils.capture"] = {"capture_output": _glovebox_magics.capture_output,
                                                      "CapturedIO": _glovebox_magics.Captured}
_glovebox_magics.set_figure_formats = set_formats
