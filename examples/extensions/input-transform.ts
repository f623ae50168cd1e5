// "?quick question" asks for a short answer; "ping" is answered without the model.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.on("input", async (event, ctx) => {
    if (event.source === "extension") return { action: "continue" };
    if (event.text.trim() === "ping") {
      ctx.ui.notify("pong", "info");
      return { action: "handled" };
    }
    if (event.text.startsWith("?")) {
      return { action: "transform", text: `${event.text.slice(1).trim()}\n\nAnswer in one sentence.` };
    }
    return { action: "continue" };
  });
}
