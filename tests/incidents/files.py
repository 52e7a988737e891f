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
    do: move orders to b1, b3
    expect: move done within 40s
  - name: throttle
    at: $hurry
    do: throttle set $throttle for orders
  - name: lost
    after: move 50%
    within: 30s
    do: broker-kill host=b3
  - name: alarm
    when: isr of clicks < 2
    optional: true
    delay: 2s
    do: [throttle raise to 50MB/s, heal]
  - expect:
      - isr never below 1 of orders
      - no records lost
      - throttle removed
faulty:
  summary: Too late.
  fails: [throttle-removed]
remedy:
  summary: In time.
  parameters: {hurry: 1s}
  drop: [lost]
  replace:
    move: {at: 4s, do: move orders to b1 throttled at $throttle}
  add:
    - name: clean-up
      after: move done
      do: throttle remove
"""


def small(**vary):
    return loads(SMALL, "small.yaml", vary)
