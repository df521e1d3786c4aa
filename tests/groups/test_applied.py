import pytest

from proxy.groups.applied import Applied

TENANT = "https://tenant.example"


def test_what_was_applied_is_known_again(tmp_path):
    file = tmp_path / "groups.yaml"
    applied = Applied.beside(file, TENANT)
    applied.note(3, {5: False})
    applied.note(3, {6: True})
    applied.note(4, {5: True})
    applied.forget(4)
    applied.save()
    assert Applied.beside(file, TENANT).models == {3: {5: False, 6: True}}
    assert {path.name for path in tmp_path.iterdir()} == {"groups.applied.json"}


def test_nothing_is_written_where_there_is_nothing_to_say(tmp_path):
    Applied.beside(tmp_path / "groups.yaml", TENANT).save()
    assert list(tmp_path.iterdir()) == []


def test_what_was_applied_to_another_tenant_does_not_count(tmp_path):
    applied = Applied.beside(tmp_path / "groups.yaml", TENANT)
    applied.note(3, {5: False})
    applied.save()
    assert Applied.beside(tmp_path / "groups.yaml", "https://other.example").models == {}


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"tenant": "https://tenant.example"}', '{"tenant": "https://tenant.example", "models": {"x": {}}}'],
)
def test_an_unusable_file_counts_as_nothing_known(tmp_path, text):
    (tmp_path / "groups.applied.json").write_text(text)
    assert Applied.beside(tmp_path / "groups.yaml", TENANT).models == {}
