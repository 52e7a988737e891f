"""The page of a sweep, next to the reports of its runs."""

import shlex
from pathlib import Path

from results.compare.compared_measures import find_measure
from results.contract import durable
from results.report.sweep import SweepPage, render_sweep
from testbed.paths import reports_dir
from testbed.runner.campaign import Campaign
from testbed.runner.campaign_run import CampaignResult
from testbed.runner.named_comparisons import COMMAND, named_comparisons
from testbed.runner.variant import differing


def sweep_page(result: CampaignResult) -> SweepPage:
    """Return the content of the page. Pure."""
    campaign = result.campaign
    axes, _values = differing(campaign.variants)
    return SweepPage(
        id=campaign.id,
        experiment=campaign.variants[0].experiment,
        profile=campaign.variants[0].profile,
        axes=axes,
        combinations=result.outcome.rows,
        measures=campaign.measures,
        units={name: find_measure(name).unit for name in campaign.measures},
        ended=result.why_ended,
        complete=result.complete,
        not_passed=tuple(words for row in result.outcome.rows for words in row.not_passed),
        command=command(campaign),
    )


def command(campaign: Campaign) -> str:
    """Return the command line that starts the same runs. Pure."""
    first = campaign.variants[0]
    if campaign.command == COMMAND:
        return _of_comparison(campaign)
    words = ["testbed", "sweep", first.experiment]
    settings = [variant.values for variant in campaign.variants]
    for name in settings[0]:
        words += ["--set", f"{name}={','.join(dict.fromkeys(each[name] for each in settings))}"]
    if defects := list(dict.fromkeys(each for variant in campaign.variants for each in variant.defects)):
        words += ["--set", f"defect={','.join(defects)}"]
    return shlex.join([*words, *_common(campaign)])


def _common(campaign: Campaign) -> list[str]:
    """Return the options that every campaign has."""
    first = campaign.variants[0]
    kafka = list(dict.fromkeys(variant.kafka for variant in campaign.variants if variant.kafka))
    words = ["--kafka", ",".join(kafka)] if kafka else []
    words += ["--topology", first.topology] if first.topology else []
    return [*words, "--profile", first.profile, "--repeats", str(campaign.repeats), "--seed", str(campaign.seed)]


def _of_comparison(campaign: Campaign) -> str:
    """Return the command line of a named comparison, with every setting, because its defaults may change."""
    experiment = campaign.variants[0].experiment
    of_it = [each for each in named_comparisons().values() if each.experiment == experiment]
    # An earlier version may have had other measures.
    mine = [each for each in of_it if each.measures == campaign.measures] or of_it
    beside = {label for each in mine for label in each.labelled}
    axes: dict[str, list[str]] = {}
    for variant in (each for each in campaign.variants if each.label not in beside):
        for name, value in variant.values.items():
            axes.setdefault(name, []).append(value)
    given = [f"{name}={','.join(dict.fromkeys(values))}" for name, values in axes.items()]
    fits = [each for each in mine if {word.partition("=")[0] for word in each.axes} <= set(axes)]
    labels = {variant.label for variant in campaign.variants}
    # The variants of an earlier version may lack a setting that is an axis now.
    nearest = max(
        fits or mine,
        key=lambda each: (len(labels & each.labelled.keys()), len(each.axes), len({*each.axes}.intersection(given))),
    )
    settings = [word for each in given for word in ("--set", each)]
    return shlex.join(["testbed", "run", nearest.name, *settings, *_common(campaign)])


def write_sweep(result: CampaignResult) -> Path:
    """Write the page; return its path."""
    path = reports_dir() / f"{result.campaign.id}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    durable.write(path, render_sweep(sweep_page(result)))
    return path
