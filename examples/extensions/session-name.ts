// Names the session after its first prompt; /name-session changes it.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  let isNamed = false;

  pi.on("before_agent_start", async (event) => {
    if (isNamed) return;
    isNamed = true;
    pi.setSessionName(event.prompt.split("\n")[0].slice(0, 60));
  });

  pi.registerCommand("name-session", {
    description: "Name this session",
    handler: async (args, ctx) => {
      const name = args.trim() || (await ctx.ui.input("Name of the session"));
      if (!name) return;
      isNamed = true;
      pi.setSessionName(name);
      ctx.ui.notify(`This session is now called ${name}`, "info");
    },
  });
}
