"""The search for data files, rejected files, and error messages."""

import gzip
import hashlib

import pytest

from crfx.datasets.files import find, open_text, read_blocks

TEXT = "a b\nc d\n\n\ne f\n"
SHA256 = hashlib.sha256(TEXT.encode()).hexdigest()


@pytest.fixture
def places(tmp_path, monkeypatch):
    """An empty $CRFX_DATA and an empty cache."""
    monkeypatch.setenv("CRFX_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data" / "set", tmp_path / "cache" / "crfx" / "set"


def put(folder, name="x.txt", text=TEXT):
    folder.mkdir(parents=True, exist_ok=True)
    contents = text.encode()
    (folder / name).write_bytes(gzip.compress(contents) if name.endswith(".gz") else contents)
    return folder / name


def look(sha256=SHA256):
    return find("set", "x.txt", sha256, how_to_get="Ask the library.")


def test_data_come_before_the_cache_and_need_no_checksum(places):
    data, cache = places
    cached = put(cache)
    assert look() == cached
    folder = put(data)
    assert look() == folder
    put(data, text="other")
    assert look(sha256=None) == folder


def test_the_cache_is_in_the_home_folder_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("CRFX_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    cached = put(tmp_path / ".cache" / "crfx" / "set")
    assert look() == cached


def test_the_checksum_is_that_of_the_contents(places):
    """Compressed or not, the same sha256 holds."""
    compressed = put(places[0], "x.txt.gz")
    assert look() == compressed
    plain = put(places[0])
    assert look() == plain


def test_a_missing_file_says_how_to_get_it_and_where_to_put_it(places):
    with pytest.raises(FileNotFoundError) as raised:
        look()
    message = str(raised.value)
    (places[0] / "x.txt").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="is not there"):  # a folder is no file
        look()
    assert message.startswith("set/x.txt is not there. Ask the library.")
    assert "$CRFX_DATA/set/" in message
    assert all(str(folder / "x.txt") in message for folder in places)
    assert "not set" not in message


def test_a_missing_file_says_that_the_variable_is_not_set(places, monkeypatch):
    put(places[0])
    monkeypatch.setenv("CRFX_DATA", "")  # the shell's way of unsetting, not a folder
    with pytest.raises(FileNotFoundError, match=r"\$CRFX_DATA is not set"):
        look()
    monkeypatch.delenv("CRFX_DATA")
    with pytest.raises(FileNotFoundError, match=r"\$CRFX_DATA is not set"):
        look()


@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
def test_other_contents_are_refused_by_name(places, name):
    path = put(places[0], name, text=TEXT + "g h\n")
    put(places[1])  # a good copy further on does not hide the bad one
    with pytest.raises(ValueError, match="sha256 of its contents is") as raised:
        look()
    assert str(path) in str(raised.value)
    assert SHA256 in str(raised.value)


def test_a_damaged_gzip_is_refused_by_name(places):
    path = put(places[0], "x.txt.gz")
    whole = path.read_bytes()
    for damaged in (whole[:-9], b"no" + whole, whole[:12] + whole):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="cannot be decompressed") as raised:
            look()
        assert str(path) in str(raised.value)


def test_text_is_read_compressed_or_not(places):
    for name in ("x.txt", "x.txt.gz"):
        with open_text(put(places[0], name, text="ä\u00a0b\n")) as file:
            assert file.read() == "ä\u00a0b\n"


def test_blocks_are_parted_by_empty_lines(places):
    for text in (TEXT, TEXT.rstrip("\n"), "\n" + TEXT + "\n\n"):
        assert read_blocks(put(places[0], text=text)) == [["a b", "c d"], ["e f"]]
    assert read_blocks(put(places[0], text="")) == []
