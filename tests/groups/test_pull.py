import stat

from proxy.groups.applied import Applied
from proxy.groups.groupsfile import read_file
from proxy.groups.present import silent
from proxy.groups.pull import Part, pull
from proxy.groups.wanted import UNSET
from tests.groups.services import client_of


async def pulled(service, client, folder, parts=frozenset(Part)):
    path = folder / "groups.yaml"
    count = await pull(client, path, service.url, parts, silent)
    file = read_file(path)
    assert (count, file.tenant) == (len(file.groups), service.url)
    return {wanted.id: wanted for wanted in file.groups}


async def test_everything_that_can_be_read_is_written_down(service, client, tmp_path):
    service.tenant.groups[2].agents = {"law_in_data": False, "univ_in_data": True}
    service.tenant.groups[2].hidden = True
    wanted = (await pulled(service, client, tmp_path))[2]
    assert (wanted.ko_name, wanted.en_name, wanted.type_id, wanted.parent) == ("공학부", "Engineering", 1, None)
    assert (wanted.group_quota, wanted.member_quota, wanted.admin_only) == (5000, 100, True)
    assert (wanted.administrators, wanted.members, wanted.agents) == ({102: True}, (102,), {"law_in_data": False})
    assert wanted.models is UNSET


async def test_models_that_were_applied_from_the_file_are_written_again(service, client, tmp_path):
    applied = Applied.beside(tmp_path / "groups.yaml", service.url)
    applied.note(3, {5: False})
    applied.save()
    assert (await pulled(service, client, tmp_path))[3].models == {5: False}


async def test_what_names_people_is_for_its_owner_alone(service, client, tmp_path):
    await pulled(service, client, tmp_path)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes["groups.yaml"] == modes["1.csv"] == 0o600
    assert modes["groups.members"] == 0o700
    assert (tmp_path / "groups.members" / "3.csv").read_text() == "id,email,name\n103,chan@example.org,Chan\n"


async def test_a_group_administrator_writes_down_what_is_delegated(service, tmp_path):
    async with client_of(service, "delegate") as client:
        assert set(await pulled(service, client, tmp_path)) == {2, 3}


async def test_progress_is_told_to_the_end(service, client, tmp_path):
    told = []
    await pull(client, tmp_path / "groups.yaml", service.url, frozenset(Part), lambda *row: told.append(row))
    # Six groups with four parts each, but nobody is in one of them.
    assert told[-1] == ("reading groups", 23, 23)
