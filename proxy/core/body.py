from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
import orjson
from proxy.errors import ProxyError
class BodyKind(Enum):
    CHAT="chat"; MESSAGES="messages"; COUNT_TOKENS="count_tokens"; RESPONSES="responses"; MCP="mcp"
@dataclass(frozen=True, slots=True)
class Facts:
    model: str|None; stream: bool; text_bytes: int; digest: bytes; deterministic: bool; background: bool
@dataclass(frozen=True, slots=True)
class McpFacts:
    method: str|None; id: bytes|None; tool: str|None; is_batch: bool; is_response: bool; protocol_version: str|None
def judge(raw, kind):
    try: t=orjson.loads(raw)
    except orjson.JSONDecodeError as e: raise ProxyError("bad_request","not JSON") from e
    if kind is BodyKind.MCP:
        if isinstance(t,list): return McpFacts(None,None,None,True,False,None)
        return McpFacts(t.get("method"), orjson.dumps(t["id"]) if "id" in t else None, (t.get("params") or {}).get("name"), False, "method" not in t, None)
    if not isinstance(t,dict): raise ProxyError("bad_request","not an object")
    return Facts(t.get("model"), t.get("stream") is True, len(raw), sha256(raw).digest(), t.get("temperature")==0, t.get("background") is True)
judge_large=judge
def judged(x): return x
