"""A client of the older MCP line, run by an interpreter that has it: commands in on standard input, findings out.

Each line in is a list of a word and its arguments; each line out is what came of it. The session lives as long as the
input, so that a test can see whether it outlives a refusal.
"""

import asyncio
import json
import sys

from mcp import ClientSession, McpError
from mcp.client.streamable_http import streamablehttp_client


async def main(url: str) -> None:
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        loop = asyncio.get_running_loop()
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            word, *arguments = json.loads(line)
            sys.stdout.write(json.dumps(await done(session, word, arguments)) + "\n")
            sys.stdout.flush()


async def done(session: ClientSession, word: str, arguments: list) -> dict:
    try:
        match word:
            case "connect":
                return {"server": (await session.initialize()).serverInfo.name}
            case "list":
                return {"tools": [tool.name for tool in (await session.list_tools()).tools]}
            case "ping":
                await session.send_ping()
                return {}
            case "call":
                result = await session.call_tool(*arguments)
                return {"text": result.content[0].text, "failed": result.isError}
    except McpError as error:
        return {"code": error.error.code, "error": str(error), "data": error.error.data}
    return {"unknown": word}


asyncio.run(main(sys.argv[1]))
