from pathlib import Path

from testbed.software.apt import credentials, deb822_entries, host_sources, one_line_entries, parse_fetch_settings

DEB822 = """\
Types: deb deb-src
# a comment
URIs: mirror://one mirror://two
Suites: bookworm
 bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: mirror://off
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: mirror://source
Suites: bookworm
Components: main
"""


def test_a_sources_file_becomes_one_line_per_archive_and_suite() -> None:
    key = "[signed-by=/usr/share/keyrings/debian.gpg]"
    assert deb822_entries(DEB822) == [
        f"deb {key} mirror://one bookworm main contrib",
        f"deb {key} mirror://one bookworm-updates main contrib",
        f"deb {key} mirror://two bookworm main contrib",
        f"deb {key} mirror://two bookworm-updates main contrib",
    ]


def test_a_key_inside_the_file_is_left_to_the_keyring() -> None:
    text = "Types: deb\nURIs: mirror://one\nSuites: bookworm\nComponents: main\nSigned-By:\n BEGIN\n .\n END\n"
    assert deb822_entries(text) == ["deb mirror://one bookworm main"]


def test_only_deb_lines_count() -> None:
    text = "# deb mirror://no bookworm main\ndeb mirror://yes bookworm main # why\ndeb-src mirror://no b main\n"
    assert one_line_entries(text) == ["deb mirror://yes bookworm main"]


def test_archives_of_other_suites_and_vendors_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(
        "deb mirror://debian bookworm main\ndeb [arch=amd64] mirror://vendor nodistro main\n"
        "deb mirror://debian trixie main\ndeb mirror://security bookworm-security main\n"
    )
    (tmp_path / "sources.list.d" / "vendor.list").write_text("deb mirror://vendor sdk-bookworm main\n")
    (tmp_path / "sources.list.d" / "same.list").write_text("deb mirror://debian bookworm main\n")
    assert host_sources("bookworm", tmp_path) == (
        "deb mirror://debian bookworm main",
        "deb mirror://security bookworm-security main",
    )


def test_a_machine_without_apt_has_none(tmp_path: Path) -> None:
    assert host_sources("bookworm", tmp_path / "absent") == ()


def test_only_settings_of_fetching_that_hold_elsewhere_are_taken() -> None:
    dump = (
        'APT::Architecture "amd64";\n'
        'Acquire::Check-Date "false";\n'
        'Acquire::http::Proxy "proxy:3142";\n'
        'Acquire::http::Proxy-Auto-Detect "/usr/bin/auto-apt-proxy";\n'
        'Acquire::https::CaInfo "/etc/ssl/own.pem";\n'
        'Acquire::IndexTargets::deb::Packages::MetaKey "x";\n'
        'Acquire::Changelogs "";\n'
    )
    assert parse_fetch_settings(dump) == 'Acquire::Check-Date "false";\nAcquire::http::Proxy "proxy:3142";\n'


def test_logins_are_read_from_all_files(tmp_path: Path) -> None:
    (tmp_path / "auth.conf.d").mkdir()
    (tmp_path / "auth.conf").write_text("machine a login b password c")
    (tmp_path / "auth.conf.d" / "d.conf").write_text("machine d login e password f")
    (tmp_path / "auth.conf.d" / "d.conf~").write_text("old")
    assert credentials(tmp_path).splitlines() == ["machine a login b password c", "machine d login e password f"]
    assert credentials(tmp_path / "absent") == ""
