"""fastmcp, run by an interpreter that has it: it connects, lists, calls, is refused, and calls again on one session."""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.exceptions import ToolError
from mcp import MCPError


async def story(url: str, tool: str, well: dict[str, Any], badly: list[dict[str, Any]]) -> dict[str, Any]:
    async with Client(url) as client:

        async def call(given: dict[str, Any]) -> dict[str, Any]:
            try:
                return {"text": (await client.call_tool(tool, given)).content[0].text}
            except MCPError as error:
                return {"code": error.error.code, "message": str(error)}
            except ToolError as error:
                return {"failed": str(error)}

        tools = [listed.name for listed in await client.list_tools()]
        first = await call(well)
        refused = [said for given in badly for said in (await call(given), await call(well))]
    return {"tools": tools, "first": first["text"], "refused": refused}


sys.stdout.write(json.dumps(asyncio.run(story(**json.loads(sys.argv[1])))) + "\n")
