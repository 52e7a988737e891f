"""The engine's interface in memory, as `testbed.provision.containers.Engine` calls it."""

import docker.errors

FULL = "mkdir /var/lib/docker/overlay2/4f1c: no space left on device"


class FullApi:
    """The engine's interface on a disk that is full when `fails` is called for the `after`-th time."""

    def __init__(self, fails, after):
        self.fails, self.after = fails, after
        self.made, self.nets = {}, {}

    def _call(self, name):
        if name == self.fails:
            self.after -= 1
            if self.after < 0:
                raise docker.errors.APIError("500 Server Error", explanation=FULL)

    def create_network(self, name, labels, **_rest):
        self._call("create_network")
        self.nets[name] = labels

    def create_container(self, _image, *, name, labels, **_rest):
        self._call("create_container")
        self.made[name] = labels
        return {"Id": name}

    def put_archive(self, _id, _path, _archive):
        self._call("put_archive")

    def start(self, _id):
        self._call("start")

    def containers(self, **_rest):
        return [{"Id": name, "Labels": labels, "State": "created"} for name, labels in self.made.items()]

    def networks(self, **_rest):
        return [{"Id": name, "Labels": labels} for name, labels in self.nets.items()]

    def volumes(self, **_rest):
        return {"Volumes": None}

    def ping(self):
        return True

    def version(self):
        return {"Version": "28.0.4"}

    def info(self):
        return {"OperatingSystem": "Ubuntu 24.04.2 LTS"}

    def inspect_container(self, name):
        return {"State": {"Running": False, "Status": "created"}}

    def remove_container(self, name, **_rest):
        del self.made[name]

    def remove_network(self, name):
        del self.nets[name]

    def create_endpoint_config(self, **_rest):
        return {}

    create_networking_config = create_host_config = lambda _self, *_words, **_rest: {}
