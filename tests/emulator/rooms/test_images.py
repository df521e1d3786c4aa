import base64

import pytest

from proxy.emulator.content import size_of_image
from proxy.emulator.media import IMAGES, ImageFamily

SYNCHRONOUS = (ImageFamily.SEARCH, ImageFamily.LAB)
PNG = "data:image/png;base64,AAAA"


async def draw(api, model="image-search-flash", **fields):
    return await api.post("images/generate/", {"model": model, "prompt": "a heron", **fields})


@pytest.mark.fact("image-search")
async def test_the_search_family_answers_at_once_in_base64(api):
    data = (await draw(api)).json["data"]
    assert size_of_image(base64.b64decode(data[0]["b64_json"])) == (8, 8)


@pytest.mark.fact("image-lab")
async def test_the_lab_family_answers_at_once_with_a_url(api):
    url = (await draw(api, "image-lab-large")).json["data"][0]["url"]
    reply = await api.get(url.removeprefix(api.gateway.url), key=None)
    assert (reply.headers["Content-Type"], size_of_image(reply.body)) == ("image/png", (8, 8))


@pytest.mark.fact("image-async")
async def test_the_aggregators_answer_with_an_operation_that_is_polled(api):
    for model in ("image-a-sdxl", "image-b-small"):
        begun = (await draw(api, model)).json
        assert begun.keys() == {"operation_id", "status"}
        path = f"images/generate/{begun['operation_id']}/?model={model}"
        polls = [(await api.get(path)).json for _ in range(3)]
        assert [poll["status"] for poll in polls] == ["processing", "completed", "completed"]
        assert polls[-1]["data"][0]["url"].startswith("http")


@pytest.mark.fact("image-poll-model")
async def test_a_poll_names_the_model_of_the_operation(api):
    ident = (await draw(api, "image-a-sdxl")).json["operation_id"]
    assert (await api.get(f"images/generate/{ident}/")).status == 400
    assert (await api.get(f"images/generate/{ident}/?model=image-b-small")).status == 404
    assert (await api.get(f"images/generate/{ident}/?model=image-a-sdxl", key=api.beta)).status == 404


@pytest.mark.fact("image-number")
async def test_the_search_family_makes_at_most_4_images(api):
    assert len((await draw(api)).json["data"]) == 1
    assert len((await draw(api, number_of_images=4)).json["data"]) == 4
    assert (await draw(api, number_of_images=5)).status == 400
    assert (await draw(api, "image-lab-small", number_of_images=5)).status == 200
    assert (await draw(api, number_of_images=0)).status == 400


@pytest.mark.fact("image-prices")
async def test_every_image_costs_its_price_times_the_number(api):
    prices = []
    api.gateway.set_credits("alpha", 10**12)
    for model in IMAGES:
        await draw(api, model, number_of_images=2)
        prices.append(api.gateway.journal[-1].charged / 2 / 10**8)
    assert prices == [53, 39, 42, 8, 69, 140, 34, 39, 30, 40, 30, 90, 80, 5, 35, 40, 60, 40, 20]


@pytest.mark.fact("image-inputs")
async def test_inputs_are_urls_or_data_urls(api):
    for item in ("https://a/b.png", "http://a/b.png", PNG):
        assert (await draw(api, input_images=[item])).status == 200, item
    for item in ("AAAA", "data:text/plain;base64,AAAA", "ftp://a/b"):
        assert (await draw(api, input_images=[item])).status == 400, item
    assert (await draw(api, input_images=[5])).status == 422


@pytest.mark.fact("image-inputs-max")
async def test_every_model_has_its_maximum_of_inputs_and_says_it(api):
    api.gateway.set_credits("alpha", 10**12)
    for row in IMAGES.values():
        assert (await draw(api, row.name, input_images=[PNG] * row.inputs_max)).status == 200, row.name
        reply = await draw(api, row.name, input_images=[PNG] * (row.inputs_max + 1))
        assert reply.status == 400
        assert str(row.inputs_max) in reply.detail
    assert sorted({row.inputs_max for row in IMAGES.values()}) == [0, 1, 3, 8, 10, 14]
    assert [row.inputs_max for row in IMAGES.values()].count(14) == 2


@pytest.mark.fact("image-404")
async def test_an_invalid_model_is_404_with_the_live_list(api):
    reply = await draw(api, "nothing")
    assert reply.status == 404
    assert f"Available models: {list(IMAGES)}" in reply.detail
    assert (await draw(api, "gpt-4o")).status == 404


@pytest.mark.fact("image-403")
async def test_an_image_model_that_is_not_enabled_is_403(api):
    assert (await draw(api, "image-retired")).refusal == (
        403,
        "Model 'image-retired' is not enabled for your tenant.",
    )
    assert (await draw(api, "image-free")).status == 403


@pytest.mark.fact("image-required")
async def test_model_and_prompt_are_required(api):
    assert len((await api.post("images/generate/", {})).detail) == 2


async def test_an_operation_that_fails_gives_its_credits_back(api):
    ident = (await draw(api, "image-a-sdxl", prompt="[[job:failed]]")).json["operation_id"]
    assert api.gateway.credits("alpha") == 995 * 10**8
    path = f"images/generate/{ident}/?model=image-a-sdxl"
    assert [(await api.get(path)).json["status"] for _ in range(3)] == ["processing", "failed", "failed"]
    assert api.gateway.credits("alpha") == 1000 * 10**8


@pytest.mark.fact("image-402")
async def test_without_credits_there_is_no_image(api):
    api.gateway.set_credits("alpha", 0)
    assert (await draw(api)).status == 402
