import pytest

from proxy.emulator.words import PART_TOKENS, VOCABULARY, Dice, input_tokens, last_user_text, pieces, token_count


def test_a_byte_picks_a_word_evenly():
    assert 256 % len(VOCABULARY) == 0


def test_a_text_has_as_many_pieces_as_it_was_asked_for():
    for count in (0, 1, 2, 500):
        said = pieces(Dice("a"), count)
        assert len(said) == count
        assert len("".join(said).split()) == count
    assert pieces(Dice("a"), 9) == pieces(Dice("a"), 9) != pieces(Dice("b"), 9)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("왜가리", 3), ("\ud800", 1)]
)
def test_four_bytes_are_a_token(text, tokens):
    assert token_count(text) == tokens


def test_all_text_of_a_request_counts_and_a_picture_counts_as_one_part():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    assert input_tokens([{"role": "user", "content": [{"type": "text", "text": "abcd" * 10}, picture]}]) == (
        1 + 1 + 10 + PART_TOKENS
    )
    assert input_tokens({"n": 5, "flag": True, "nothing": None}) == 0


def test_only_the_last_words_of_a_user_are_listened_to():
    user, tool = {"role": "user", "content": "a"}, {"role": "tool", "content": "b"}
    assert last_user_text([tool, user]) == "a"
    assert last_user_text([user, tool]) == ""
    assert last_user_text([{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "x"}]}]) == "a"
    assert last_user_text([]) == ""
    assert last_user_text("a") == ""
