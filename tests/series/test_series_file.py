"""A history in a file: its forms, its order, what is missing in it, and mistakes with their place."""

import os
import threading

import pytest

from results.series.series_file import SeriesFileError, read


@pytest.fixture
def written(tmp_path):
    """A file with that text, or those bytes."""

    def write(text, name="h.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_columns_of_numbers_are_series_and_the_others_are_named(written):
    file = written("date,commit,seconds,MB/s,note\n2026-01-01,abc,1.5,90,fine\n2026-01-02,def,,91e0,bad\n")
    found = read(file)
    assert found.series == {"seconds": [1.5, None], "MB/s": [90.0, 91.0]}
    assert found.labels == ["#0", "#1"]
    (note,) = found.notes
    assert "date, commit, note" in note and "--time" in note
    found = read(file, "commit")
    assert found.labels == ["abc", "def"]
    assert "--time" not in found.notes[0] and "commit" not in found.notes[0]
    found = read(file, "date", ["MB/s"])
    assert (found.series, found.notes) == ({"MB/s": [90.0, 91.0]}, [])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("h.csv", "a,b\n1,2\n3,\n"),
        ("h.csv", "\n\na, b\n1, 2\n\n3,\n\n"),
        ("h.csv", 'a,"b"\n"1","2"\n3,""\n'),
        ("h.csv", b"\xef\xbb\xbfa,b\r\n1,2\r\n3,\r\n"),
        ("h.csv", "a;b\n1;2\n3;\n"),
        ("h.csv", "a;b\n1;2\n3;\n;\n ; \n"),
        ("h.csv", b"\r\na;b\r\n1;2\r\n3;\r\n"),
        ("h.csv", b"a,b\r1,2\r3,\r"),
        ("h.txt", "a\tb\n1\t2\n3\t\n"),
        ("h.tsv", "a\tb\n1\t2\n3\tNaN\n"),
        ("h.json", '{"a": [1, 3], "b": [2, null]}'),
        ("h.json", '[{"a": 1, "b": "2"}, {"a": 3}]'),
        ("h", ' {"a": [1, 3], "b": [2, NaN]}'),
    ],
)
def test_forms(written, name, text):
    found = read(written(text, name))
    assert found.series == {"a": [1.0, 3.0], "b": [2.0, None]}
    assert found.notes == []


def test_a_file_of_another_format_is_called_that(written):
    with pytest.raises(SeriesFileError, match=r"h\.csv: it is compressed with gzip; decompress it first"):
        read(written(b"\x1f\x8bxx"))


def test_a_pipe_is_a_file(tmp_path):
    os.mkfifo(tmp_path / "h.csv")
    writer = threading.Thread(target=lambda: (tmp_path / "h.csv").write_text("a\n1\n2\n"))
    writer.start()
    assert read(tmp_path / "h.csv").series == {"a": [1.0, 2.0]}
    writer.join()


def test_a_plain_list_is_one_series(written):
    assert read(written("[1, 2.5, null, NaN, -3]", "h.json")).series == {"values": [1.0, 2.5, None, None, -3.0]}


def test_a_tab_is_the_delimiter_of_a_tsv_whatever_its_header_has(written):
    assert read(written("a, b, c\td\n1\t2\n", "h.tsv")).series == {"a, b, c": [1.0], "d": [2.0]}


@pytest.mark.parametrize("word", ["", " ", "NaN", "nan", "null", "NULL", "NA", "None", "inf", "-Infinity"])
def test_cells_that_say_that_there_is_no_value(written, word):
    assert read(written(f"a,b\n1,2\n{word},3\n")).series == {"a": [1.0, None], "b": [2.0, 3.0]}


def test_without_runs_or_values_there_are_series_still(written):
    assert read(written("a,b\n")).series == {"a": [], "b": []}
    assert read(written("[]", "h.json")).series == {"values": []}
    assert read(written("a,b\n,1\n,2\n")).series == {"a": [None, None], "b": [1.0, 2.0]}


def test_what_is_no_list_and_what_has_no_name_is_left_out_unless_it_is_asked_for(written):
    found = read(written('{"name": "nile", "n": 2, "flow": [1, 2]}', "h.json"))
    assert found.series == {"flow": [1.0, 2.0]}
    assert "name, n" in found.notes[0]
    index = written(",a\n0,7\n1,8\n")
    assert read(index).series == {"a": [7.0, 8.0]}
    assert read(index, None, ["column 1"]).series == {"column 1": [0.0, 1.0]}
    assert read(index, "column 1").labels == ["0", "1"]


@pytest.mark.parametrize(
    ("times", "order"),
    [
        (["9", "10", "2"], [2, 0, 1]),
        (["3", "2.5", "-1e3"], [2, 1, 0]),
        (["2026-02-01", "2026-01-03", "2026-01-02"], [2, 1, 0]),
        (["2026-01-01T10:00:00Z", "2026-01-01T10:00:00+02:00", "2026-01-01 09:00"], [1, 2, 0]),
        (["2026-01-02", "2026-01-01", "2026-01-02", "2026-01-01"], [1, 3, 0, 2]),
    ],
)
def test_times_that_do_not_ascend_are_sorted_and_that_is_said(written, times, order):
    file = written("".join(["t,a\n", *(f"{time},{at}\n" for at, time in enumerate(times))]))
    found = read(file, "t")
    assert found.series == {"a": [float(at) for at in order]}
    assert found.labels == [times[at] for at in order]
    assert found.notes == ["sorted by t: it did not ascend in the file"]


@pytest.mark.parametrize("times", [["1", "1", "3"], ["2026-01-01", "2026-01-02", "2026-01-02"], ["fed", "abc", "0a1"]])
def test_what_ascends_and_what_is_no_time_stays_in_the_order_of_the_file(written, times):
    found = read(written("".join(["t,a\n", *(f"{time},{at}\n" for at, time in enumerate(times))])), "t")
    assert (found.series, found.labels, found.notes) == ({"a": [0.0, 1.0, 2.0]}, times, [])


def test_lines_without_a_value_at_the_end_do_not_stop_the_sort(written):
    """In the file's order, newest first, a step up would be a step down."""
    found = read(written("t;a\n2026-01-03;3\n2026-01-02;\n2026-01-01;1\n;\n;\n"), "t")
    assert found.series == {"a": [1.0, None, 3.0]}
    assert found.notes == ["sorted by t: it did not ascend in the file"]


def test_one_time_that_is_none_leaves_the_order_and_is_named(written):
    found = read(written("t,a\n2026-01-03,1\n2026-01-01,2\ntonight,3\n"), "t")
    assert found.series == {"a": [1.0, 2.0, 3.0]}
    (note,) = found.notes
    assert note.startswith("not sorted by t: ")
    assert note.endswith("h.csv, line 4, column 't': 'tonight' is no ISO date")


def test_a_run_without_a_label_is_told_by_its_number(written):
    assert read(written('[{"t": "x", "a": 1}, {"a": 2}, {"t": 7, "a": 3}]', "h.json"), "t").labels == ["x", "#1", "7"]


@pytest.mark.parametrize(
    ("name", "text", "options", "told"),
    [
        ("h.csv", "", {}, "h.csv: empty: expected a header line"),
        ("h.csv", "1.5\n2.5\n", {}, "h.csv, line 1: no header"),
        ("h.csv", "2026-01-01,5\n2026-01-02,6\n", {}, "line 1: no header"),
        ("h.csv", "a,a\n1,2\n", {}, "line 1: two columns are called 'a'"),
        ("h.csv", "a,b\n1,2\n\n1\n", {}, "h.csv, line 4: 1 cells, where the header has 2"),
        ("h.csv", 'a,b\n1,"2\n', {}, "h.csv, line 2: unexpected end of data"),
        ("h.csv", "a,b\n1,1\n2,2\nslow,3\n4,4\n", {}, "h.csv, line 4, column 'a': 'slow' is no number; leave it empty"),
        ("h.csv", "a,b\nx,1\n", {"wanted": ["a"]}, "line 2, column 'a': 'x' is no number"),
        ("h.csv", "a\n1_000\n", {"wanted": ["a"]}, "'1_000' is no number"),
        ("h.csv", "a;b\n1,5;2\n", {"wanted": ["a"]}, "'1,5' is no number"),
        ("h.csv", "a\n1e200\n", {"wanted": ["a"]}, r"line 2, column 'a': '1e200' is beyond ± 1e\+150"),
        ("h.csv", "a,b\nx,y\n", {}, "no column of numbers; there are: a, b"),
        ("h.csv", "a\n1\n", {"time": "a"}, "no column of numbers"),
        ("h.csv", "a\n1\n", {"wanted": ["b"]}, "there is no column 'b'; there are: a"),
        ("h.csv", "a\n1\n", {"time": "t"}, "there is no column 't'; there are: a"),
        ("h.csv", b"a\n\xff\n", {}, "h.csv: byte 2 is not UTF-8"),
        ("h.json", "[1, 2", {}, "h.json, line 1, character 6: not JSON"),
        ("h.json", "", {}, "h.json, line 1, character 1: not JSON"),
        ("h.json", "3", {}, "h.json: 3: expected a list of numbers"),
        ("h.json", "{}", {}, "an object without lists"),
        ("h.json", '{"a": 1}', {}, "an object without lists: expected a list of numbers"),
        ("h.json", '{"a": [1], "a": [2]}', {}, "the name 'a' is given twice"),
        ("h.json", '[{"a": 1}, 2]', {}, "h.json, index 1: 2: expected an object"),
        ("h.json", '{"a": [1, 2], "b": [1]}', {}, "'b' has 1 values, 'a' has 2"),
        ("h.json", '{"a": [1, 2], "t": ["x"]}', {"time": "t"}, "'t' has 1 values, 'a' has 2"),
        ("h.json", "[1, true, 3]", {}, "h.json, index 1, column 'values': True is no number"),
        ("h.json", f"[1, 2, 1{'0' * 400}]", {}, "index 2, column 'values': .* is beyond"),
        ("h.json", "[[1, 2], [3, 4]]", {}, "no column of numbers"),
        ("h.json", "[" * 100_000, {}, "nested too deeply"),
    ],
)
def test_mistakes_are_told_with_their_place(written, name, text, options, told):
    with pytest.raises(SeriesFileError, match=told):
        read(written(text, name), **options)
