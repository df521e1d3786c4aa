"""Every sentence the gateway is documented to say, with its status: the tables of the documentation as data."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One row: the status and the sentence, with its variable parts in braces."""

    status: int
    text: str


# Authentication and the edge.
NO_KEY = Message(401, "Authorization header is not supplied")
NO_BEARER = Message(401, "Bearer token is not supplied")
BAD_KEY = Message(401, "Invalid API key")
EDGE_BLOCK = Message(403, "error code: 1010")
"""The one message that travels as plain text: the edge answers before the gateway sees the request."""

# Any gateway endpoint.
NO_SUCH_PATH = Message(404, "Not Found")
WRONG_METHOD = Message(405, "Method Not Allowed")
BODY_TOO_LARGE = Message(413, "Request body too large. Maximum size is 25MB.")
RATE_LIMIT = Message(429, "Rate limit exceeded")
NO_CREDITS = Message(402, "Credit balance exhausted")
INTERNAL = Message(500, "Internal server error")
MAINTENANCE = Message(503, "Service is temporarily stopped for maintenance")

# Models.
MODEL_NOT_FOUND = Message(404, "Model '{model}' not found")
RESPONSES_ONLY = Message(400, "Model '{model}' not found")
NOT_NATIVE = Message(400, "Model '{model}' is not an {vendor} model")
NOT_RESPONSES = Message(400, "Model '{model}' is not an {vendor} model")
NOT_ENABLED = Message(403, "Model '{model}' is not enabled for your tenant.")
NOT_OFFERED = Message(403, "Model '{model}' is not available through the Gateway API.")

# Media.
SPEECH_TOO_LONG = Message(400, "Input text too long ({n} chars). Maximum is {limit} characters.")
IMAGE_TOO_LARGE = Message(
    400, "input_urls[{n}] is {w}x{h} = {pixels} pixels, over this model's limit of {limit} total pixels."
)

# Tool suites.
BAD_RPC = Message(400, "Invalid JSON-RPC request: {why}")
SUITE_DISABLED = Message(403, "MCP suite '{suite}' is disabled by your organization's connector settings")
SUITE_UNKNOWN = Message(404, "Unknown MCP suite '{suite}'. See GET /v1/gateway/mcp/")
SUITE_APP_ONLY = Message(404, "MCP suite '{suite}' is not available through the API. See GET /v1/gateway/mcp/")
SUITE_POST_ONLY = Message(405, "Use POST; this endpoint is stateless streamable-HTTP")
SUITE_ACCEPT = Message(406, "Not Acceptable: Client must accept both application/json and text/event-stream")
TOOL_LIMIT = Message(429, "Rate limit exceeded: {why}")
SUITE_FAILED = Message(502, "MCP suite '{suite}' did not respond. Try again shortly")
SUITE_PAUSED = Message(503, "MCP suite '{suite}' is paused after repeated upstream failures. Retry in {n} seconds")
