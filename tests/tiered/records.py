"""Records of the remote log's metadata topic, written as Kafka's message definitions say, not as our reader reads."""

import base64


def varint(value):
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def uuid(text):
    return base64.urlsafe_b64decode(text + "==")


def identity(topic, topic_id, partition, segment):
    name = topic.encode()
    return varint(len(name) + 1) + name + uuid(topic_id) + partition.to_bytes(4) + varint(0) + uuid(segment) + varint(0)


def segment(topic, topic_id, partition, id, start, end, size, state, *, epochs=((0, 0),), custom=None, more=b"\x00"):
    body = identity(topic, topic_id, partition, id)
    body += start.to_bytes(8) + end.to_bytes(8) + (2).to_bytes(4) + (5).to_bytes(8) + (6).to_bytes(8)
    body += varint(len(epochs) + 1) + b"".join(e.to_bytes(4) + o.to_bytes(8) + varint(0) for e, o in epochs)
    body += size.to_bytes(4) + _bytes(custom) + bytes([state])
    return varint(1) + varint(0) + varint(0) + body + more


def update(topic, topic_id, partition, id, state, *, custom=None):
    body = identity(topic, topic_id, partition, id) + (2).to_bytes(4) + (7).to_bytes(8) + _bytes(custom)
    return varint(1) + varint(1) + varint(0) + body + bytes([state]) + varint(0)


def _bytes(content):
    return varint(0) if content is None else varint(len(content) + 1) + content
