// The models of an Ollama server, over its own protocol: one JSON object for each piece of an answer.
//
// A provider that speaks a protocol of Hardpan's needs none of this: `baseUrl`, `api` and `models` are enough. Where
// it has a protocol of its own, `streamSimple` translates: it reads a context of messages and tools, and pushes events.
//
// `private_hosts = ["127.0.0.1"]` in config.toml lets extensions reach this machine. Then: /model ollama/NAME

import type { ExtensionAPI, ProviderContext, ProviderModel, ProviderRequest } from "@mariozechner/pi-coding-agent";
import { createAssistantMessageEventStream } from "@mariozechner/pi-ai";

const SERVER = process.env.OLLAMA_HOST ?? "http://127.0.0.1:11434";
const CONTEXT = 32768;

// Messages as Ollama reads them: parts become one text, and images stand beside it.
function toOllama({ systemPrompt, messages }: ProviderContext) {
  const said = systemPrompt ? [{ role: "system", content: systemPrompt }] : [];
  const textOf = (content: any[]) => content.filter((part) => part.type === "text").map((part) => part.text).join("\n");
  for (const message of messages as any[]) {
    const content = Array.isArray(message.content) ? message.content : [{ type: "text", text: message.content }];
    const images = content.filter((part: any) => part.type === "image").map((part: any) => part.data);
    const calls = content.filter((part: any) => part.type === "toolCall");
    said.push({
      role: message.role === "toolResult" ? "tool" : message.role,
      content: textOf(content),
      ...(message.role === "toolResult" && { tool_name: message.toolName }),
      ...(images.length > 0 && { images }),
      ...(calls.length > 0 && { tool_calls: calls.map((call: any) => ({ function: { name: call.name, arguments: call.arguments } })) }),
    });
  }
  return said;
}

// The objects of a body that has one in each line.
async function* objects(body: AsyncIterable<Uint8Array>) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of body) {
    const lines = (rest + decoder.decode(part, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim()) yield JSON.parse(line);
  }
  if (rest.trim()) yield JSON.parse(rest);
}

function streamOllama(model: ProviderModel, context: ProviderContext, options: ProviderRequest) {
  const stream = createAssistantMessageEventStream();
  const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
  const output: any = { role: "assistant", content: [], provider: "ollama", model: model.id, usage, stopReason: "stop", timestamp: Date.now() };

  // Adds to the last part if it is of this kind, else begins one.
  const append = (kind: "text" | "thinking", delta: string) => {
    if (output.content.at(-1)?.type !== kind) {
      output.content.push({ type: kind, [kind]: "" });
      stream.push({ type: `${kind}_start`, contentIndex: output.content.length - 1, partial: output });
    }
    output.content.at(-1)[kind] += delta;
    stream.push({ type: `${kind}_delta`, contentIndex: output.content.length - 1, delta, partial: output });
  };
  const receive = async () => {
    const tools = context.tools?.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } }));
    const response = await fetch(`${SERVER}/api/chat`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: model.id, messages: toOllama(context), tools, stream: true, options: { num_predict: options.maxTokens, num_ctx: CONTEXT } }),
      signal: options.signal,
    });
    if (!response.ok || !response.body) throw new Error(`Ollama answered ${response.status}: ${await response.text()}`);
    stream.push({ type: "start", partial: output });
    for await (const { message, done, error, ...rest } of objects(response.body as unknown as AsyncIterable<Uint8Array>)) {
      if (error) throw new Error(error);
      if (message?.thinking) append("thinking", message.thinking);
      if (message?.content) append("text", message.content);
      for (const { function: call } of message?.tool_calls ?? []) {
        const toolCall = { type: "toolCall", id: crypto.randomUUID(), name: call.name, arguments: call.arguments };
        output.content.push(toolCall);
        output.stopReason = "toolUse";
        stream.push({ type: "toolcall_end", contentIndex: output.content.length - 1, toolCall, partial: output });
      }
      if (!done) continue;
      usage.input = rest.prompt_eval_count ?? 0;
      usage.output = rest.eval_count ?? 0;
      usage.totalTokens = usage.input + usage.output;
      if (rest.done_reason === "length") output.stopReason = "length";
    }
    stream.push({ type: "done", reason: output.stopReason, message: output });
  };
  receive().catch((error: Error) => {
    output.stopReason = options.signal?.aborted ? "aborted" : "error";
    output.errorMessage = error.message;
    stream.push({ type: "error", reason: output.stopReason, error: output });
  });
  return stream;
}

export default async function (pi: ExtensionAPI) {
  let names: string[] = [];
  try {
    const listed = await (await fetch(`${SERVER}/api/tags`)).json();
    names = listed.models.map((model: { name: string }) => model.name);
  } catch (error) {
    console.warn(`no models of Ollama: ${error}`);
  }
  const free = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const models = names.map((id) => ({ id, name: id, input: ["text" as const, "image" as const], cost: free, contextWindow: CONTEXT, maxTokens: 8192 }));
  pi.registerProvider("ollama", { name: "Ollama", baseUrl: SERVER, api: "ollama-chat", models, streamSimple: streamOllama });
}
