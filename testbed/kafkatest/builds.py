"""The Kafkas that the hosts of system tests get: the build under test, and each release that a test names."""

from collections.abc import Callable, Iterable
from pathlib import Path

from testbed.errors import SoftwareError, UsageError
from testbed.kafkatest.checkout import KafkaCheckout
from testbed.kafkatest.layout import DEV, KafkaHome
from testbed.software.kafka import kafka_release
from testbed.software.source import VERSION
from testbed.software.system_test_jars import LIBS, system_test_jars


def source_of(checkout: KafkaCheckout, wanted: str | None) -> str:
    """Return the build under test: what the user `wanted`, the checkout's own jars, or the release of its source.

    Raise `UsageError` when the checkout is of no release, and not built. Pure.
    """
    if wanted:
        return wanted
    if checkout.built:
        return str(checkout.folder)
    if checkout.release:
        return checkout.release
    raise UsageError(
        f"{checkout.folder} is {checkout.version}, which is no release, and has no jars; "
        "build it with `./gradlew systemTestLibs`, or name a release or a build with --kafka"
    )


def build_under_test(checkout: KafkaCheckout, source: str) -> KafkaHome:
    """Return the Kafka at /opt/kafka-dev. Raise `SoftwareError` when it is not available."""
    scripts, of = checkout.scripts(), "the checkout"
    if Path(source).exists() or not VERSION.fullmatch(source):
        release = kafka_release(source)
        return KafkaHome(DEV, release.version, str(release.folder), scripts, of)
    jars = system_test_jars(source)
    # A release's scripts belong to its jars: another release's start classes that it need not have.
    own = None if source == checkout.release else checkout.scripts_of(source)
    if own is not None:
        scripts, of = own, f"the checkout's tag {source}"
    return KafkaHome(DEV, source, str(jars), scripts, of)


def earlier_releases(
    checkout: KafkaCheckout, releases: Iterable[str], progress: Callable[[str], None]
) -> tuple[list[KafkaHome], dict[str, str]]:
    """Return the Kafkas of these releases, and release → why it is not available."""
    homes, missing = [], {}
    for release in releases:
        try:
            progress(f"Kafka {release}, which a test names")
            jars = system_test_jars(release)
        except SoftwareError as error:
            missing[release] = str(error).splitlines()[0]
            continue
        own = checkout.scripts_of(release)
        scripts, of = (own, f"the checkout's tag {release}") if own else (checkout.scripts(), "the checkout")
        homes.append(KafkaHome(release, release, str(jars), scripts, of))
    return homes, missing


def jar_names(home: KafkaHome) -> list[str]:
    """Return the names of a Kafka's jars."""
    return sorted(path.name for path in (Path(home.jars) / LIBS).glob("*.jar"))
