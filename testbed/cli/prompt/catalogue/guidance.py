"""Help, and the way out."""

from testbed.cli.prompt.dialog import Leave
from testbed.cli.prompt.grammar import PromptCommand, Values
from testbed.cli.prompt.session import Session

_GROUP = "The prompt"
GROUPS = ("The machines", "Topics", "Moves", "Faults", _GROUP)
"""The order of the groups in help."""
_WIDTH = 44
RULES = """\
A broker is named by its id, its host's name, or broker-ID. Several are separated by commas: 2,3.
Rates and sizes have units: 50mbit for a NIC; 5MB/s for a throttle; 1KiB for a record.
The declared state is the baseline: `b1 rate declared` and `heal` bring it back. Faults stay after `exit`.
Every fault also has its own name, with all its parameters: nic-rate host=b1 rate=50mbit. `help nic-rate` lists them.
A command's name wins over a host of that name; such a broker is reached as broker-ID.
A script ends at its first failure, whose exit code it has, and waits for its move. `#` begins a comment."""


def _help(session: Session, values: Values) -> None:
    if "help" in values:
        for command in session.grammar.named(values["help"]):
            session.say(f"{command.text}\n    {command.summary}")
            for line in command.detail.splitlines():
                session.say(f"        {line}")
        return
    listed = [each for each in session.grammar.commands if each.group]
    width = min(max(len(each.text) for each in listed), _WIDTH)
    for group in GROUPS:
        session.say(f"{group}")
        for command in (each for each in listed if each.group == group):
            first = command.text.ljust(width) if len(command.text) <= width else f"{command.text}\n  {'':{width}}"
            session.say(f"  {first}  {command.summary}")
    session.say(f"\n{RULES}")


def _exit(_session: Session, _values: Values) -> None:
    raise Leave


COMMANDS = [
    PromptCommand("help [COMMAND]", "every command, or one with its parameters and examples", _help, group=_GROUP),
    PromptCommand("exit", "leave; moves and faults stay, and the prompt says which", _exit, group=_GROUP),
    PromptCommand("quit", "the same as exit", _exit),
]
