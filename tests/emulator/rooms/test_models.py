import pytest

from proxy.emulator.catalog import MODELS, Kind, Offer, accessible


async def names(api, query=""):
    reply = await api.get(f"models/{query}")
    assert reply.status == 200
    return [entry["id"] for entry in reply.json["data"]]


@pytest.mark.fact("models-list")
async def test_the_list_holds_the_accessible_models_in_the_wide_spread_format(api):
    reply = await api.get("models/")
    assert reply.json["object"] == "list"
    assert [entry["id"] for entry in reply.json["data"]] == [model.name for model in accessible()]
    assert all(entry.keys() == {"id", "object", "created", "owned_by"} for entry in reply.json["data"])
    assert not {name for name, model in MODELS.items() if model.offer is not Offer.ENABLED} & set(await names(api))


@pytest.mark.fact("models-order")
async def test_text_models_come_first(api):
    kinds = [MODELS[name].kind for name in await names(api)]
    count = kinds.count(Kind.LLM)
    assert kinds[:count] == [Kind.LLM] * count
    assert MODELS[(await names(api, "?type=video,llm"))[0]].kind is Kind.LLM


@pytest.mark.fact("models-type")
async def test_a_list_can_be_filtered_by_one_kind_or_a_set(api):
    for query in ("llm", "audio", "image", "video", "image,audio", "llm,audio,image,video"):
        wanted = {Kind(word) for word in query.split(",")}
        assert {MODELS[name].kind for name in await names(api, f"?type={query}")} == wanted, query
    assert await names(api) == await names(api, "?type=llm,audio,image,video")


@pytest.mark.fact("models-422")
async def test_an_unknown_kind_is_a_validation_error(api):
    reply = await api.get("models/?type=llm,smell")
    assert reply.status == 422
    assert reply.detail[0]["loc"] == ["query", "type"]


@pytest.mark.fact("models-one")
async def test_one_model_is_looked_up_by_its_name(api):
    assert (await api.get("models/gpt-4o/")).json["id"] == "gpt-4o"


@pytest.mark.fact("models-one-slash")
async def test_a_name_with_a_slash_is_looked_up_encoded(api):
    assert (await api.get("models/open%2Fllama-large/")).json["id"] == "open/llama-large"
    assert (await api.get("models/open/llama-large/")).status == 404


@pytest.mark.fact("models-one-404")
async def test_an_unknown_or_disabled_model_is_not_found(api):
    for name in ("nothing", "gpt-retired"):
        assert (await api.get(f"models/{name}/")).refusal == (404, f"Model '{name}' not found")


@pytest.mark.fact("native-models")
async def test_the_native_list_shows_native_models_with_and_without_the_slash(api):
    for path in ("partner/v1/models", "partner/v1/models/"):
        reply = await api.get(path)
        assert reply.status == 200
        assert [entry["id"] for entry in reply.json["data"]] == [
            "claude-haiku-x",
            "claude-sonnet-x",
            "claude-opus-x",
        ]
        assert reply.json["has_more"] is False
        assert all(entry["type"] == "model" for entry in reply.json["data"])
