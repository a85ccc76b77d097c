"""Extracts the data of a matplotlib figure: lines, points, bars, pies and boxes, for each axes. An agent that
cannot look at a picture can read these."""

import math
import re
import sys

POINTS_MOST = 5000  # of one element
ELEMENTS_MOST = 200
CHARTS_MOST = 64
UNIT = re.compile(r"\s*[(\[]([^()\[\]]+)[)\]]\s*$")


def chart_of(figure):
    """None if the figure has no element of a known kind."""
    charts = [chart for chart in map(of_axes, figure.axes[:CHARTS_MOST]) if chart is not None]
    if not charts:
        return None
    title = getattr(figure, "_suptitle", None)
    title = title.get_text() if title is not None else None
    if len(charts) == 1:
        if title and not charts[0]["title"]:
            charts[0]["title"] = title
        return charts[0]
    return {"type": "superchart", "title": title or None, "elements": charts}


def of_axes(axes):
    for kind, reader in (("pie", pie), ("box_and_whisker", boxes), ("bar", bars), ("line", lines),
                         ("scatter", scatter)):
        elements = reader(axes)
        if elements:
            break
    else:
        if not (axes.lines or axes.collections or axes.patches or axes.images):
            return None
        kind, elements = "unknown", []
    chart = {"type": kind, "title": axes.get_title() or None, "elements": elements[:ELEMENTS_MOST]}
    if kind not in ("pie", "unknown"):
        label_axes(chart, axes, kind == "bar" and is_horizontal(axes) or kind == "box_and_whisker" and lying(axes))
    if kind in ("line", "scatter"):
        scale_axes(chart, axes)
    return chart


def label_axes(chart, axes, swapped):
    texts = [axes.get_xlabel(), axes.get_ylabel()]
    if swapped:
        texts.reverse()
    for name, text in zip("xy", texts):
        unit = UNIT.search(text)
        chart[f"{name}_label"] = text or None
        chart[f"{name}_unit"] = unit[1] if unit else None


def scale_axes(chart, axes):
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        ticks, labels = ticks_of(axis)
        scale = axis.get_scale()
        if is_dates(axis):
            scale, ticks = "datetime", [moment(tick) for tick in ticks]
        elif scale == "linear" and is_categories(axis):
            scale = "categorical"
        chart[f"{name}_ticks"] = [plain(tick) for tick in ticks]
        chart[f"{name}_tick_labels"] = labels
        chart[f"{name}_scale"] = scale


def ticks_of(axis):
    """The ticks that were drawn; asking the axis would lay it out again."""
    low, high = sorted(axis.get_view_interval())
    ticks = [(float(tick.get_loc()), tick.label1.get_text()) for tick in axis.majorTicks[:100]]
    ticks = [(place, text) for place, text in ticks if low <= place <= high]
    return [place for place, _ in ticks], [text for _, text in ticks]


def is_dates(axis):
    return "Date" in type(axis.get_converter() if hasattr(axis, "get_converter") else axis.converter).__name__


def is_categories(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    return "Categor" in type(converter).__name__


def moment(days):
    try:
        return sys.modules["matplotlib.dates"].num2date(days).isoformat()
    except (ValueError, OverflowError):
        return None


def plain(value):
    """A number that JSON can hold; text unchanged."""
    if isinstance(value, str) or value is None:
        return value
    value = float(value)
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def points(axes, xs, ys):
    read_x = reader_of(axes.xaxis)
    read_y = reader_of(axes.yaxis)
    return [[read_x(x), read_y(y)] for x, y in zip(xs, ys)]


def reader_of(axis):
    if is_dates(axis):
        return lambda value: moment(float(value))
    if is_categories(axis):
        names = {int(number): str(name) for name, number in getattr(axis.units, "_mapping", {}).items()}
        return lambda value: names.get(value, plain(value)) if value == value else None
    return plain


def label_of(artist, otherwise):
    label = str(artist.get_label() or "")
    return otherwise if not label or label.startswith("_") else label


def thinned(values):
    """Every n-th value, so that at most POINTS_MOST are left."""
    step = -(-len(values) // POINTS_MOST)
    return values[::step] if step > 1 else values


def lines(axes):
    found = []
    for line in axes.lines:
        data = thinned(line.get_xydata())
        if line.get_visible() and len(data) and line.get_transform().contains_branch(axes.transData) and \
                line.get_linestyle() not in ("None", "", " "):
            found.append({"label": label_of(line, f"Line {len(found) + 1}"), "points": points(axes, *data.T)})
    return found


def scatter(axes):
    found = []
    for artist in axes.collections:
        if type(artist).__name__ == "PathCollection" and len(artist.get_offsets()):
            data = thinned(artist.get_offsets())
            found.append({"label": label_of(artist, f"Group {len(found) + 1}"), "points": points(axes, *data.T)})
    for line in axes.lines:  # markers without a line between
        data = thinned(line.get_xydata())
        if len(data) and line.get_linestyle() in ("None", "", " ") and line.get_marker() not in ("None", "", None):
            found.append({"label": label_of(line, f"Group {len(found) + 1}"), "points": points(axes, *data.T)})
    return found


def bar_groups(axes):
    return [group for group in axes.containers if type(group).__name__ == "BarContainer" and len(group.patches)]


def is_horizontal(axes):
    groups = bar_groups(axes)
    return bool(groups) and groups[0].orientation == "horizontal"


def bars(axes):
    found = []
    groups = bar_groups(axes)
    for number, group in enumerate(groups):
        lying_down = group.orientation == "horizontal"
        axis = axes.yaxis if lying_down else axes.xaxis
        names = names_of_ticks(axis)
        read = reader_of(axis)
        for patch in group.patches[:POINTS_MOST]:
            middle = patch.get_y() + patch.get_height() / 2 if lying_down else patch.get_x() + patch.get_width() / 2
            value = patch.get_width() if lying_down else patch.get_height()
            label = names.get(round(middle, 6)) or nearest(names, middle, len(groups)) or read(middle)
            found.append({"label": str(label), "group": label_of(group, f"Group {number + 1}"),
                          "value": plain(value)})
    return found


def names_of_ticks(axis):
    """Tick labels that are not just the numbers of their positions."""
    if is_dates(axis):
        return {}
    from_ticks = {}
    for place, text in zip(*ticks_of(axis)):
        if text:
            from_ticks[round(place, 6)] = text
    numbers = sum(is_number(text) for text in from_ticks.values())
    return {} if numbers == len(from_ticks) else from_ticks


def nearest(names, middle, groups):
    """The label of a bar; bars of several groups side by side share one."""
    if groups < 2 or not names:
        return None
    place = min(names, key=lambda place: abs(place - middle))
    return names[place] if abs(place - middle) <= 0.5 else None


def is_number(text):
    try:
        float(text.replace("\N{MINUS SIGN}", "-"))
        return True
    except ValueError:
        return False


def pie(axes):
    wedges = [patch for patch in axes.patches if type(patch).__name__ == "Wedge"]
    return [{"label": label_of(wedge, str(number + 1)), "angle": plain(wedge.theta2 - wedge.theta1),
             "radius": plain(wedge.r)} for number, wedge in enumerate(wedges)]


def box_paths(axes):
    return [patch for patch in axes.patches if type(patch).__name__ == "PathPatch"]


def lying(axes):
    drawn = box_lines(axes)
    return bool(drawn) and drawn[0][0] == "y"


def box_lines(axes):
    """(which axis the boxes stand on, [(box, median, whiskers…, fliers)]) is not kept by matplotlib; a box is
    a closed line or patch of five corners, and what belongs to it shares its middle."""
    shapes = [line.get_xydata() for line in axes.lines if len(line.get_xydata()) == 5]
    shapes += [path.get_path().vertices[:5] for path in box_paths(axes) if len(path.get_path().vertices) >= 5]
    found = []
    for corners in shapes:
        xs, ys = corners[:, 0], corners[:, 1]
        if len({*xs}) == 2 and len({*ys}) <= 3 and (xs[0] == xs[-1] and ys[0] == ys[-1]):
            found.append(corners)
    others = [line.get_xydata() for line in axes.lines]
    rows = []
    for corners in found:
        for name, along, across in (("x", 1, 0), ("y", 0, 1)):
            middle = (corners[:, across].min() + corners[:, across].max()) / 2
            low, high = corners[:, along].min(), corners[:, along].max()
            whiskers = [line for line in others if len(line) == 2 and abs(line[0][across] - middle) < 1e-9 and
                        abs(line[1][across] - middle) < 1e-9 and
                        sum(end in (low, high) for end in line[:, along]) == (1 if line[0][along] != line[1][along] else 2)]
            if len(whiskers) == 2:
                rows.append((name, along, across, middle, low, high, whiskers))
                break
    return rows


def boxes(axes):
    found = []
    for name, along, across, middle, low, high, whiskers in box_lines(axes):
        ends = [float(value) for line in whiskers for value in line[:, along]]
        axis = axes.xaxis if name == "x" else axes.yaxis
        median, outliers = None, []
        for line in axes.lines:
            data = line.get_xydata()
            if len(data) == 2 and data[0][along] == data[1][along] and low <= data[0][along] <= high and \
                    min(data[:, across]) < middle < max(data[:, across]) and \
                    data[0][along] not in (min(ends), max(ends)):
                median = float(data[0][along])
            elif line.get_linestyle() in ("None", "") and len(data) and all(data[:, across] == middle):
                outliers = [plain(value) for value in data[:POINTS_MOST, along]]
        label = names_of_all_ticks(axis).get(round(float(middle), 6), str(plain(middle)))
        found.append({"label": label, "min": plain(min(ends)), "first_quartile": plain(low),
                      "median": plain(median) if median is not None else None, "third_quartile": plain(high),
                      "max": plain(max(ends)), "outliers": outliers})
    return found


def names_of_all_ticks(axis):
    return {round(place, 6): text for place, text in zip(*ticks_of(axis)) if text}
