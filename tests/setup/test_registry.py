from testbed.setup.environment import parse_pip_settings, uv_variables

LISTING = """\
:env:.cert='/env.pem'
global.cert='/global.pem'
global.extra-index-url='mirror://two\\nmirror://three'
global.index-url='mirror://one'
install.trusted-host='host'
download.index-url='mirror://other'
something else
"""


def test_pips_settings_in_pips_order_of_precedence() -> None:
    assert parse_pip_settings(LISTING) == {
        "cert": "/env.pem",
        "extra-index-url": "mirror://two\nmirror://three",
        "index-url": "mirror://one",
        "trusted-host": "host",
    }


def test_uv_is_told_in_its_own_words() -> None:
    assert uv_variables(parse_pip_settings(LISTING)) == {
        "SSL_CERT_FILE": "/env.pem",
        "UV_INDEX": "mirror://two mirror://three",
        "UV_DEFAULT_INDEX": "mirror://one",
        "UV_INSECURE_HOST": "host",
    }


def test_local_wheels_no_index_and_a_proxy() -> None:
    assert uv_variables({"find-links": "/a /b", "no-index": "true", "proxy": "proxy:3128"}) == {
        "UV_FIND_LINKS": "/a,/b",
        "UV_NO_INDEX": "1",
        "HTTP_PROXY": "proxy:3128",
        "HTTPS_PROXY": "proxy:3128",
    }


def test_settings_that_uv_has_no_word_for_are_left() -> None:
    assert uv_variables({"index": "x", "no-index": "false", "find-links": ""}) == {}
