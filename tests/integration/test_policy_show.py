"""`glovebox policy show` prints everything that an effective policy holds, a policy describes only itself, and no message
loses its end to a long path."""

import json
import re

import pytest

# Every key that a policy file can have, with values that occur once.
WHOLE = """name: whole
description: every key
template: some-template
languages: [python, perl]
limits: {wall: 31s, cpu: 32s, cpus: 1.5, memory: 513MiB, processes: 65, disk: 257MiB, inodes: 16385, open_files: 1025, output: 3MiB,
         artifacts: 67MiB, artifact_files: 259, disk_read_rate: 41MiB, disk_write_rate: 43MiB}
maximum: {wall: 11m}
network:
  allow: [{host: api.example.org, ports: [8081], methods: [GET], paths: [/a/]}, {host: tls.example.org, intercept: true},
          {network: 10.1.0.0/16, ports: [8082]}]
  endpoints: {model: {url: "http://localhost:11434/v1", methods: [POST], paths: [/api/], rate: 61, idle: 33s,
                      headers: [X-Some-Key], network: 127.0.0.0/8}}
  sets: [github]
  bytes: 7MiB
  received: 9MiB
  connections: 13
sessions: {max: 17, idle: 12m, age: 25h, memory: 2GiB, checkpoints: 5, checkpoints_size: 3GiB}
env: {SOME_NAME: some-value}
precheck: {subprocess: deny, modules: {ask: [socket]}}
approval: {when: [network], by: out_of_band, scopes: [once], expires: 16m}
expect: {secrets: forbid, on_fault: withhold}
"""


def env_of(folder):
    return {"GLOVEBOX_POLICIES": str(folder), "GLOVEBOX_STATE": str(folder / "state")}


def show(glovebox, folder, *words):
    said = glovebox("policy", "show", *words, env=env_of(folder))
    assert said.returncode == 0, said.stderr
    return said.stdout.decode()


def test_show_prints_every_value_of_a_policy_that_says_everything(glovebox, tmp_path):
    (tmp_path / "whole.yaml").write_text(WHOLE)
    text = show(glovebox, tmp_path, "whole")
    values = re.sub(r"[\[\]{}:,\"]|\n *", " ", WHOLE).split()
    keys = {"name", "limits", "maximum", "allow", "host", "ports", "methods", "paths", "intercept", "true", "endpoints", "url", "rate",
            "headers", "sets", "modules", "http", "sessions", "by", "checkpoints"}
    squeezed = text.replace(" ", "")
    missing = [value for value in values if value not in keys and value not in squeezed]
    assert not missing, (missing, text)
    for line in (r"bytes +7 MiB", r"received +9 MiB", r"connections +13", r"sessions .*max 17,.*checkpoints 5,", r"61 a minute",
                 r"subprocess +deny", r"import socket: ask", r"expires 16 m"):
        assert re.search(line, text), (line, text)
    assert "intercepted" in text and "(set github)" in text and "model.endpoint" in text


def test_the_policy_of_that_test_has_every_key(glovebox, tmp_path):
    """What files can say is asked of the reader itself: a key that is new fails here until `show` is tried with it."""
    for where, wrong in (("", "zzz: 1"), ("limits", "limits: {zzz: 1}"), ("sessions", "sessions: {zzz: 1}"),
                         ("network", "network: {zzz: 1}"), ("endpoint", "network: {endpoints: {a: {zzz: 1}}}"),
                         ("allow", "network: {allow: [{zzz: 1}]}"), ("approval", "approval: {zzz: 1}")):
        (tmp_path / "p.yaml").write_text(f"name: p\n{wrong}\n")
        said = glovebox("policy", "validate", str(tmp_path / "p.yaml"), env=env_of(tmp_path))
        keys = re.findall(r"[a-z_]+", re.split(r" are | has |; write ", said.stderr.decode(), maxsplit=1)[1].split(";")[0])
        missing = {key for key in keys if not re.search(rf"\b{key}:", WHOLE)}
        assert said.returncode == 125 and len(keys) >= 4 and missing <= {"extends", "and"}, (where, said.stderr, missing)


BASE = "name: base\ndescription: No network at all.\ntemplate: t\nlanguages: [python]\n"


@pytest.mark.parametrize("more,description", [
    ("", "No network at all."), ("limits: {wall: 3s}\n", "No network at all."), ("network: {allow: [a.b]}\n", ""),
    ("languages: [perl]\n", ""), ("template: u\n", ""), ("network: {allow: [a.b]}\ndescription: mine\n", "mine")])
def test_a_description_is_inherited_only_by_a_policy_that_it_is_true_of(glovebox, tmp_path, more, description):
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "child.yaml").write_text(f"name: child\nextends: base\n{more}")
    assert json.loads(show(glovebox, tmp_path, "--json", "child"))["description"] == description
    listed = glovebox("policy", "list", env=env_of(tmp_path)).stdout.decode()
    [line] = [line for line in listed.splitlines() if line.startswith("child ")]
    assert line.split(None, 1)[1] == (description or "(no description; extends base)")


@pytest.mark.parametrize("text, says", [(None, "no policy is there"), ("name: p\nextends: data\n", "what is wrong is not listed")])
def test_a_list_that_lacks_something_names_its_folders(glovebox, tmp_path, text, says):
    if text:
        (tmp_path / "p.yaml").write_text(text)
    told = glovebox("policy", "list", env=env_of(tmp_path)).stderr.decode().splitlines()[-1]
    assert told == f"glovebox: {says}; looked in {tmp_path} (of GLOVEBOX_POLICIES), {tmp_path}/state/policies (the state's)"


@pytest.mark.parametrize("wrong", ["zzz: 1", "limits: {zzz: 1}", "network: {allow: [{host: a.b, paths: [/a]}]}", "network: {zzz: 1}"])
def test_a_long_path_leaves_a_message_whole(glovebox, tmp_path, wrong):
    says = []
    for folder in (tmp_path, tmp_path / ("a" * 100) / ("b" * 100) / ("c" * 100)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "p.yaml").write_text(f"name: p\ntemplate: t\nlanguages: [python]\n{wrong}\n")
        said = glovebox("policy", "validate", str(folder / "p.yaml")).stderr.decode()
        says.append(said[said.index("p.yaml:"):])
    assert says[0] == says[1]
