"""What a server is told, and what it is not told where others can see it."""

import http.server
import threading

import pytest
from botocore.exceptions import ClientError

from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan
from testbed.objectstore import Credentials, ObjectStore, server
from testbed.owner import Owner
from testbed.provision import state as states
from testbed.provision.containers import Labels
from testbed.provision.machine import DiskMount
from testbed.provision.plan import ClusterIdentity, host_spec
from testbed.topology import loads
from tests.provision.states import make

KEYS = Credentials("the-access-key", "the-secret-key")


def topology(servers):
    stores = "".join(f"  s{n + 1}: {{role: objectstore}}\n" for n in range(servers))
    return loads(
        "name: t\nkafka: {version: 4.3.1}\ndefaults: {nic: {rate: 400mbit}}\n"
        f"hosts:\n  b1: {{role: both}}\n{stores}  l1: {{role: client}}\n"
    )


def plan(found):
    return AddressPlan(3, tuple(host.name for host in found.hosts))


def test_one_server_has_one_folder():
    one = topology(1)
    assert server.endpoints(one, plan(one)) == ("http://198.19.3.12:9000",)
    told = ["env", "MINIO_CONFIG_ENV_FILE=/etc/testbed/s3/server.env", server.BINARY, "server", "--anonymous"]
    assert list(server.command(one, plan(one))) == [*told, "--address", ":9000", "/var/lib/minio/d1"]


def test_several_servers_are_one_store():
    three = topology(3)
    found = server.drives(three, plan(three))
    assert found[:2] == ("http://198.19.3.12:9000/var/lib/minio/d1", "http://198.19.3.12:9000/var/lib/minio/d2")
    assert len(found) == len({*found}) == 12
    assert server.command(three, plan(three))[-12:] == found
    assert "MINIO_CI_CD=on" in server.command(three, plan(three))


def test_credentials_are_new_each_time_and_are_not_shown():
    first, second = Credentials.generate(), Credentials.generate()
    assert first != second and len(first.secret_key) == 40
    assert repr(KEYS) == "Credentials()" and "secret" not in f"{KEYS}"
    assert Credentials.parse(KEYS.text()) == KEYS
    for text in ("", "access_key=the-access-key\n", "the-secret-key"):
        with pytest.raises(ValueError) as refused:
            Credentials.parse(text)
        assert "the-" not in str(refused.value)


def test_credentials_are_kept_for_their_owner_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(TestbedError, match=r"s3-credentials, with which testbed one's object store is used, cannot be"):
        states.load_credentials("one")
    states.credentials_path("one").parent.mkdir(parents=True)
    states.write_credentials("one", KEYS)
    assert states.load_credentials("one") == KEYS
    assert states.credentials_path("one").stat().st_mode & 0o777 == 0o600


def specs(found, **more):
    labels = Labels("one", 3, Owner(1, 0, "boot"), "/state")
    identity = ClusterIdentity.generate(found)
    image = "image"
    return identity, {
        host.name: host_spec(host, found, plan(found), identity, image, labels, None, {}, **more)
        for host in found.hosts
    }


def test_who_serves_or_uses_the_store_has_its_credentials_in_private_files(tmp_path):
    identity, found = specs(topology(1), minio=tmp_path / "minio")
    keys = identity.store
    for name, files in (
        ("b1", {server.CREDENTIALS_FILE}),
        ("s1", {server.CREDENTIALS_FILE, server.ENVIRONMENT}),
        ("l1", set()),
    ):
        spec = found[name]
        holding = {path for path, content in spec.files.items() if keys.secret_key.encode() in content}
        assert holding == files <= {*spec.private_files}, name
        said = [*spec.command, *spec.labels.values(), *spec.names, *spec.read_only_mounts]
        assert not any(keys.secret_key in word or keys.access_key in word for word in said)
    assert found["s1"].files[server.CREDENTIALS_FILE] == keys.text().encode()
    assert found["s1"].read_only_mounts == {str(tmp_path / "minio"): server.BINARY}
    assert server.BINARY not in {*found["b1"].read_only_mounts.values()}


def test_its_disk_is_where_its_objects_are():
    _identity, found = specs(topology(1), disk=DiskMount("volume", "/dev/loop7"))
    assert (found["s1"].volumes, found["b1"].volumes) == ({"volume": server.DATA_DIR}, {"volume": "/var/lib/kafka"})


def test_without_an_object_store_there_are_no_credentials():
    identity, found = specs(topology(0))
    assert identity.store is None
    assert server.CREDENTIALS_FILE not in found["b1"].files


class Health(http.server.BaseHTTPRequestHandler):
    status = 503

    def do_GET(self):
        self.send_response(self.status if self.path == "/minio/health/cluster" else 404)
        self.send_header("X-Minio-Write-Quorum", "7")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_words):
        pass


def test_a_server_that_lacks_drives_or_does_not_answer_is_not_ready(monkeypatch):
    one = topology(1)
    store = ObjectStore(one, plan(one), {}, KEYS)
    with http.server.HTTPServer(("127.0.0.1", 0), Health) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        monkeypatch.setattr("testbed.objectstore.store.PORT", listening.server_port)
        monkeypatch.setattr(AddressPlan, "data_ip", lambda _plan, _host: "127.0.0.1")
        assert store.silence("s1") == "it answers 503, too few drives to write (it takes 7)"
        monkeypatch.setattr(Health, "status", 200)
        assert store.silence("s1") == ""
        listening.shutdown()
    assert "refused" in store.silence("s1")


class OneObject:
    """A client of one endpoint of a store of several servers; `statuses` has what each endpoint answers a get with."""

    def __init__(self, endpoint, statuses, asked):
        self.endpoint, self.statuses, self.asked = endpoint, statuses, asked

    def put_object(self, **_what):
        self.asked.append(f"put {self.endpoint}")

    def delete_object(self, **_what):
        self.asked.append(f"delete {self.endpoint}")

    def get_object(self, **_what):
        status = self.statuses.get(self.endpoint, 200)
        if status != 200:
            raise ClientError({"Error": {"Code": "x"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject")

    def close(self):
        pass


def test_each_server_is_asked_for_what_another_one_stored(monkeypatch):
    three, asked = topology(3), []
    store = ObjectStore(three, plan(three), {}, KEYS)
    first, second, _third = store.endpoints
    statuses = {first: 404}
    monkeypatch.setattr(store, "client", lambda endpoint, **_settings: OneObject(endpoint, statuses, asked))
    assert store.mark(without="s1")
    assert store.unmarked() == {"s1": 404}
    statuses.clear()
    assert store.unmarked() == {}
    store.remove_mark()
    assert asked == [f"put {second}", f"delete {first}"]
    one = topology(1)
    assert not ObjectStore(one, plan(one), {}, KEYS).mark(without="s1")


def test_only_its_own_hosts_are_servers():
    one = topology(1)
    store = ObjectStore(one, plan(one), {"s1": None}, KEYS)
    assert store.server("s1").what == "MinIO"
    with pytest.raises(TestbedError, match="b1 runs no object store; s1 of t do"):
        store.server("b1")


@pytest.mark.parametrize("profile", ["default", "in-no-file"])
def test_the_client_asks_the_store_with_its_keys_whatever_the_user_has_set(monkeypatch, tmp_path, profile):
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\ns3 =\n  use_accelerate_endpoint = true\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", profile)
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "the-users")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    one = topology(1)
    client = ObjectStore(one, plan(one), {}, KEYS).client(attempts=1)
    assert client.meta.endpoint_url == "http://198.19.3.12:9000"
    assert client._request_signer._credentials.access_key == "the-access-key"
    assert client.meta.config.proxies == {}
    assert client.generate_presigned_url("list_buckets").startswith("http://198.19.3.12:9000/?")
    client.close()


def test_the_state_of_a_testbed_has_no_credentials():
    assert not [name for name in make().__dataclass_fields__ if "credential" in name or "secret" in name]
