"""Help, and the way out."""

from testbed.cli.prompt.dialog import Leave
from testbed.cli.prompt.grammar import PromptCommand, Values
from testbed.cli.prompt.session import Session

_GROUP = "The prompt"
RULES = """\
A broker is named by its id, its host's name, or broker-ID. Several are separated by commas: 2,3.
Rates and sizes have units: 50mbit for a NIC; 5MB/s for a throttle; 1KiB for a record.
The declared state is the baseline: `b1 rate declared` and `heal` bring it back. Faults stay after `exit`.
A command's name wins over a host of that name; such a broker is reached as broker-ID.
A script ends at its first failure, whose exit code it has, and waits for its move. `#` begins a comment."""


def _help(session: Session, values: Values) -> None:
    if "help" in values:
        for command in session.grammar.named(values["help"]):
            session.say(f"{command.text}\n    {command.summary}")
            for line in command.detail.splitlines():
                session.say(f"        {line}")
        return
    group = ""
    for command in session.grammar.commands:
        if not command.group:
            continue
        if command.group != group:
            group = command.group
            session.say(f"\n{group}")
        session.say(f"  {command.text}\n      {command.summary}")
    session.say(f"\n{RULES}")


def _exit(_session: Session, _values: Values) -> None:
    raise Leave


COMMANDS = [
    PromptCommand("help [COMMAND]", "every command, or one with its parameters and examples", _help, group=_GROUP),
    PromptCommand("exit", "leave; moves and faults stay, and the prompt says which", _exit, group=_GROUP),
    PromptCommand("quit", "the same as exit", _exit),
]
