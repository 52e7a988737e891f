"""An engine that stops answering in the middle, and comes back: over its real interface, with a server in its place."""

import http.server
import json
import threading

import pytest

from testbed.errors import TestbedError
from testbed.provision import resources as removal
from testbed.provision.containers import Engine, EngineGone


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path.partition("/v1.41")[2] or self.path)
        if self.server.hang_up:
            return
        body = b"OK" if "_ping" in self.path else json.dumps({"ApiVersion": "1.41", "Volumes": None}).encode()
        if "/containers" in self.path or "/networks" in self.path:
            body = b"[]"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words):
        pass


class Player:
    """The engine's part: `away` closes its port, `back` opens the same one again."""

    def __init__(self):
        self.port, self.server = 0, None
        self.back()

    def back(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.asked, self.server.hang_up = [], False
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def away(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def player(monkeypatch, tmp_path):
    player = Player()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{player.port}")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(removal, "SETTLE_S", 0.0)
    monkeypatch.setattr(removal, "devices_with_alias", lambda _alias: {})
    yield player
    player.away()


@pytest.fixture
def engine(player):
    engine = Engine()
    engine.containers()  # the connection is opened at first use
    yield engine
    engine.close()


@pytest.mark.parametrize("how", ["refuses", "hangs up"])
def test_no_answer_is_an_error_that_says_so(player, engine, how):
    player.server.hang_up = how == "hangs up"
    if how == "refuses":
        player.away()
    with pytest.raises(EngineGone, match=r"^the container engine stopped answering .*; was it stopped or restarted\?$"):
        engine.containers()
    if how == "refuses":
        player.back()


def test_it_is_waited_for_until_it_is_back(player, engine):
    player.away()
    threading.Timer(0.3, player.back).start()
    engine.wait_answering(5.0)
    assert engine.containers() == []


def test_one_that_does_not_come_back_is_told(player, engine):
    player.away()
    with pytest.raises(EngineGone, match=r"waited 0.2 s for the container engine to answer again; last seen: the cont"):
        engine.wait_answering(0.2)
    player.back()


def test_removing_begins_again_when_the_engine_goes_away_in_the_middle(player, engine, monkeypatch):
    volumes = Engine.volumes

    def restarted_before(self, name):
        monkeypatch.setattr(Engine, "volumes", volumes)
        player.away()
        threading.Timer(0.3, player.back).start()
        return volumes(self, name)

    monkeypatch.setattr(Engine, "volumes", restarted_before)
    assert removal.remove(engine, "one") == []
    assert [path.split("?")[0] for path in player.server.asked if "volumes" in path] == ["/volumes"]


def test_an_engine_that_is_not_there_at_all_says_how_to_get_one(player):
    player.away()
    with pytest.raises(TestbedError, match="`testbed doctor --fix` installs and starts one"):
        Engine().containers()
    player.back()
