// /plan: only tools that read, until /plan is typed again.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

const READING = ["read", "grep", "find", "ls", "symbols"];

export default function (pi: ExtensionAPI) {
  let before: string[] | undefined;

  pi.registerCommand("plan", {
    description: "Plan without changing anything",
    handler: async (_args, ctx) => {
      if (before) {
        pi.setActiveTools(before);
        before = undefined;
        ctx.ui.notify("Plan mode is off", "info");
        return;
      }
      before = pi.getActiveTools();
      pi.setActiveTools(before.filter((name) => READING.includes(name)));
      ctx.ui.notify("Plan mode is on: only tools that read", "info");
    },
  });

  pi.on("before_agent_start", async () => {
    if (!before) return undefined;
    const content = "Plan mode: look around and write a plan. Change nothing.";
    return { message: { customType: "plan-mode", content, display: false } };
  });
}
