"""Show what runs on each host, the active faults, and where the network differs from its declaration."""

import argparse

from results.render import document, table
from testbed.errors import TestbedError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help="a testbed")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.epilog = "Exit codes: 0 everything is as declared, 1 something differs."


def run(args: argparse.Namespace) -> int:
    from testbed.faults import Faults
    from testbed.provision.status import rates_in_words, remarks, rows, status
    from testbed.provision.testbed import Testbed

    testbed = Testbed.attach(args.name, whole=False)
    try:
        faults, problems = [entry.document() for entry in Faults(testbed).list()], []
    except TestbedError as error:
        faults, problems = [], [str(error)]
    found = status(testbed, faults, problems)
    if args.json:
        print(document(found))
    else:
        print(table(("HOST", "ROLE", "RACK", "NICS", "KAFKA", "RUNS", "SERVES"), rows(found)))
        for host in found["hosts"]:
            if host["jvm"]:
                print(f"{host['name']}: {host['jvm']}")
        for machine in dict.fromkeys(host["machine"] for host in found["hosts"] if host["machine"]):
            print(f"machine {machine}: {', '.join(h['name'] for h in found['hosts'] if h['machine'] == machine)}")
        for uplink in found["uplinks"]:
            print(f"uplink of rack {uplink['rack']}: {rates_in_words(uplink)}")
        for remark in remarks(found):
            print(remark)
        print(f"bootstrap {','.join(found['bootstrap'])}")
    return 0 if found["ok"] else 1
