// Keeps the model from changing files that are not its business.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

const PROTECTED = [".env", ".git/", "node_modules/", "package-lock.json"];

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "write" && event.toolName !== "edit") return undefined;
    const path = String(event.input.path);
    if (!PROTECTED.some((part) => path.includes(part))) return undefined;
    ctx.ui.notify(`Kept ${path} as it is`, "warning");
    return { block: true, reason: `${path} is protected` };
  });
}
