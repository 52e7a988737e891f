"""The testbed in ducktape: a cluster of its hosts, services, and a test for every scenario. See docs/ducktape.md."""
