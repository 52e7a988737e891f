"""Taking an address slot: under a lock of the machine, and only where neither engine nor routes use it."""

from ipaddress import IPv4Network

from testbed.errors import TestbedError
from testbed.network.addresses import AddressPlan, free_slot
from testbed.network.apply import machine_networks
from testbed.owner import Owner
from testbed.paths import state_dir
from testbed.provision import state as states
from testbed.provision.containers import Engine, NetworkTaken
from testbed.provision.labels import SLOT, Labels
from testbed.provision.plan import fabric_spec, management_network


def allocate(engine: Engine, name: str, image: str) -> Labels:
    """Make the management network and the fabric's container, which hold the slot from then on."""
    with states.lock(".slots", wait=True):
        taken = {
            int(labels[SLOT])
            for labels in (
                *(found.labels for found in engine.containers()),
                *(labels for _id, labels in engine.networks()),
            )
            if labels.get(SLOT, "").isdigit()
        }
        used = [IPv4Network(network, strict=False) for network in machine_networks()]
        while True:
            try:
                slot = free_slot(taken, used)
            except LookupError as error:
                raise TestbedError(str(error)) from error
            labels = Labels(name, slot, Owner.this_process(), str(state_dir()))
            try:
                engine.create_network(
                    management_network(labels), AddressPlan(slot, ()).management, labels.of("management")
                )
            except NetworkTaken:
                taken.add(slot)
                continue
            engine.create(fabric_spec(image, labels))
            return labels
