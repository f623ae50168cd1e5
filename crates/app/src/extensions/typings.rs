//! The files of a new extension: a typed skeleton, and the declarations of the whole API.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

/// The declarations, with a mark where the events come.
const TEMPLATE: &str = include_str!("hardpan.d.ts");

const EVENTS_MARK: &str = "/* EVENTS */\n";
const HANDLERS_MARK: &str = "/* HANDLERS */\n";

/// An event for the declarations.
pub struct EventTyping {
    /// Its name.
    pub name: &'static str,
    /// What its payload holds, in TypeScript.
    fields: &'static str,
    /// What a handler may return, in TypeScript.
    reply: &'static str,
}

const fn told(name: &'static str, fields: &'static str) -> EventTyping {
    EventTyping { name, fields, reply: "void" }
}

const fn asked(name: &'static str, fields: &'static str, reply: &'static str) -> EventTyping {
    EventTyping { name, fields, reply }
}

/// All events, as extensions know them. A test compares the fields with those that handlers get.
pub const EVENTS: [EventTyping; 34] = [
    asked(
        "input",
        "text: string; images?: ImagePart[]; source: \"interactive\" | \"rpc\" | \"extension\"",
        "{ action: \"continue\" } | { action: \"transform\"; text: string; images?: ImagePart[] } | { action: \"handled\" }",
    ),
    asked(
        "before_agent_start",
        "prompt: string; images: ImagePart[]; systemPrompt: string; systemPromptOptions: SystemPromptOptions",
        "{ message?: { customType: string; content: string | ContentPart[]; display: boolean; details?: any }; systemPrompt?: string }",
    ),
    asked("context", "messages: Message[]", "{ messages: Message[] }"),
    asked(
        "tool_call",
        "toolName: string; toolCallId: string; input: Record<string, any>",
        "{ block?: boolean; reason?: string }",
    ),
    asked(
        "tool_result",
        "toolName: string; toolCallId: string; input: Record<string, any>; content: ContentPart[]; details?: any; isError: boolean",
        "{ content?: ContentPart[]; details?: any; isError?: boolean }",
    ),
    asked(
        "before_provider_request",
        "payload: any; provider: string; model: string; tokens: number",
        "unknown",
    ),
    asked(
        "session_before_switch",
        "reason: \"new\" | \"resume\"; targetSessionFile?: string",
        "{ cancel?: boolean; reason?: string }",
    ),
    asked(
        "session_before_fork",
        "entryId: string | null; position: \"at\"",
        "{ cancel?: boolean; reason?: string }",
    ),
    asked(
        "session_before_tree",
        "preparation: TreePreparation; signal: AbortSignal",
        "{ cancel?: boolean; reason?: string; summary?: { summary: string; details?: any }; customInstructions?: string; label?: string }",
    ),
    asked(
        "session_before_compact",
        "preparation: CompactionPreparation; branchEntries: SessionEntry[]; customInstructions: string | null; reason: \"manual\" | \"threshold\" | \"overflow\"; willRetry: boolean; signal: AbortSignal",
        "{ cancel?: boolean; reason?: string; compaction?: { summary: string; firstKeptEntryId?: string; tokensBefore?: number; details?: any } }",
    ),
    asked(
        "resources_discover",
        "cwd: string; reason: string",
        "{ skillPaths?: string[]; promptPaths?: string[]; themePaths?: string[] }",
    ),
    asked(
        "user_bash",
        "command: string; cwd: string; excludeFromContext: boolean",
        "{ result?: { output: string; exitCode?: number; [other: string]: any }; operations?: { exec: (...parts: any[]) => Promise<{ exitCode: number | null }> } }",
    ),
    told(
        "session_start",
        "reason: \"startup\" | \"reload\" | \"new\" | \"resume\" | \"fork\"; previousSessionFile?: string",
    ),
    told(
        "session_shutdown",
        "reason: \"quit\" | \"reload\" | \"new\" | \"resume\" | \"fork\"; targetSessionFile?: string",
    ),
    told("session_directory", "cwd: string"),
    told("session_switch", "reason: \"new\" | \"resume\"; previousSessionFile: string"),
    told("session_fork", "previousSessionFile: string"),
    told(
        "session_tree",
        "newLeafId: string; oldLeafId: string | null; summaryEntry: SessionEntry | null; fromExtension: boolean",
    ),
    told(
        "session_compact",
        "compactionEntry: { type: \"compaction\"; id: string | null; summary: string; firstKeptEntryId: string; tokensBefore: number }; fromExtension: boolean",
    ),
    told("agent_start", ""),
    told("agent_end", "messages: Message[]"),
    told("agent_settled", ""),
    told("turn_start", "turnIndex: number; timestamp: number"),
    told("turn_end", "turnIndex: number; message: AssistantMessage; toolResults: ToolResultMessage[]"),
    told("message_start", "message: Message"),
    told("message_update", "message: Message; assistantMessageEvent: AssistantMessageEvent"),
    told("message_end", "message: Message"),
    told("tool_execution_start", "toolCallId: string; toolName: string; args: Record<string, any>"),
    told(
        "tool_execution_update",
        "toolCallId: string; toolName: string; args: Record<string, any>; partialResult: ToolResult",
    ),
    told("tool_execution_end", "toolCallId: string; toolName: string; result: any; isError: boolean"),
    told("model_select", "model: Model; previousModel: Model; source: \"set\""),
    told("after_provider_response", "status: number; headers: Record<string, string>"),
    told("ui_prompt_start", "kind: \"confirm\" | \"select\" | \"input\" | \"editor\"; title: string"),
    told("ui_prompt_end", "answered: boolean"),
];

impl EventTyping {
    /// The names of the fields that its payload may hold, `type` aside.
    pub fn field_names(&self) -> Vec<&'static str> {
        let (mut names, mut depth, mut start) = (Vec::new(), 0_i32, 0);
        for (at, character) in self.fields.char_indices().chain([(self.fields.len(), ';')]) {
            match character {
                '{' | '[' | '(' | '<' => depth += 1,
                '}' | ']' | ')' | '>' => depth -= 1,
                ';' if depth == 0 => {
                    let name = self.fields[start..at].split(':').next().unwrap_or_default();
                    names.extend(Some(name.trim().trim_end_matches('?')).filter(|name| !name.is_empty()));
                    start = at + 1;
                }
                _ => {}
            }
        }
        names
    }
}

/// The declarations of the whole API: `hardpan.d.ts`.
pub fn declarations() -> String {
    let mut events = String::new();
    for EventTyping { name, fields, reply } in EVENTS {
        events.push_str(&format!("    {name}: {{ event: {{ {fields} }}; reply: {reply} }};\n"));
    }
    // One signature for each event: the compiler then knows the literals of a reply.
    let mut handlers = String::new();
    for EventTyping { name, .. } in EVENTS {
        handlers.push_str(&format!("    on(event: \"{name}\", handler: Handler<\"{name}\">): () => void;\n"));
    }
    TEMPLATE.replace(EVENTS_MARK, &events).replace(HANDLERS_MARK, &handlers)
}

/// Why a new extension was not written.
#[derive(Debug, Error)]
pub enum SkeletonError {
    /// The name is no plain name of a folder.
    #[error("{0:?} cannot be the name of an extension: use letters, digits, `-` and `_`")]
    Name(String),
    /// There is such a folder.
    #[error("{} is already there", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("{} cannot be written", path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

const INDEX: &str = r#"import type { ExtensionAPI } from "@mariozechner/pi-coding-agent";
import { Type } from "typebox";

export default function (pi: ExtensionAPI) {
  // Asked before every call of a tool; a reply with `block` stops it.
  pi.on("tool_call", async (event, ctx) => {
    if (event.toolName === "bash" && /\bsudo\b/.test(event.input.command)) {
      const isAllowed = await ctx.ui.confirm("Run it as root?", event.input.command);
      if (!isAllowed) return { block: true, reason: "The user does not want sudo" };
    }
  });

  // A tool that the model can call. It costs the tokens of its description in every request.
  pi.registerTool<{ text: string }>({
    name: "NAME_count",
    label: "Count",
    description: "Counts the words of a text.",
    parameters: Type.Object({ text: Type.String({ description: "The text" }) }),
    async execute(_toolCallId, { text }) {
      const words = text.split(/\s+/).filter(Boolean).length;
      return { content: [{ type: "text", text: `${words} words` }] };
    },
  });

  // A command that you type: /NAME
  pi.registerCommand("NAME", {
    description: "Says hello",
    handler: async (args, ctx) => ctx.ui.notify(`Hello ${args || "there"}`),
  });
}
"#;

const MANIFEST: &str = r#"{
  "name": "NAME",
  "version": "0.1.0",
  "type": "module",
  "keywords": ["pi-package"],
  "pi": { "extensions": ["./index.ts"] },
  "hardpan": { "permissions": { "network": [], "exec": [], "env": [] } }
}
"#;

const COMPILER_OPTIONS: &str = r#"{
  "compilerOptions": {
    "target": "ES2023",
    "lib": ["ES2023", "DOM", "DOM.Iterable"],
    "module": "ESNext",
    "moduleResolution": "Bundler",
    "strict": true,
    "noEmit": true,
    "skipLibCheck": false,
    "types": []
  },
  "include": ["*.ts"]
}
"#;

/// Writes a new extension into a folder of this name. Returns the folder.
pub fn write_skeleton(parent: &Path, name: &str) -> Result<PathBuf, SkeletonError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
        return Err(SkeletonError::Name(name.to_owned()));
    }
    let folder = parent.join(name);
    if folder.exists() {
        return Err(SkeletonError::Exists(folder));
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| SkeletonError::NotWritten { path, source }
    };
    fs::create_dir_all(&folder).map_err(failed(&folder))?;
    let index =
        INDEX.replace("NAME_count", &format!("{}_count", name.replace('-', "_"))).replace("NAME", name);
    let files = [
        ("index.ts", index),
        ("package.json", MANIFEST.replace("NAME", name)),
        ("tsconfig.json", COMPILER_OPTIONS.to_owned()),
        ("hardpan.d.ts", declarations()),
    ];
    for (file, text) in files {
        let path = folder.join(file);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_declaration_once() {
        let text = declarations();
        assert!(!text.contains("EVENTS") && !text.contains("HANDLERS"));
        for event in EVENTS {
            assert_eq!(text.matches(&format!("    {}: {{ event:", event.name)).count(), 1, "{}", event.name);
        }
    }

    #[test]
    fn fields_of_nested_types_are_not_fields_of_the_event() {
        let compact = EVENTS.iter().find(|event| event.name == "session_compact").unwrap();
        assert_eq!(compact.field_names(), ["compactionEntry", "fromExtension"]);
        let start = EVENTS.iter().find(|event| event.name == "session_start").unwrap();
        assert_eq!(start.field_names(), ["reason", "previousSessionFile"]);
    }

    #[test]
    fn a_skeleton_is_not_written_over_anything() {
        let folder = tempfile::tempdir().unwrap();
        write_skeleton(folder.path(), "greeter").unwrap();
        assert!(matches!(write_skeleton(folder.path(), "greeter"), Err(SkeletonError::Exists(_))));
        for name in ["", "../up", "a b", "-x"] {
            assert!(matches!(write_skeleton(folder.path(), name), Err(SkeletonError::Name(_))), "{name}");
        }
    }
}
