# project_file.py - reads the packages of a project: pyproject.toml, and the lock files of uv, Poetry, PDM and PEP 751.
# Between pip_resolution.py and fetch_wheels.py. A lock's packages keep their versions and digests; those for other systems,
# for development or for extras are left out; those from a URL or a folder are refused.

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib


def applies(marker):
    try:
        return not marker or markers.Marker(marker).evaluate({"extra": ""})
    except (markers.InvalidMarker, markers.UndefinedEnvironmentName):
        return give_up(f"the marker {plain(marker)} cannot be read")


def tables(value):
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def own_of(package):
    """Is it the project itself, or a part of it? Its code does not come from an index, and is not installed."""
    source = package.get("source") if isinstance(package.get("source"), dict) else {}
    return "virtual" in source or "editable" in source or source.get("type") == "directory" or "directory" in package


def address_of(package):
    """Its source, if that is not an index."""
    source = package.get("source") if isinstance(package.get("source"), dict) else {}
    kinds = [kind for kind in ("git", "url", "path", "directory", "vcs", "archive") if kind in source or kind in package]
    if source.get("type") in ("git", "url", "file"):
        kinds.append(source["type"])
    return kinds[0] if kinds else ""


def digests_of(package):
    """SHA-256 of its archives; empty if the lock has none."""
    files = tables(package.get("wheels")) + tables(package.get("files"))
    texts = [one.get("hash") or "sha256:" + str((one.get("hashes") or {}).get("sha256", "")) for one in files]
    return {text.removeprefix("sha256:") for text in texts if re.fullmatch(r"sha256:[0-9a-f]{64}", text)}


def reached_of(packages):
    """uv's lock has all groups in one list: finds the packages that the project itself needs."""
    own = [package for package in packages if own_of(package)]
    if not any("dependencies" in package for package in own):
        return packages
    by_name, found, waiting = {}, [], list(own)
    for package in packages:
        by_name.setdefault(same(package.get("name", "")), []).append(package)
    while waiting:
        package = waiting.pop()
        if any(package is one for one in found):
            continue
        found.append(package)
        for need in tables(package.get("dependencies")):
            named = by_name.get(same(str(need.get("name", ""))), []) if applies(need.get("marker")) else []
            waiting += [one for one in named if need.get("version") in (None, one.get("version"))]
            for extra in need.get("extra") or []:
                optional = [table for one in named for table in tables((one.get("optional-dependencies") or {}).get(extra))]
                waiting += [one for table in optional if applies(table.get("marker"))
                            for one in by_name.get(same(str(table.get("name", ""))), [])]
    return found


def is_wanted(package):
    groups = package.get("groups")
    forks = package.get("resolution-markers") or []
    marker = package.get("marker") or package.get("markers")
    if isinstance(marker, dict):
        marker = marker.get("main")
    return not (own_of(package) or package.get("optional") is True or (groups and not {"main", "default"} & set(groups))
                or (forks and not any(applies(one) for one in forks)) or not applies(marker))


def rows_of_lock(label, packages):
    needs, digests = [], {}
    for package in filter(is_wanted, reached_of(packages)):
        name, version = plain(package.get("name")), plain(package.get("version"))
        if address_of(package):
            give_up(f"{label}: {name} comes from a {address_of(package)}; only packages of the index are taken")
        need = requirement_of(f"{name}=={version}", label)
        needs.append(str(need))
        digests[same(need.name), version] = digests_of(package)
    return needs, digests


def rows_of_project(label, project, tool):
    if "dependencies" not in project and "poetry" in tool:
        give_up(f"{label} lists its packages in Poetry's own form; give poetry.lock, which has their versions")
    needs = project.get("dependencies", [])
    if not isinstance(needs, list):
        give_up(f"{label}: dependencies of [project] is no list")
    for text in needs:
        if requirement_of(str(text), label).url:
            give_up(f"{label} needs {plain(requirement_of(text, label).name)} from an address; only packages of the index are taken")
    return [plain(text) for text in needs], {}


def read_project(label, text):
    """Returns requirements, and the known digests by (name, version)."""
    label = plain(label)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        give_up(f"{label} is no TOML: {plain(error)}")
    packages = tables(found.get("package")) or tables(found.get("packages"))
    if packages or "lock-version" in found:
        return rows_of_lock(label, packages)
    if not isinstance(found.get("project"), dict) and not isinstance(found.get("tool"), dict):
        give_up(f"{label} is neither a pyproject.toml nor a lock of uv, Poetry, PDM or PEP 751")
    return rows_of_project(label, found.get("project") or {}, found.get("tool") or {})
