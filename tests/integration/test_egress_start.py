"""glovebox-egress starts in parallel with gloveboxd: a run that comes before it is ready is served as soon as it is."""

import shutil

from conftest import BUILD
from serving import Serving, let_others_in

PARTS = ("gloveboxd", "glovebox-spawner", "glovebox-init", "glovebox-notify")


def test_a_run_waits_for_the_first_start(glovebox, tmp_path):
    folder, policies = tmp_path / "parts", tmp_path / "policies"
    folder.mkdir()
    policies.mkdir()
    for part in PARTS:
        shutil.copy(BUILD / part, folder / part)
    (folder / "glovebox-egress").write_text(f'#!/bin/sh\nsleep 2\nexec {BUILD / "glovebox-egress"} "$@"\n')
    (folder / "glovebox-egress").chmod(0o755)
    (policies / "web.yaml").write_text("name: web\ntemplate: python\nlanguages: [python]\nnetwork: {allow: [a.example.org]}\n")
    let_others_in(folder)
    let_others_in(policies)
    with Serving(glovebox, env={"GLOVEBOX_LIBEXEC": str(folder), "GLOVEBOX_POLICIES": str(policies)}) as serving:
        for code in ("print('first')", "print('second')"):
            result = serving.call("POST", "/v1/runs", {"language": "python", "code": code, "policy": "web"}).json
            assert (result["status"], result["stdout"]) == ("ok", code[7:-2] + "\n"), result
