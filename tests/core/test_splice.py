import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.core.splice import addition, members, splice

WORDS = st.sampled_from(["model", "a", ":", '"', "\\", "}", "왜", ""])
ANY = st.recursive(
    st.none() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(WORDS, ANY, max_size=5), st.sampled_from([None, 0, 2]), st.booleans())
def test_the_place_of_every_top_level_value_is_known(tree, indent, ascii_only):
    body = json.dumps(tree, indent=indent, ensure_ascii=ascii_only).encode()
    found = members(body)
    assert {name: json.loads(body[place.start : place.end]) for name, place in found.items()} == tree
    assert [json.loads(body[place.name_start : place.name_end]) for place in found.values()] == list(tree)


@given(st.dictionaries(WORDS, ANY, min_size=1, max_size=5), st.sampled_from([None, 2]), st.data())
def test_a_splice_changes_one_value_and_no_other_byte(tree, indent, data):
    body = json.dumps(tree, indent=indent).encode()
    name = data.draw(st.sampled_from(sorted(tree)))
    place = members(body)[name]
    changed = splice(body, [(place.start, place.end, b'"new"')])
    assert json.loads(changed) == tree | {name: "new"}
    assert changed[: place.start] + changed[place.start + 5 :] == body[: place.start] + body[place.end :]


@given(st.dictionaries(st.sampled_from(["a", "b"]), ANY), st.sampled_from([None, 2]))
def test_a_member_is_added_in_front_of_the_others(tree, indent):
    body = json.dumps(tree, indent=indent).encode()
    changed = splice(body, [addition(body, "stream_options", {"include_usage": True})])
    assert list(json.loads(changed).items()) == [("stream_options", {"include_usage": True}), *tree.items()]


def test_several_edits_are_made_at_once_and_may_not_overlap():
    body = b'{"n":2,"size":"x"}'
    place = members(body)
    rename = [
        (place[old].name_start, place[old].name_end, new)
        for old, new in (("size", b'"image_size"'), ("n", b'"number_of_images"'))
    ]
    assert splice(body, rename) == b'{"number_of_images":2,"image_size":"x"}'
    assert splice(body, []) == body
    with pytest.raises(ValueError, match="overlap"):
        splice(body, [(1, 4, b""), (3, 5, b"")])
