"""List the experiments and their parameters."""

import argparse

from results.render import table


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="EXPERIMENT", help="print the parameters of this one")


def run(args: argparse.Namespace) -> int:
    from testbed.experiments.experiment import experiments, find_experiment
    from testbed.runner.named_comparisons import named_comparisons

    if args.name is None:
        known = [(name, each.summary) for name, each in sorted(experiments().items())]
        known += [(name, each.summary) for name, each in named_comparisons().items()]
        print(table(("NAME", "WHAT"), known))
        return 0
    if comparison := named_comparisons().get(args.name):
        print(f"{comparison.name}: {comparison.summary}\n{comparison.repeats} times of {comparison.experiment}:")
        print("\n".join(comparison.axes))
        return 0
    experiment = find_experiment(args.name)
    shared = f"; {experiment.automq_topology} with storage=automq" if experiment.automq_topology else ""
    print(f"{experiment.name}: {experiment.summary}\ntopology: {experiment.topology}{shared}\n")
    print(table(("PARAMETER", "DEFAULT", "WHAT"), [(p.name, p.default, p.help) for p in experiment.parameters]))
    for profile, settings in experiment.profiles.items():
        print(f"\nprofile {profile}: {', '.join(f'{name}={value}' for name, value in settings.items())}")
    return 0
