// Asks before commands that are hard to undo.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

const DANGEROUS = [/\brm\s+(-\w*r|--recursive)/, /\bsudo\b/, /\bgit\s+push\b.*--force/, /\bchmod\b.*777/];

export default function (pi: ExtensionAPI) {
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName !== "bash") return undefined;
    const command = event.input.command as string;
    if (!DANGEROUS.some((pattern) => pattern.test(command))) return undefined;
    if (!ctx.hasUI) return { block: true, reason: "A dangerous command, and nobody is there to ask" };
    const choice = await ctx.ui.select(`This command is hard to undo:\n\n  ${command}\n\nAllow it?`, ["Yes", "No"]);
    return choice === "Yes" ? undefined : { block: true, reason: "Blocked by the user" };
  });
}
