//! Reads the sessions of Codex: `~/.codex/sessions/*/*/*/rollout-*.jsonl`.
//!
//! Lines are `{timestamp, type, payload}`. The items of an answer come first, then a `token_count`
//! with its usage, which can be repeated: every change of the total is a request.

use hardpan_prompt::{Image, TokenUsage};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_economy::cache::Moment;
use serde_json::Value;

use super::file_action::FileAction;
use super::json_fields::JsonFields;
use super::request_shape::EFFORT;
use super::{
    AnswerStatus, BilledRequest, EntryContent, ImportError, RecordedCall, RecordedPart, RecordedResult,
    Recording, RecordingFormat, RequestShape, ShapePart, SourceAgent, Speaker, read_lines,
};

pub(super) const FORMAT: RecordingFormat = RecordingFormat { agent: SourceAgent::Codex, recognizes, read };

fn recognizes(kind: &str, line: &Value) -> bool {
    let kinds = ["session_meta", "response_item", "turn_context", "event_msg", "world_state"];
    kinds.contains(&kind) && line.get("payload").is_some()
}

fn read(recording: &mut Recording, bytes: &[u8]) -> Result<(), ImportError> {
    let mut lines: Vec<(u64, usize, Value)> = Vec::new();
    read_lines(recording, bytes, |_, number, line| {
        let last = lines.last().map_or(0, |(ordinal, ..)| *ordinal);
        let ordinal = line.get("ordinal").and_then(Value::as_u64).unwrap_or(last);
        lines.push((ordinal, number, line));
    });
    // Newer versions number their lines, and need not write them in that order.
    let ordinals: BTreeSet<u64> = lines.iter().map(|(ordinal, ..)| *ordinal).collect();
    if ordinals.len() == lines.len() {
        lines.sort_by_key(|(ordinal, ..)| *ordinal);
    }
    let mut reader = CodexReader::default();
    lines.iter().for_each(|(_, number, line)| reader.read_line(recording, *number, line));
    Ok(())
}

#[derive(Default)]
struct CodexReader {
    provider: Option<Arc<str>>,
    model: Arc<str>,
    effort: Option<Arc<str>>,
    tools: Option<Arc<[ShapePart]>>,
    system: Option<Arc<[ShapePart]>>,
    settings: BTreeMap<&'static str, String>,
    /// The shape of the next request, until something of it changes.
    shape: Option<Arc<RequestShape>>,
    last: Option<usize>,
    /// The entry of the answer that further items are added to.
    open: Option<usize>,
    /// The entry of the last answer, until its usage has come.
    unbilled: Option<usize>,
    total: Option<Value>,
}

impl CodexReader {
    fn read_line(&mut self, recording: &mut Recording, number: usize, line: &Value) {
        let at = line.moment("timestamp");
        let Some(payload) = line.get("payload") else {
            return recording.report_problem(number, "left out: it has no `payload`");
        };
        match line.str("type") {
            Some("session_meta") => {
                recording.id = payload.str("id").map(Into::into);
                recording.cwd = payload.str("cwd").map(Into::into);
                self.provider = payload.str("model_provider").map(Into::into);
                if let Some(text) = payload.get("base_instructions").and_then(|told| told.get("text")) {
                    self.system = Some([ShapePart::new("base instructions", text)].into());
                }
                self.shape = None;
            }
            Some("turn_context") => self.read_turn_context(payload),
            Some("world_state") => self.read_world_state(payload),
            Some("response_item") => self.read_item(recording, number, payload, at),
            Some("compacted") => self.read_compaction(recording, number, payload, at),
            Some("event_msg") => self.read_event(recording, number, payload, at),
            _ => {}
        }
    }

    fn read_turn_context(&mut self, payload: &Value) {
        self.model = payload.str("model").map_or_else(|| self.model.clone(), Into::into);
        let settings = payload.get("collaboration_mode").and_then(|mode| mode.get("settings"));
        let effort = payload.str("effort").or_else(|| settings?.str("reasoning_effort"));
        self.effort = effort.map(Into::into);
        let told = [
            (EFFORT, effort),
            ("service tier", payload.str("service_tier")),
            ("verbosity", payload.str("verbosity")),
        ];
        self.settings =
            told.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))).collect();
        self.shape = None;
    }

    /// The state of the workspace and the tools; one that is not `full` has only what changed.
    fn read_world_state(&mut self, payload: &Value) {
        let tools = payload.get("state").and_then(|state| state.get("top_level_tools")?.as_object());
        let Some(tools) = tools else { return };
        let mut parts: BTreeMap<Arc<str>, ShapePart> = BTreeMap::new();
        if !payload.is("full") {
            let known = self.tools.iter().flat_map(|tools| tools.iter());
            parts.extend(known.map(|part| (part.name.clone(), part.clone())));
        }
        for (name, hash) in tools {
            let name: Arc<str> = name.as_str().into();
            match hash {
                Value::Null => _ = parts.remove(&name),
                hash => _ = parts.insert(name.clone(), ShapePart::new(name, hash)),
            }
        }
        self.tools = Some(parts.into_values().collect());
        self.shape = None;
    }

    fn push_entry(
        &mut self,
        recording: &mut Recording,
        number: usize,
        at: Option<Moment>,
        content: EntryContent,
    ) -> usize {
        let entry = recording.add_entry(number, self.last, at, content);
        self.last = Some(entry);
        self.open = None;
        entry
    }

    /// A compaction, and what Codex tells its model again after it. The history that takes the place of the
    /// conversation has the summary as its last message, after what the user had said.
    fn read_compaction(
        &mut self,
        recording: &mut Recording,
        number: usize,
        payload: &Value,
        at: Option<Moment>,
    ) {
        let mut said: Vec<Arc<str>> = Vec::new();
        let mut told = String::new();
        for item in payload.list("replacement_history") {
            match recorded_parts(item) {
                Some((Speaker::User | Speaker::Assistant, parts)) if item.str("type") == Some("message") => {
                    said.extend(parts.into_iter().filter_map(|part| match part {
                        RecordedPart::Text(text) => Some(text),
                        _ => None,
                    }));
                }
                _ => told.push_str(&item.to_string()),
            }
        }
        if let Some(message) = payload.str("message")
            && !said.iter().any(|text| text.contains(message))
        {
            said.push(message.into());
        }
        let content = EntryContent::Compaction { summary: said.join("\n\n").into(), kept: None };
        self.push_entry(recording, number, at, content);
        if !told.is_empty() {
            let parts = vec![RecordedPart::Text(told.into())];
            self.push_entry(recording, number, at, EntryContent::Message { speaker: Speaker::Agent, parts });
        }
    }

    fn read_item(&mut self, recording: &mut Recording, number: usize, item: &Value, at: Option<Moment>) {
        let Some((speaker, parts)) = recorded_parts(item) else { return };
        if speaker != Speaker::Assistant {
            self.push_entry(recording, number, at, EntryContent::Message { speaker, parts });
            return;
        }
        if let Some(open) = self.open
            && let EntryContent::Message { parts: all, .. } = &mut recording.entries[open].content
        {
            all.extend(parts);
            recording.entries[open].at = at.or(recording.entries[open].at);
            return;
        }
        let entry = self.push_entry(recording, number, at, EntryContent::Message { speaker, parts });
        self.open = Some(entry);
        self.unbilled = Some(entry);
    }

    fn read_event(&mut self, recording: &mut Recording, number: usize, event: &Value, at: Option<Moment>) {
        match event.str("type") {
            Some("token_count") => {
                let Some(info) = event.get("info") else { return };
                let total = info.get("total_token_usage").cloned();
                if total.is_none() || total == self.total {
                    return;
                }
                let before = std::mem::replace(&mut self.total, total);
                let used = match info.get("last_token_usage") {
                    Some(last) => parse_usage(last),
                    None => usage_since(before.as_ref(), self.total.as_ref()),
                };
                self.add_request(recording, number, used, at);
            }
            Some("turn_aborted") => {
                if let Some(request) = recording.requests.last_mut() {
                    request.status = AnswerStatus::Aborted;
                }
            }
            _ => {}
        }
    }

    fn add_request(&mut self, recording: &mut Recording, line: usize, usage: TokenUsage, at: Option<Moment>) {
        let answer = self.unbilled.take();
        self.open = None;
        if usage.prompt() == 0 {
            return;
        }
        let leaf = answer.map_or(self.last, |answer| recording.entries[answer].parent);
        let ended = answer.and_then(|answer| recording.entries[answer].at).or(at).unwrap_or_default();
        let current = || {
            let (tools, system, settings) = (self.tools.clone(), self.system.clone(), self.settings.clone());
            Arc::new(RequestShape { tools, system, settings, ..RequestShape::default() })
        };
        let shape = self.shape.take().unwrap_or_else(current);
        self.shape = Some(shape.clone());
        // The start is not recorded; assume it was sent right after the previous entry.
        let previous_time = leaf.and_then(|leaf| recording.entries[leaf].at);
        recording.requests.push(BilledRequest {
            started: previous_time.unwrap_or(ended).min(ended),
            ended,
            provider: self.provider.clone(),
            model: self.model.clone(),
            usage,
            thinking: self.effort.clone(),
            status: AnswerStatus::Complete,
            leaf,
            answer,
            compacted: false,
            thread: 0,
            is_standalone: false,
            shape: Some(shape),
            factor: None,
            items: Arc::default(),
            verdict: None,
            line,
        });
    }
}

/// The usage in our terms: Codex's `input_tokens` include what was read from and written to the
/// cache.
fn parse_usage(usage: &Value) -> TokenUsage {
    let (read, write) = (usage.count("cached_input_tokens"), usage.count("cache_write_input_tokens"));
    TokenUsage {
        input: usage.count("input_tokens").saturating_sub(read + write),
        cache_read: read,
        cache_write_5m: write,
        output: usage.count("output_tokens"),
        ..TokenUsage::default()
    }
}

fn usage_since(before: Option<&Value>, total: Option<&Value>) -> TokenUsage {
    let [before, total] = [before, total].map(|totals| totals.map(parse_usage).unwrap_or_default());
    total.saturating_sub(&before)
}

fn recorded_parts(item: &Value) -> Option<(Speaker, Vec<RecordedPart>)> {
    let id = || Arc::<str>::from(item.str("call_id").unwrap_or_default());
    Some(match item.str("type")? {
        "message" => {
            let parts: Vec<RecordedPart> = item.list("content").iter().filter_map(convert_block).collect();
            let speaker = match item.str("role") {
                Some("assistant") => Speaker::Assistant,
                Some("developer" | "system") => Speaker::Agent,
                _ if describes_workplace(&parts) => Speaker::Agent,
                _ => Speaker::User,
            };
            (speaker, parts)
        }
        "reasoning" => {
            let text = item.str("encrypted_content").map_or_else(|| reasoning_summary(item), Into::into);
            (Speaker::Assistant, vec![RecordedPart::Reasoning(text)])
        }
        "function_call" => {
            let (tool, raw) =
                (item.str("name").unwrap_or_default(), item.str("arguments").unwrap_or_default());
            let arguments = serde_json::from_str(raw).unwrap_or(Value::Null);
            (Speaker::Assistant, vec![call_part(id(), tool, raw, FileAction::from_call(tool, &arguments))])
        }
        "custom_tool_call" => {
            let (tool, raw) = (item.str("name").unwrap_or_default(), item.str("input").unwrap_or_default());
            let action = if tool == "apply_patch" {
                FileAction::Patch { patch: raw.into() }
            } else {
                FileAction::Other
            };
            (Speaker::Assistant, vec![call_part(id(), tool, raw, action)])
        }
        "local_shell_call" => {
            let action = item.get("action").unwrap_or(&Value::Null);
            (
                Speaker::Assistant,
                vec![call_part(
                    id(),
                    "local_shell",
                    &action.to_string(),
                    FileAction::from_call("local_shell", action),
                )],
            )
        }
        // Tools that are declared within the conversation: appended, they leave the prefix as it is.
        "additional_tools" => {
            let tools: String = item.list("tools").iter().map(ToString::to_string).collect();
            (Speaker::Agent, vec![RecordedPart::Text(tools.into())])
        }
        "function_call_output" | "custom_tool_call_output" => (
            Speaker::Tool,
            vec![RecordedPart::Result(convert_result(&id(), item.get("output").unwrap_or(&Value::Null)))],
        ),
        _ => return None,
    })
}

/// How messages begin that Codex writes in the user's name, about the folder and its instructions. Hardpan
/// tells both itself.
const WORKPLACE: [&str; 4] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions for ",
    "<permissions instructions>",
];

fn describes_workplace(parts: &[RecordedPart]) -> bool {
    let is_one = |part: &RecordedPart| match part {
        RecordedPart::Text(text) => WORKPLACE.iter().any(|start| text.trim_start().starts_with(start)),
        _ => false,
    };
    !parts.is_empty() && parts.iter().all(is_one)
}

fn call_part(id: Arc<str>, tool: &str, arguments: &str, action: FileAction) -> RecordedPart {
    RecordedPart::Call(RecordedCall { id, tool: tool.into(), arguments: arguments.into(), action })
}

fn convert_block(block: &Value) -> Option<RecordedPart> {
    match block.str("type")? {
        "input_text" | "output_text" | "text" => Some(RecordedPart::Text(block.str("text")?.into())),
        "input_image" => Some(RecordedPart::image(block.str("image_url"))),
        _ => None,
    }
}

fn reasoning_summary(item: &Value) -> Arc<str> {
    item.list("summary").iter().filter_map(|part| part.str("text")).collect::<Vec<_>>().join("\n").into()
}

/// The result of a call. Codex writes it as a text, as a list of parts, as an object around a text,
/// or as such an object in a string.
fn convert_result(call: &Arc<str>, output: &Value) -> RecordedResult {
    let whole = |value: &Value| -> Option<RecordedResult> {
        let text = value.str("output").or_else(|| value.str("content"))?;
        let exit = value.get("metadata").map_or(0, |metadata| metadata.count("exit_code"));
        let refused = value.get("success").and_then(Value::as_bool) == Some(false);
        Some(RecordedResult {
            call: call.clone(),
            text: text.into(),
            images: Vec::new(),
            failed: exit != 0 || refused,
        })
    };
    let plain = |text: &str, images: Vec<Option<Image>>| {
        let code = text.strip_prefix("Exit code: ").and_then(|rest| rest.lines().next());
        RecordedResult {
            call: call.clone(),
            text: text.into(),
            images,
            failed: code.is_some_and(|code| code.trim() != "0"),
        }
    };
    match output {
        Value::String(text) if text.starts_with('{') => {
            let parsed = serde_json::from_str::<Value>(text).ok();
            parsed.as_ref().and_then(whole).unwrap_or_else(|| plain(text, Vec::new()))
        }
        Value::String(text) => plain(text, Vec::new()),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.str("text")).collect();
            let images = parts.iter().filter(|part| part.str("type") == Some("input_image"));
            let images = images.map(|part| RecordedPart::usable_image(part.str("image_url"))).collect();
            plain(&texts.join("\n"), images)
        }
        value => whole(value).unwrap_or_else(|| plain("", Vec::new())),
    }
}
