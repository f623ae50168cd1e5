// A list that the model keeps with the tool `tasks`, and that you see with /tasks.
import { StringEnum } from "@mariozechner/pi-ai";
import type { ExtensionAPI, ExtensionContext } from "@mariozechner/pi-coding-agent";
import { Type } from "@sinclair/typebox";

interface Task {
  id: number;
  text: string;
  done: boolean;
}

export default function (pi: ExtensionAPI) {
  let tasks: Task[] = [];
  const show = (): string => tasks.map((task) => `[${task.done ? "x" : " "}] #${task.id} ${task.text}`).join("\n") || "No tasks";

  pi.registerTool({
    name: "tasks",
    label: "Tasks",
    description: "Keeps a list of tasks: list, add (with text) or toggle (with id).",
    parameters: Type.Object({
      action: StringEnum(["list", "add", "toggle"] as const),
      text: Type.Optional(Type.String({ description: "What is to be done, for add" })),
      id: Type.Optional(Type.Integer({ description: "Number of the task, for toggle" })),
    }),
    async execute(_callId, params) {
      if (params.action === "add") {
        if (!params.text) throw new Error("add needs a text");
        tasks.push({ id: tasks.length + 1, text: params.text, done: false });
      } else if (params.action === "toggle") {
        const task = tasks.find((other) => other.id === params.id);
        if (!task) throw new Error(`there is no task #${params.id}`);
        task.done = !task.done;
      }
      return { content: [{ type: "text", text: show() }], details: { tasks } };
    },
  });

  pi.registerCommand("tasks", {
    description: "Show the model's tasks",
    handler: async (_args, ctx) => ctx.ui.notify(show(), "info"),
  });

  // The list is what the last result on this branch says: it goes back with the conversation.
  const restore = async (_event: unknown, ctx: ExtensionContext) => {
    tasks = [];
    for (const entry of ctx.sessionManager.getBranch()) {
      if (entry.type !== "message" || entry.message.role !== "toolResult") continue;
      if (entry.message.toolName === "tasks") tasks = entry.message.details?.tasks ?? tasks;
    }
  };
  pi.on("session_start", restore);
  pi.on("session_tree", restore);
}
