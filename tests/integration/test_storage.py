"""Artifacts on the disk: a served artifact has the hash of its name, and artifacts of one tenant do not evict those of
another."""

import concurrent.futures
import hashlib
import os
import re
import time

import pytest
from conftest import Glovebox
from serving import Serving, state_of_its_own

MIB = 1 << 20


@pytest.fixture
def glovebox_of_its_own(tmp_path):
    glovebox = Glovebox(tmp_path)
    state_of_its_own(glovebox)
    return glovebox


def make(serving, text, key=None):
    """Keeps an artifact of this text; gives its hash."""
    answer = serving.call("POST", "/v1/runs", {"command": ["sh", "-c", f"printf '%s' '{text}' > made"], "policy": "minimal"}, key=key)
    assert answer.status == 200 and answer.json["status"] == "ok", (answer.status, answer.json.get("error"))
    (artifact,) = answer.json["artifacts"]
    assert artifact["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    return artifact["sha256"]


def wait_until(what, seconds=15):
    """A file is removed within a second, and the time that a busy disk takes."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def metric(serving, name):
    text = serving.call("GET", "/metrics").body.decode()
    return int(re.search(rf"^{name} (\d+)$", text, re.MULTILINE)[1])


@pytest.mark.parametrize("damage", [b"", b"what was", b"what was mad_", b"what was made, and more"])
def test_a_damaged_artifact_is_reported_and_repaired(glovebox_of_its_own, damage):
    with Serving(glovebox_of_its_own, tcp=False) as serving:
        sha = make(serving, "what was made")
    place = glovebox_of_its_own.state / "daemon" / "blobs" / sha
    place.write_bytes(damage)
    with Serving(glovebox_of_its_own, tcp=False) as serving:
        answer = serving.call("GET", f"/v1/artifacts/{sha}")
        assert answer.status == 404 and "damaged on the disk" in answer.json["error"]["message"], answer.body
        assert metric(serving, "glovebox_artifacts_damaged_total") == 1 and "artifact.damaged" in serving.log.read_text()
        assert serving.call("GET", f"/v1/artifacts/{sha}").status == 404
        wait_until(lambda: not place.exists())
        assert make(serving, "what was made") == sha
        assert serving.call("GET", f"/v1/artifacts/{sha}").body == b"what was made"
    place.write_bytes(damage)
    with Serving(glovebox_of_its_own, tcp=False) as serving:
        make(serving, "what was made")
        assert serving.call("GET", f"/v1/artifacts/{sha}").body == b"what was made", "mended without a look at it"
        os.truncate(place, 3)
        assert serving.call("GET", f"/v1/artifacts/{sha}").status == 404, "cut short while the service runs"


def test_what_an_earlier_daemon_has_kept_is_hashed_once(glovebox_of_its_own):
    """Many readers at once, ranges, and one that hangs up while it waits."""
    content = os.urandom(20 * MIB)
    sha = hashlib.sha256(content).hexdigest()
    with Serving(glovebox_of_its_own, tcp=False) as serving:
        make(serving, "small")
    (glovebox_of_its_own.state / "daemon" / "blobs" / sha).write_bytes(content)
    (glovebox_of_its_own.state / "daemon" / "blobs" / (sha + ".h23456789abcdef0")).write_bytes(b"held by a daemon that is gone")
    with Serving(glovebox_of_its_own, tcp=False) as serving:
        place = f"/v1/artifacts/{sha}"
        gone = serving.open("GET", place, headers={"Range": "bytes=0-3"})
        gone.close()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: serving.call("GET", place), range(8)))
            assert all(answer.status == 200 and answer.body == content for answer in answers)
        part = serving.call("GET", place, headers={"Range": "bytes=1000-1999"})
        assert part.status == 206 and part.body == content[1000:2000]
        assert serving.call("HEAD", place).headers["ETag"] == f'"{sha}"'
        assert serving.call("GET", f"/v1/artifacts/{sha}.h23456789abcdef0").status == 404
        assert metric(serving, "glovebox_artifacts_damaged_total") == 0


def test_artifacts_of_one_tenant_evict_only_its_own(glovebox_of_its_own):
    with Serving(glovebox_of_its_own, "--artifacts", "20") as serving:
        quiet, loud = serving.key("--name", "quiet"), serving.key("--name", "loud")
        kept = [make(serving, f"quiet {i}", key=quiet) for i in range(5)]
        flood = "for i in $(seq 40); do echo $1 $i > f$i; done"
        for i in range(3):
            answer = serving.call("POST", "/v1/runs", {"command": ["sh", "-c", flood, "sh", str(i)], "policy": "minimal"}, key=loud)
            assert answer.status == 200 and len(answer.json["artifacts"]) == 40, answer.body
        for sha in kept:
            assert serving.call("GET", f"/v1/artifacts/{sha}", key=quiet).status == 200
        assert metric(serving, "glovebox_artifacts_kept") == 20, "what is evicted stops counting at once"
        wait_until(lambda: len(os.listdir(glovebox_of_its_own.state / "daemon" / "blobs")) == 20)
        assert metric(serving, "glovebox_artifacts_kept_bytes") == 20 * 4096
        assert metric(serving, "glovebox_artifacts_evicted_total") == 105
        assert serving.call("GET", f"/v1/artifacts/{answer.json['artifacts'][-1]['sha256']}", key=loud).status == 200
    with Serving(glovebox_of_its_own, "--artifacts", "10") as serving:
        assert metric(serving, "glovebox_artifacts_kept") == 10, "a smaller bound holds from the start on"
        assert sum(serving.call("GET", f"/v1/artifacts/{sha}", key=quiet).status == 200 for sha in kept) == 5


