import orjson
import pytest

from proxy.core.body import Dialect, judge

B64 = "QUJD" * 50


def _asked(*parts):
    return {"messages": [{"role": "user", "content": list(parts)}]}


# fmt: off
DATA_URL = f"data:image/png;base64,{B64}"
PARTS = (
    # a part                                                                                              images files audio references
    (_asked({"type": "text", "text": "hi"}),                                                                (0, 0, 0, 0)),
    (_asked({"type": "image_url", "image_url": {"url": DATA_URL}}),                                         (1, 0, 0, 0)),
    (_asked({"type": "image_url", "image_url": DATA_URL}),                                                  (1, 0, 0, 0)),
    (_asked({"type": "image_url", "image_url": {"url": "https://x.example/a.png?sig=1"}}),                  (1, 0, 0, 1)),
    (_asked({"type": "input_audio", "input_audio": {"data": B64, "format": "wav"}}),                        (0, 0, 1, 0)),
    (_asked({"type": "file", "file": {"file_data": DATA_URL, "filename": "a.pdf"}}),                        (0, 1, 0, 0)),
    (_asked({"type": "file", "file": {"file_id": "file_1"}}),                                               (0, 1, 0, 1)),
    (_asked({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": B64}}),       (1, 0, 0, 0)),
    (_asked({"type": "image", "source": {"type": "url", "url": "https://x.example/a"}}),                    (1, 0, 0, 1)),
    (_asked({"type": "image", "source": {"type": "file", "file_id": "f"}}),                                 (1, 0, 0, 1)),
    (_asked({"type": "document", "source": {"type": "base64", "data": B64}}),                               (0, 1, 0, 0)),
    (_asked({"type": "tool_result", "content": [{"type": "image", "source": {"type": "base64", "data": B64}}]}), (1, 0, 0, 0)),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": DATA_URL}]}]},            (1, 0, 0, 0)),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]},               (0, 1, 0, 1)),
    ({"input": [{"role": "user", "content": [{"type": "input_file", "file_data": B64}]}]},                  (0, 1, 0, 0)),
    ({"input": [{"type": "image_generation_call", "result": B64}]},                                         (1, 0, 0, 0)),
    ({"input": [{"type": "function_call_output", "output": [{"type": "input_image", "image_url": DATA_URL}]}]}, (1, 0, 0, 0)),
    (_asked({"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": {"type": "base64", "data": B64}}]}}), (1, 1, 0, 0)),
    ({"input_images": [DATA_URL, "https://x.example/a.png"]},                                               (2, 0, 0, 1)),
    ({"input_urls": ["https://x.example/a.png"]},                                                           (1, 0, 0, 1)),
)
STILL_TEXT = (
    # places where text only looks like data
    _asked({"type": "text", "text": DATA_URL}),
    {"messages": [{"role": "user", "content": DATA_URL}]},
    _asked({"type": "document", "source": {"type": "text", "data": B64}}),
    _asked({"type": "tool_use", "input": {"type": "image", "source": {"type": "base64", "data": B64}}}),
    {"tools": [{"type": "image", "source": {"type": "base64", "data": B64}}]},
    {"tools": [{"parameters": {"content": [{"type": "image_url", "image_url": DATA_URL}]}}]},
    {"instructions": DATA_URL},
    {"input": DATA_URL},
    {"response_format": {"json_schema": {"source": {"data": B64}}}},
)
# fmt: on


@pytest.mark.parametrize(("body", "counts"), PARTS)
def test_parts_that_are_no_text_are_counted_and_their_data_is_no_text(body, counts):
    found = judge(orjson.dumps(body), Dialect.CHAT)
    assert (found.images, found.files, found.audio, found.references) == counts
    assert found.text_bytes < len(B64)


@pytest.mark.parametrize("body", STILL_TEXT)
def test_text_that_looks_like_data_is_priced_as_text(body):
    assert judge(orjson.dumps(body), Dialect.CHAT).text_bytes >= len(B64)


def test_a_part_is_found_however_its_type_is_spelt():
    plain = orjson.dumps(_asked({"type": "image_url", "image_url": {"url": DATA_URL}}))
    spelt = plain.replace(b'"type"', rb'"\u0074yp\u0065"')
    assert spelt != plain
    for body in (plain, spelt):
        assert judge(body, Dialect.CHAT).images == 1
