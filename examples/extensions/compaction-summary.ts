// Replaces the model's summary with a plain list of what you asked for.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.on("session_before_compact", async (event) => {
    const { messagesToSummarize, firstKeptEntryId, tokensBefore } = event.preparation;
    const asked = messagesToSummarize
      .filter((message) => message.role === "user")
      .map(({ content }) => (typeof content === "string" ? content : content.find((part) => part.type === "text")?.text))
      .map((text) => text?.split("\n")[0])
      .filter(Boolean);
    const summary = `So far the user asked for:\n${asked.map((line) => `- ${line}`).join("\n")}`;
    return { compaction: { summary, firstKeptEntryId, tokensBefore } };
  });
}
