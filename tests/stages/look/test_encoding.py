"""In which encoding a file is: every byte decides, and a guess is right or is refused."""

from __future__ import annotations

import csv

import pytest

from mlpipe.errors import DataError
from mlpipe.stages.look.encoding import encoding


def guess(folder, data: bytes) -> str:
    (folder / "x.csv").write_bytes(data)
    return encoding(folder / "x.csv")[0]


TEXTS = [
    ("cp1252", "Müller;Köln\nOrléans;Málaga\n"),
    ("cp1252", "prix;20 € – été\n"),
    ("cp1250", "Zażółć gęślą jaźń; dzień dobry, proszę pani\nŁódź;Kraków\n"),
    ("iso8859-2", "Příliš žluťoučký kůň; úpěl ďábelské ódy\nčeština;říjen\n"),
    ("cp1251", "Привет, мир;Москва\nУлица;Санкт-Петербург\n"),
    ("koi8-r", "Привет, мир;Москва\nУлица;Санкт-Петербург и далее везде\n"),
    ("iso8859-7", "όνομα;γλώσσα\nελληνικά;Αθήνα\n"),
    ("cp932", "東京都,千代田区\nﾄｳｷｮｳﾄ,ﾁﾖﾀﾞｸ\n"),
    ("euc_jp", "東京都,千代田区\n大阪府,北区\n日本語の文章です\n"),
    ("gb18030", "北京,上海\n中文编码测试\n"),
    ("cp949", "서울특별시,부산광역시\n안녕하세요 반갑습니다\n"),
    ("cp1254", "İstanbul,Şişli\nçığ;değişim;güneş;ışık\n"),
    ("utf-8", "Zażółć,東京都\n"),
    ("utf-16", "a,b\n東,é\n"),
    ("utf-32", "a,b\n東,é\n"),
    ("utf-16-le", "name,town\nMüller,Köln\n" * 20),
    ("utf-16-be", "name,town\nMüller,Köln\n" * 20),
]


@pytest.mark.parametrize(("name", "text"), TEXTS, ids=[name + str(i) for i, (name, _) in enumerate(TEXTS)])
def test_the_text_comes_out_as_it_was_written(tmp_path, name, text):
    found = guess(tmp_path, text.encode(name))
    assert text.encode(name).decode(found) == text, found


def test_sentences_in_the_encodings_that_people_had(shared_data, tmp_path):
    """Of language_id's sentences, four at a time, written in the encodings of their countries, at least 97 % are read right."""
    rows: dict[str, list[str]] = {}
    with (shared_data / "language_id" / "language_id.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["lang"], []).append(row["text"])
    of = {"de": "cp1252", "fr": "cp1252", "sv": "cp1252", "pl": "cp1250", "ru": "cp1251", "tr": "cp1254", "ja": "cp932", "zh": "gb18030",
          "ko": "cp949", "ar": "cp1256"}  # fmt: skip
    right = total = 0
    for lang, name in of.items():
        for i in range(0, 40, 4):
            data = "\n".join(rows[lang][i : i + 4]).encode(name, "ignore")
            if not data.isascii():
                total += 1
                right += data.decode(guess(tmp_path, data)) == data.decode(name)
    assert total > 80
    assert right >= 0.97 * total, (right, total)


def test_one_late_byte_decides(tmp_path):
    assert guess(tmp_path, b"a,b\n" + b"1,2\n" * 500_000 + "ü,1\n".encode()) == "utf-8"
    found = tmp_path / "late.csv"
    found.write_bytes(b"a,b\n" + b"1,2\n" * 500_000 + "ü,1\n".encode("cp1252"))
    assert encoding(found)[0] == "cp1252"
    assert "line 500002 is not UTF-8" in encoding(found)[1]


def test_what_is_no_text_is_refused(tmp_path):
    for data in (bytes(range(256)) * 20, b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0\xff" * 50, b"\0" * 100):
        with pytest.raises(DataError, match=r"x\.csv"):
            guess(tmp_path, data)


def test_a_zero_byte_in_a_text_is_a_character(tmp_path):
    assert guess(tmp_path, b"a,b\n\0,2\n1,2\n5,6\n") == "utf-8"
