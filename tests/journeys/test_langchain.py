"""The chain library's model works when it is given the proxy's address."""


def test_it_answers_streams_and_parses(url, gateway):
    # Imported here, as it is by far the slowest of all clients to load.
    from langchain_openai import ChatOpenAI
    from pydantic import BaseModel

    class Boat(BaseModel):
        name: str

    model = ChatOpenAI(base_url=f"{url}/v1", api_key="anything", model="gpt-4o-mini", max_retries=0)
    whole = model.invoke("Which way does the water go?")
    assert whole.content
    assert whole.usage_metadata["total_tokens"] > 0
    assert "".join(chunk.content for chunk in model.stream("Which way does the water go?")) == whole.content
    assert isinstance(model.with_structured_output(Boat).invoke("Name one."), Boat)
    assert set(gateway.targets()) == {"POST /v1/gateway/chat/completions/"}
