"""The JSON Schema of a policy file, for editors: generated from the models that read the files."""

from typing import Any, Final

from proxy.config.policymodel import FileModel

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def policy_schema() -> dict[str, Any]:
    """What one file may say. The reader judges more than a schema can: names that must exist, things said twice."""
    made = FileModel.model_json_schema(mode="validation")
    return {"$schema": DIALECT, **made, "title": "Sluicegate policy file"}
