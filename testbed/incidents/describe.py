"""What a replay would do, in words; needs neither root nor an engine. Pure."""

from testbed.incidents.model import Entry, Incident, IncidentFile
from testbed.incidents.trigger import At
from testbed.incidents.words import format_time
from testbed.units import format_byte_rate, format_size


def describe(incident: Incident, seed: int) -> str:
    """One practice: what is there at the beginning, what happens when, what is expected."""
    lines = [f"{incident.name}, the {incident.practice} practice (seed {seed})", f"  {incident.practice_summary}", ""]
    lines += _beginning(incident)
    lines += ["", f"then, for {format_time(incident.lasts_s)} at most:"]
    for entry in sorted(incident.entries, key=_order):
        lines += _entry(entry)
    lines += ["", _foretold(incident)]
    return "\n".join(lines)


def _beginning(incident: Incident) -> list[str]:
    topology, state = incident.topology, incident.state
    lines = [f"topology {topology.name}: brokers {', '.join(host.name for host in topology.brokers)}"]
    for topic in state.topics:
        where = " / ".join(dict.fromkeys(", ".join(hosts) for hosts in topic.placement))
        filled = f"{format_size(topic.bytes, 3)} in" if topic.bytes else "empty,"
        lines.append(f"topic {topic.name}: {filled} {len(topic.placement)} partitions on {where}")
        lines += [f"  {key}={value}" for key, value in topic.configs.items()]
    lines += [f"brokers: {key}={value}" for key, value in state.properties.items()]
    if state.throttle is not None:
        topics = ", ".join(state.throttle.topics) or "no topic"
        lines.append(f"a throttle of {format_byte_rate(state.throttle.rate_bytes_per_s)} is set already, for {topics}")
    if incident.load is not None:
        rate = format_byte_rate(incident.load.rate_bytes_per_s)
        lines.append(f"load: {rate} to {incident.load.topic}, in records of {format_size(incident.load.record_bytes)}")
    if incident.parameters:
        lines.append("parameters: " + ", ".join(f"{name}={value}" for name, value in incident.parameters.items()))
    return lines


def _order(entry: Entry) -> float:
    return entry.trigger.seconds if isinstance(entry.trigger, At) else float("inf")


def _entry(entry: Entry) -> list[str]:
    when = str(entry.trigger)
    if entry.delay_s:
        when += f", {format_time(entry.delay_s)} later"
    if not isinstance(entry.trigger, At):
        when += " (may not come)" if entry.optional else f" (by {format_time(entry.deadline_s)})"
    lines = [f"  {when}: {entry.name}"]
    lines += [f"      do {action}" for action in entry.actions]
    lines += [f"      expect {expectation}" for expectation in entry.expectations]
    return lines


def _foretold(incident: Incident) -> str:
    if incident.practice == "remedy":
        return "the file foretells: every expectation is met"
    return f"the file foretells: it fails {', '.join(incident.fails)}"


def describe_file(file: IncidentFile, seed: int) -> str:
    """Both practices."""
    return f"{describe(file.faulty, seed)}\n\n{describe(file.remedy, seed)}"
