// Both lines of the MCP SDK for JavaScript, pointed here by MCP_BASE_URL and MCP_AUTHORIZATION alone, and clients that
// start a server: each connects, lists, calls, is refused, and calls again on the same session.

import { Client as NewerClient, StreamableHTTPClientTransport as NewerHttp } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { outcome } from "./outcome.mjs";

const ME = { name: "a client", version: "1" };

async function story(client, transport, { tool, well, badly }) {
  await client.connect(transport);
  const tools = (await client.listTools()).tools.map((listed) => listed.name);
  const call = async (given) => (await client.callTool({ name: tool, arguments: given })).content[0].text;
  const first = await call(well);
  const refused = [];
  for (const given of badly) {
    try {
      refused.push({ text: await call(given) });
    } catch (error) {
      refused.push({ code: error.code ?? null, message: error.message });
    }
    refused.push({ text: await call(well) });
  }
  const server = client.getServerVersion().name;
  await client.close();
  return { server, tools, first, refused };
}

const address = (suite) => new URL(`${process.env.MCP_BASE_URL}${suite ? `/${suite}` : ""}`);
const options = () => ({ requestInit: { headers: { Authorization: process.env.MCP_AUTHORIZATION } } });

await outcome({
  sdk: ({ suite, ...what }) =>
    story(new Client(ME), new StreamableHTTPClientTransport(address(suite), options()), what),

  client: ({ suite, ...what }) => story(new NewerClient(ME), new NewerHttp(address(suite), options()), what),

  auto: ({ suite, ...what }) =>
    story(
      new NewerClient(ME, { versionNegotiation: { mode: "auto" } }),
      new NewerHttp(address(suite), options()),
      what,
    ),

  async pinned({ url, calls }) {
    const client = new NewerClient(ME, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
    await client.connect(new NewerHttp(new URL(url)));
    const tools = (await client.listTools()).tools.map((listed) => listed.name);
    const told = [];
    for (const given of calls) {
      const steps = [];
      const onprogress = (step) => steps.push(step.progress);
      const result = await client.callTool({ name: tools[0], arguments: given }, { onprogress });
      told.push({ steps, content: result.content });
    }
    await client.close();
    return { tools, told };
  },

  started: ({ command, args, ...what }) =>
    story(new Client(ME), new StdioClientTransport({ command, args, env: process.env, stderr: "ignore" }), what),
});
