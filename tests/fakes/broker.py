"""A broker that answers just enough for a client to find its way about: versions, metadata, DescribeConfigs."""

import contextlib
import socket
import struct
import threading

from kafka.protocol.admin import DescribeConfigsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

API_VERSIONS, METADATA, DESCRIBE_CONFIGS = 18, 3, 32
VERSIONS = {API_VERSIONS: (0, 2), METADATA: (1, 5), DESCRIBE_CONFIGS: (1, 2)}


class FakeBroker:
    """Listens on the loopback; `cluster` is id → port of every broker that it tells of."""

    def __init__(self, node_id, cluster):
        self.node_id, self.cluster = node_id, cluster
        self.asked = 0
        """DescribeConfigs requests that arrived."""
        self.hang_up = False
        """Close the connection instead of answering them."""
        self.last = None
        """The kind of request after whose answer the connection is closed."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open = []
        cluster[node_id] = self.port = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def stop(self):
        """From now on connections are refused, and those that there were are closed."""
        with contextlib.suppress(OSError):  # it was stopped before
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._open:
            connection.close()

    def _serve(self):
        while True:
            try:
                connection, _address = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection):
        try:
            with connection, connection.makefile("rb") as requests:
                while size := requests.read(4):
                    request = requests.read(struct.unpack(">i", size)[0])
                    key, version, correlation = struct.unpack(">hhi", request[:8])
                    response = self._reply(key, request)
                    if response is None:
                        return
                    body = struct.pack(">i", correlation) + response.encode(version=version)
                    connection.sendall(struct.pack(">i", len(body)) + body)
                    if key == self.last:
                        return
        except OSError:
            return

    def _reply(self, key, _request):
        return self._response(key)

    def _response(self, key):
        if key == API_VERSIONS:
            version = ApiVersionsResponse.ApiVersion
            return ApiVersionsResponse(
                error_code=0,
                api_keys=[version(api_key=k, min_version=low, max_version=high) for k, (low, high) in VERSIONS.items()],
                throttle_time_ms=0,
            )
        if key == METADATA:
            broker = MetadataResponse.MetadataResponseBroker
            return MetadataResponse(
                throttle_time_ms=0,
                brokers=[broker(node_id=i, host="127.0.0.1", port=p, rack=None) for i, p in self.cluster.items()],
                cluster_id="fake",
                controller_id=self.node_id,
                topics=[],
            )
        self.asked += 1
        return None if self.hang_up else DescribeConfigsResponse(throttle_time_ms=0, results=[])
