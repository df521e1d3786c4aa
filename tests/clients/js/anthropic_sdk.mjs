// The native vendor's SDK for JavaScript, pointed here by ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN alone.

import Anthropic from "@anthropic-ai/sdk";

import { gathered, outcome } from "./outcome.mjs";

const sdk = ({ retries = 0 }) => new Anthropic({ maxRetries: retries });

await outcome({
  message: ({ body, ...options }) => sdk(options).messages.create(body),

  events: async ({ body }) => gathered(await sdk({}).messages.create({ ...body, stream: true })),

  async stream({ body }) {
    const stream = sdk({}).messages.stream(body);
    let said = "";
    stream.on("text", (text) => (said += text));
    const message = await stream.finalMessage();
    return { said, message };
  },

  count: ({ body }) => sdk({}).messages.countTokens(body),

  models: async () => (await gathered(sdk({}).models.list())).map((model) => model.id),

  model: ({ id }) => sdk({}).models.retrieve(id),
});
