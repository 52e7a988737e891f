"""A small incident to be changed by tests."""

from testbed.incidents.read import loads

SMALL = """\
name: small
summary: Something goes wrong.
topology: three-brokers
lasts: 60s
parameters:
  throttle: 5MB/s
  hurry: 3s
state:
  topics:
    orders: {partitions: 4, size: 4MB, replicas: [b1, b2]}
    clicks: {partitions: 2, replicas: [[b1, b2], [b2, b3]], configs: {min.insync.replicas: 2}}
load: {produce: 1MB/s, to: clicks}
timeline:
  - name: move
    at: 2s
    do: {move: {topics: [orders], hosts: [b1, b3]}}
    expect: {move_done: {within: 40s}}
  - name: throttle
    at: $hurry
    do: {set_throttle: {rate: $throttle, topics: [orders]}}
  - name: lost
    at: {move_progress: 50%}
    within: 30s
    do: {broker_kill: {host: b3}}
  - name: alarm
    at: {isr: {topic: clicks, below: 2}}
    optional: true
    delay: 2s
    do: [change_throttle: {rate: 50MB/s}, heal: {}]
  - expect:
      - isr: {topic: orders, min: 1}
      - records_intact: {}
      - throttle_removed: {}
broken:
  summary: Too late.
  expected_failures: [throttle-removed]
fixed:
  summary: In time.
  parameters: {hurry: 1s}
  drop: [lost]
  replace:
    move: {at: 4s, do: {move: {topics: [orders], hosts: [b1], throttle: $throttle}}}
  add:
    - name: clean-up
      at: {move_progress: done}
      do: {remove_throttle: {}}
"""


def small(**vary):
    return loads(SMALL, "small.yaml", vary)
