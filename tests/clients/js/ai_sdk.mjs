// The AI SDK over its three providers. Their base URL ends in /v1, for the native one too.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI, openai } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, Output, streamText, tool } from "ai";
import { z } from "zod";

import { gathered, outcome } from "./outcome.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false;

const baseURL = process.env.OPENAI_BASE_URL;
const apiKey = process.env.OPENAI_API_KEY;

// What this provider leaves out unless it is told that the other side has it.
const ASKED_FOR = { includeUsage: true, supportsStructuredOutputs: true };

const MODELS = {
  responses: () => createOpenAI({ baseURL, apiKey })("gpt-4o-mini"),
  chat: () => createOpenAI({ baseURL, apiKey }).chat("gpt-4o-mini"),
  compatible: () => createOpenAICompatible({ name: "sluicegate", baseURL, apiKey, ...ASKED_FOR })("gpt-4o-mini"),
  native: () => createAnthropic({ baseURL, apiKey })("claude-opus-x"),
  // What the providers find in the environment by themselves; this one looks there for the address, and not for a token.
  found: () => openai("gpt-4o-mini"),
  foundNative: () => createAnthropic({ authToken: process.env.ANTHROPIC_AUTH_TOKEN })("claude-opus-x"),
};

const asked = ({ provider, retries = 0, prompt = "Which way does the water go?" }) => ({
  model: MODELS[provider](),
  prompt,
  maxRetries: retries,
});

const weather = tool({
  description: "The weather of a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `rain in ${city}`,
});

await outcome({
  async text(given) {
    const { text, finishReason, usage } = await generateText(asked(given));
    return { text, finishReason, usage };
  },

  async stream(given) {
    // Errors come as parts of the stream, not as exceptions; unhandled they are printed.
    const parts = await gathered(streamText({ ...asked(given), onError() {} }).fullStream);
    const broken = parts.find((part) => part.type === "error");
    if (broken) throw broken.error;
    const text = parts.filter((part) => part.type === "text-delta").map((part) => part.text).join("");
    const { finishReason, totalUsage } = parts.at(-1);
    return { text, finishReason, usage: totalUsage };
  },

  async tools(given) {
    const { text, steps } = await generateText({ ...asked(given), tools: { weather }, stopWhen: isStepCount(3) });
    return { text, called: steps.flatMap((step) => step.toolResults.map((result) => result.output)) };
  },

  async object(given) {
    const schema = z.object({ name: z.string(), length_m: z.number() });
    const { output } = await generateText({ ...asked(given), output: Output.object({ schema }) });
    return output;
  },
});
