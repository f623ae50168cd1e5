// Puts the output of !{command} in its place in the prompt.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.on("input", async (event, ctx) => {
    const commands = [...event.text.matchAll(/!\{([^}]+)\}/g)];
    if (commands.length === 0) return { action: "continue" };
    let text: string = event.text;
    for (const [whole, command] of commands) {
      const result = await pi.exec("sh", ["-c", command], { timeout: 30_000 });
      const output = result.code === 0 ? result.stdout.trim() : `[${command}: ${result.stderr.trim()}]`;
      // A function: `$&` in a text would be the command again.
      text = text.replace(whole, () => output);
    }
    return { action: "transform", text };
  });
}
