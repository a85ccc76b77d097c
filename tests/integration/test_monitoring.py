"""/metrics by key and session, and what examples/monitoring makes of it: every name and label that it asks for is there."""

import json
import pathlib
import re

import pytest
import yaml
from serving import Serving, state_of_its_own

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/monitoring"
SERIES = re.compile(r'^(\w+?)(?:\{(.*)\})? ([0-9.]+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@pytest.fixture(scope="module", name="service")
def service_with_keys(tmp_path_factory):
    from conftest import Glovebox
    glovebox = Glovebox(tmp_path_factory.mktemp("m"))
    state_of_its_own(glovebox)
    with Serving(glovebox) as serving:
        yield serving


def series(service, key=None):
    """{(name, frozen labels): value}"""
    answer = service.call("GET", "/metrics", key=key)
    assert answer.status == 200, answer.body
    found = {}
    for line in answer.body.decode().splitlines():
        if not line.startswith("#"):
            name, labels, value = SERIES.match(line).groups()
            found[name, frozenset(LABEL.findall(labels or ""))] = float(value)
    return found


def of_key(found, name, key):
    return next(value for (series_name, labels), value in found.items()
                if series_name == name and ("key", key["id"]) in labels)


def test_keys_and_sessions_are_counted(service):
    key = service.key("--scope", "run,sessions,audit", "--tenant", 'a "b" \\', "--concurrency", "1")
    other = service.key("--scope", "run")
    for number in range(3):
        assert service.call("POST", "/v1/runs", {"language": "python", "code": f"print({number})"}, key=key).status == 200
    session = service.call("POST", "/v1/sessions", {"policy": "minimal"}, key=other)
    assert session.status == 403
    session = service.call("POST", "/v1/sessions", {"policy": "minimal"}, key=key)
    assert session.status == 201, session.body
    found = series(service, key)
    assert of_key(found, "glovebox_key_runs_total", key) == 3 and of_key(found, "glovebox_key_sessions", key) == 1
    assert of_key(found, "glovebox_key_cpu_seconds_total", key) > 0 and of_key(found, "glovebox_key_refused_total", key) == 0
    assert ("glovebox_key_runs_total", frozenset({("key", key["id"]), ("tenant", r'a \"b\" \\')})) in found
    assert found["glovebox_sessions", frozenset({("state", "running")})] == 1
    path = f"/v1/sessions/{session.json['id']}"
    assert service.call("POST", f"{path}/pause", key=key).status == 200
    assert series(service)["glovebox_sessions", frozenset({("state", "paused")})] == 1
    assert service.call("DELETE", path, key=key).status in (200, 204)
    assert sum(value for (name, _), value in series(service).items() if name == "glovebox_sessions") == 0
    assert found["glovebox_state_free_bytes", frozenset()] > 1 << 20


def expressions():
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]:
        for rule in group["rules"]:
            assert rule["labels"]["severity"] in ("critical", "warning", "info") and rule["annotations"]["description"]
            yield rule["expr"], [*rule["annotations"].values()]
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            yield target["expr"], [target["legendFormat"]]


def test_every_name_and_label_that_is_asked_for_is_there(service):
    labels = {"up": {"job"}}
    for name, pairs in series(service):
        labels.setdefault(name, set()).update(label for label, _ in pairs)
    asked = list(expressions())
    assert len(asked) > 20
    for expression, texts in asked:
        names = set(re.findall(r"\bglovebox_\w+|\bup\b", expression))
        assert names and names <= set(labels), (expression, names - set(labels))
        there = set().union(*(labels[name] for name in names))
        wanted = set(re.findall(r'(\w+)=[~"]', expression))
        for by in re.findall(r"\bby \(([\w, ]+)\)", expression):
            wanted |= {word.strip() for word in by.split(",")}
        for text in texts:
            wanted |= set(re.findall(r"\{\{(\w+)\}\}|\$labels\.(\w+)", text) and
                          [one or two for one, two in re.findall(r"\{\{(\w+)\}\}|\$labels\.(\w+)", text)])
        assert wanted <= there, (expression, texts, wanted - there)


def test_the_scrape_is_the_default_port():
    scrape = yaml.safe_load((FOLDER / "prometheus.yaml").read_text())
    assert scrape["rule_files"] == ["alerts.yaml"] and scrape["scrape_configs"][0]["static_configs"][0]["targets"] == ["127.0.0.1:7070"]
