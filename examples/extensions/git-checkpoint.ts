// Keeps what the work tree held before each run, as `git stash list` shows it.
import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";

export default function (pi: ExtensionAPI) {
  pi.on("agent_start", async () => {
    const made = await pi.exec("git", ["stash", "create"]);
    const commit = made.stdout.trim();
    if (made.code === 0 && commit !== "") {
      await pi.exec("git", ["stash", "store", "-m", "before the run", commit]);
    }
  });
}
