// The vendor's SDK for JavaScript, pointed here by OPENAI_BASE_URL and OPENAI_API_KEY alone.

import OpenAI from "openai";

import { gathered, outcome } from "./outcome.mjs";

const sdk = ({ retries = 0 }) => new OpenAI({ maxRetries: retries });

await outcome({
  chat: ({ body, ...options }) => sdk(options).chat.completions.create(body),

  chunks: async ({ body }) => gathered(await sdk({}).chat.completions.create({ ...body, stream: true })),

  completion: async ({ body }) => sdk({}).chat.completions.stream(body).finalChatCompletion(),

  response: ({ body, ...options }) => sdk(options).responses.create(body),

  events: async ({ body }) => gathered(await sdk({}).responses.create({ ...body, stream: true })),

  finalResponse: async ({ body }) => sdk({}).responses.stream(body).finalResponse(),

  models: async () => (await gathered(sdk({}).models.list())).map((model) => model.id),

  model: ({ id }) => sdk({}).models.retrieve(id),

  images: ({ body }) => sdk({}).images.generate(body),

  async speech({ body }) {
    const answer = await sdk({}).audio.speech.create(body);
    const bytes = Buffer.from(await answer.arrayBuffer());
    return { type: answer.headers.get("content-type"), head: bytes.subarray(0, 44).toString("hex"), bytes: bytes.length };
  },
});
