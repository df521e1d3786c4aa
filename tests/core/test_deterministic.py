"""What is kept of an answer that was read to its end."""

import pytest

from proxy.core.deterministic import keepable

LINK = "https://files.example/a.png?X-Amz-Algorithm=AWS4{}X-Amz-Expires=600{}{}=6f2a"
NAMES = ["X-Amz-Signature", "x-goog-signature", "Signature", "sig", "token"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("joint", ["&", r"\u0026", "&amp;"], ids=["plain", "escaped in JSON", "escaped in HTML"])
def test_an_answer_with_a_link_that_will_not_last_is_not_kept(joint, name):
    body = b'{"data":[{"url":"%s"}]}' % LINK.format(joint, joint, name).encode()
    assert not keepable(200, None, body, is_json=True)


def test_an_answer_with_a_link_that_lasts_is_kept():
    assert keepable(200, None, b'{"data":[{"url":"https://files.example/a.png?size=2&page=1"}]}', is_json=True)
