// Tells how long each run took and how many turns it had.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  let turns = 0;
  let started = 0;

  pi.on("agent_start", () => {
    turns = 0;
    started = Date.now();
  });
  pi.on("turn_start", (event, ctx) => {
    turns = event.turnIndex + 1;
    ctx.ui.setStatus("turns", `turn ${turns}`);
  });
  pi.on("agent_end", (_event, ctx) => {
    ctx.ui.setStatus("turns", undefined);
    ctx.ui.notify(`${turns} ${turns === 1 ? "turn" : "turns"} in ${((Date.now() - started) / 1000).toFixed(1)} s`, "info");
  });
}
