import pytest

from proxy.emulator.shapes import Field, Shape, problems

INNER = (Field("name", Shape.STRING, required=True), Field("n", Shape.INTEGER))
FIELDS = (
    Field("one", Shape.OBJECT, inside=INNER),
    Field("many", Shape.ARRAY, inside=INNER),
    Field("words", Shape.ARRAY, each=Shape.STRING),
    Field("map", Shape.OBJECT, each=Shape.STRING),
    Field("text", Shape.TEXT_OR_PARTS, inside=INNER),
    Field("word", Shape.STRING, choices=("a", "b")),
)


@pytest.mark.parametrize(
    ("value", "places"),
    [
        ({}, []),
        ({"one": None, "many": None, "word": None}, []),
        ({"one": {"name": "a", "n": 1}, "many": [{"name": "a"}], "words": ["a"], "map": {"k": "v"}, "text": "a"}, []),
        ({"one": {}}, ["one.name"]),
        ({"one": []}, ["one"]),
        ({"one": {"name": None}}, ["one.name"]),
        ({"many": [{"name": "a"}, {"name": 5, "n": "x"}, 7]}, ["many.1.name", "many.1.n", "many.2"]),
        ({"words": ["a", 5]}, ["words.1"]),
        ({"map": {"k": 5}}, ["map.k"]),
        ({"text": [{"name": "a"}, {}]}, ["text.1.name"]),
        ({"word": "c"}, ["word"]),
        ({"one": {"name": "a", "n": True}}, ["one.n"]),
    ],
)
def test_every_misfit_is_named_by_its_place(value, places):
    assert [".".join(map(str, item["loc"])) for item in problems(value, FIELDS, ())] == places
