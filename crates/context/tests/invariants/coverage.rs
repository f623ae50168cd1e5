//! What has occurred: read off the sessions themselves, not off the generator's intentions.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_context::{AgentMode, SnapshotFile, Target};
use hardpan_prompt::{AgentMessage, Body, Part, State, Tier, Volatility};

use crate::session::{Request, Step, key_of};

/// How often each kind of thing has occurred.
#[derive(Clone, Default)]
pub struct Coverage(BTreeMap<String, u64>);

/// Every kind that must occur. Those that start with `target` and `layout` are added by who runs the test.
const KINDS: &str = "
    file: L0, file: L1, file: L2, file: L3, file: active, file: untracked, file: unreadable, file: empty,
    text: backticks, text: CRLF, text: other scripts, text: control characters, symbols: file open,
    symbols: file not open, symbols: active, legend, tree, pages: none, pages: 4 or more, panel,
    panel: chat, panel: ids that become one, panel: odd id, tie in last_refresh_ms, item: tail,
    item: not a panel, said_by: a message, said_by: nobody, history: reasoning only,
    history: empty message, history: call without result, history: result without call,
    history: result before call, history: call id twice, history: message id twice,
    history: invalid call id, history: long call id, history: invalid tool name, history: parallel calls,
    history: calls one by one, history: arguments not an object, history: stored result,
    history: result message, history: failed result, history: blank result, history: two users in a row,
    history: result first, history: assistant first, history: assistant last, history: image by the user,
    history: image in a result, history: nothing but an image, history: more than 100 images,
    history: reasoning signed, history: reasoning unsigned, history: reasoning redacted,
    history: reasoning last, history: by this model, history: by another model,
    history: by nobody knows whom, state: whole, state: tl_dr, state: tl_dr without text, state: detached,
    state: deleted, message: bash, message: bash kept from the model, message: custom, message: compaction,
    message: branch, thinking: on, thinking: off, agent mode: on, agent mode: off, tools: none,
    tools: some, prompt: yes, prompt: no, prompt: image, prompt: id taken, system: blank, request: second,
    request: third, request: fold, request: no fold, request: item changed, request: item added,
    request: item removed, request: file opened, request: messages appended, request: nothing appended,
    request: message deleted, request: prompt became a message, request: model switched,
    request: late result, outcome: current, outcome: diff, outcome: body told, outcome: said,
    outcome: closed, outcome: former copy, outcome: stub, outcome: tail, outcome: tail unchanged,
    outcome: left out, outcome: window full, outcome: too long, outcome: history detached,
    outcome: reasoning sent, outcome: thinking dropped, outcome: no breakpoint, outcome: one breakpoint,
    outcome: two breakpoints, outcome: three breakpoints, outcome: four breakpoints,
    outcome: frontier met again, outcome: prefix kept
";

/// Every kind that must occur, one by one.
pub fn kinds() -> impl Iterator<Item = String> {
    KINDS.split(',').map(|kind| kind.trim().to_owned())
}

impl Coverage {
    pub fn saw(&mut self, kind: &str) {
        match self.0.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(kind.to_owned(), 1)),
        }
    }

    pub fn saw_if(&mut self, condition: bool, kind: &str) {
        if condition {
            self.saw(kind);
        }
    }

    pub fn add(&mut self, other: &Coverage) {
        for (kind, count) in &other.0 {
            *self.0.entry(kind.clone()).or_default() += count;
        }
    }

    pub fn count(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }

    /// What was counted and is in no list: a misspelt kind would never be missed.
    pub fn unknown(&self, known: &BTreeSet<String>) -> Vec<String> {
        self.0.keys().filter(|kind| !known.contains(*kind)).cloned().collect()
    }
}

/// Notes what a request is made of.
pub fn observe(
    seen: &mut Coverage,
    number: usize,
    request: &Request,
    before: Option<&Request>,
    target: &Target,
) {
    let file = &request.file;
    seen.saw(&format!("target: {}", target.model.name()));
    items(seen, file);
    history(seen, &file.messages, target);
    for message in &file.messages {
        state(seen, message);
    }
    seen.saw(if file.thinking.is_some() { "thinking: on" } else { "thinking: off" });
    seen.saw(if file.agent_mode == AgentMode::On { "agent mode: on" } else { "agent mode: off" });
    seen.saw(if file.tools.is_empty() { "tools: none" } else { "tools: some" });
    seen.saw(if file.prompt.is_some() { "prompt: yes" } else { "prompt: no" });
    seen.saw_if(file.prompt.is_some() && !file.images.is_empty(), "prompt: image");
    seen.saw_if(
        prompt_id(file).is_some_and(|id| file.messages.iter().any(|m| *m.id.0 == *id)),
        "prompt: id taken",
    );
    seen.saw_if(file.system.agent.as_ref().is_some_and(|text| text.trim().is_empty()), "system: blank");
    if let Some(before) = before {
        seen.saw(if number == 1 { "request: second" } else { "request: third" });
        seen.saw(if file.fold { "request: fold" } else { "request: no fold" });
        compare(seen, before, request);
    }
}

fn prompt_id(file: &SnapshotFile) -> Option<String> {
    use hardpan_context::PromptEntry;
    file.prompt.as_ref().map(|prompt| match prompt {
        PromptEntry::Text(_) => "prompt".to_owned(),
        PromptEntry::WithId { id, .. } => id.to_string(),
    })
}

fn items(seen: &mut Coverage, file: &SnapshotFile) {
    let mut times = BTreeSet::new();
    for entry in &file.files {
        seen.saw(match (&entry.content, entry.tier) {
            (None, _) => "file: unreadable",
            (_, Some(Tier::L0)) => "file: L0",
            (_, Some(Tier::L1)) => "file: L1",
            (_, Some(Tier::L2)) => "file: L2",
            (_, Some(Tier::L3)) => "file: L3",
            (_, Some(Tier::Active)) => "file: active",
            (_, None) => "file: untracked",
        });
        let text = entry.content.as_deref().unwrap_or("-");
        seen.saw_if(text.is_empty(), "file: empty");
        seen.saw_if(text.contains("```"), "text: backticks");
        seen.saw_if(text.contains("\r\n"), "text: CRLF");
        seen.saw_if(!text.is_ascii(), "text: other scripts");
        seen.saw_if(
            text.contains(|c: char| c.is_control() && !c.is_whitespace()),
            "text: control characters",
        );
        seen.saw_if(!times.insert(entry.last_refresh_ms), "tie in last_refresh_ms");
    }
    for entry in file.symbols.iter().flat_map(|symbols| &symbols.entries) {
        let open = file.files.iter().any(|file| file.path == entry.path && file.content.is_some());
        seen.saw(if open { "symbols: file open" } else { "symbols: file not open" });
        seen.saw_if(entry.tier == Some(Tier::Active), "symbols: active");
    }
    seen.saw_if(file.symbols.as_ref().is_some_and(|symbols| symbols.legend.is_some()), "legend");
    seen.saw_if(file.tree.is_some(), "tree");
    seen.saw_if(file.pages.is_empty(), "pages: none");
    seen.saw_if(file.pages.len() >= 4, "pages: 4 or more");
    let plain = |id: &str| id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    let mut ids = BTreeSet::new();
    for entry in &file.items {
        seen.saw(if entry.key.is_none() { "panel" } else { "item: not a panel" });
        seen.saw_if(&*entry.id == "chat", "panel: chat");
        seen.saw_if(entry.id.is_empty() || plain(&entry.id) != *entry.id, "panel: odd id");
        seen.saw_if(!ids.insert(plain(&entry.id)), "panel: ids that become one");
        seen.saw_if(entry.volatility == Some(Volatility::Tail), "item: tail");
    }
    let said_by = file.files.iter().filter_map(|entry| entry.said_by.as_ref());
    for id in said_by.chain(file.items.iter().filter_map(|entry| entry.said_by.as_ref())) {
        let exists = file.messages.iter().any(|message| message.id == *id);
        seen.saw(if exists { "said_by: a message" } else { "said_by: nobody" });
    }
}

fn parts(message: &AgentMessage) -> &[Part] {
    match &*message.body {
        Body::User { content } | Body::Assistant { content, .. } => content,
        Body::ToolResult { content, .. } | Body::Custom { content, .. } => content,
        _ => &[],
    }
}

fn is_blank(parts: &[Part]) -> bool {
    parts.iter().all(|part| matches!(part, Part::Text { text } if text.trim().is_empty()))
}

fn history(seen: &mut Coverage, messages: &[AgentMessage], target: &Target) {
    let is = |index: usize, test: fn(&Body) -> bool| {
        messages.get(index).is_some_and(|message| test(&message.body))
    };
    let is_result = |body: &Body| matches!(body, Body::ToolResult { .. });
    let is_assistant = |body: &Body| matches!(body, Body::Assistant { .. });
    seen.saw_if(is(0, is_result), "history: result first");
    seen.saw_if(is(0, is_assistant), "history: assistant first");
    seen.saw_if(is(messages.len().wrapping_sub(1), is_assistant), "history: assistant last");
    let (mut calls, mut ids) = (BTreeMap::new(), BTreeSet::new());
    let results: Vec<(usize, &str)> = messages
        .iter()
        .enumerate()
        .filter_map(|(index, message)| match &*message.body {
            Body::ToolResult { call_id, .. } => Some((index, &**call_id)),
            _ => None,
        })
        .collect();
    let mut images = 0;
    for (index, message) in messages.iter().enumerate() {
        seen.saw_if(!ids.insert(&message.id), "history: message id twice");
        seen.saw_if(
            message.is_user() && is(index + 1, |body| matches!(body, Body::User { .. })),
            "history: two users in a row",
        );
        images += parts(message).iter().filter(|part| matches!(part, Part::Image(_))).count();
        match &*message.body {
            Body::User { content } => {
                let image = content.iter().any(|part| matches!(part, Part::Image(_)));
                seen.saw_if(image, "history: image by the user");
                seen.saw_if(image && content.len() == 1, "history: nothing but an image");
            }
            Body::ToolResult { content, is_error, .. } => {
                seen.saw("history: result message");
                seen.saw_if(*is_error, "history: failed result");
                seen.saw_if(!content.is_empty() && is_blank(content), "history: blank result");
                seen.saw_if(
                    content.iter().any(|part| matches!(part, Part::Image(_))),
                    "history: image in a result",
                );
            }
            Body::Assistant { content, provider, model, .. } => {
                let by = (provider.as_deref(), model.as_deref());
                seen.saw(match by {
                    (None, None) => "history: by nobody knows whom",
                    by if by == (Some(&target.provider), Some(&target.model.id)) => "history: by this model",
                    _ => "history: by another model",
                });
                assistant(seen, content);
                let one_call = |body: &Body| matches!(body, Body::Assistant { content, .. } if matches!(content[..], [Part::ToolCall(_)]));
                seen.saw_if(is(index, one_call) && is(index + 1, one_call), "history: calls one by one");
                for call in content
                    .iter()
                    .filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None })
                {
                    seen.saw_if(calls.insert(&*call.id, index).is_some(), "history: call id twice");
                    let answers = results.iter().filter(|(_, id)| *id == &*call.id);
                    let late = answers.clone().any(|(at, _)| *at > index);
                    let early = answers.clone().any(|(at, _)| *at < index);
                    seen.saw_if(call.result.is_none() && !late, "history: call without result");
                    seen.saw_if(early && !late, "history: result before call");
                }
            }
            _ => {}
        }
    }
    seen.saw_if(results.iter().any(|(_, id)| !calls.contains_key(id)), "history: result without call");
    seen.saw_if(images > 100, "history: more than 100 images");
}

fn assistant(seen: &mut Coverage, content: &[Part]) {
    let is_reasoning = |part: &Part| matches!(part, Part::Reasoning { .. });
    seen.saw_if(is_blank(content), "history: empty message");
    seen.saw_if(!content.is_empty() && content.iter().all(is_reasoning), "history: reasoning only");
    seen.saw_if(content.len() > 1 && content.last().is_some_and(is_reasoning), "history: reasoning last");
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let mut calls = 0;
    for part in content {
        match part {
            Part::Reasoning { redacted: Some(_), .. } => seen.saw("history: reasoning redacted"),
            Part::Reasoning { signature, .. } if signature.as_ref().is_some_and(|text| !text.is_empty()) => {
                seen.saw("history: reasoning signed");
            }
            Part::Reasoning { .. } => seen.saw("history: reasoning unsigned"),
            Part::ToolCall(call) => {
                calls += 1;
                seen.saw_if(!plain(&call.id) || call.id.is_empty(), "history: invalid call id");
                seen.saw_if(call.id.len() > 40, "history: long call id");
                seen.saw_if(
                    !plain(&call.name) || call.name.is_empty() || call.name.len() > 64,
                    "history: invalid tool name",
                );
                seen.saw_if(!call.arguments.is_object(), "history: arguments not an object");
                seen.saw_if(call.result.is_some(), "history: stored result");
            }
            Part::Text { .. } | Part::Image(_) => {}
        }
    }
    seen.saw_if(calls > 1, "history: parallel calls");
}

fn state(seen: &mut Coverage, message: &AgentMessage) {
    let short = message.tl_dr.as_ref().is_some_and(|text| !text.trim().is_empty());
    seen.saw(match message.state {
        State::Whole => "state: whole",
        State::TlDr if short => "state: tl_dr",
        State::TlDr => "state: tl_dr without text",
        State::Detached => "state: detached",
        State::Deleted => "state: deleted",
    });
    match &*message.body {
        Body::BashExecution { exclude_from_context: true, .. } => {
            seen.saw("message: bash kept from the model");
        }
        Body::BashExecution { .. } => seen.saw("message: bash"),
        Body::Custom { .. } => seen.saw("message: custom"),
        Body::CompactionSummary { .. } => seen.saw("message: compaction"),
        Body::BranchSummary { .. } => seen.saw("message: branch"),
        Body::User { .. } | Body::Assistant { .. } | Body::ToolResult { .. } => {}
    }
}

fn compare(seen: &mut Coverage, before: &Request, after: &Request) {
    let bodies = |request: &Request| -> BTreeMap<String, String> {
        let files =
            request.file.files.iter().filter_map(|f| Some((f.path.clone(), f.content.as_ref()?.to_string())));
        files.chain(request.file.items.iter().map(|item| (key_of(item), item.content.to_string()))).collect()
    };
    let (old, new) = (bodies(before), bodies(after));
    seen.saw_if(
        new.iter().any(|(key, body)| old.get(key).is_some_and(|old| old != body)),
        "request: item changed",
    );
    seen.saw_if(new.keys().any(|key| !old.contains_key(key)), "request: item added");
    seen.saw_if(old.keys().any(|key| !new.contains_key(key)), "request: item removed");
    let mapped =
        |path: &str| before.file.symbols.iter().flat_map(|s| &s.entries).any(|entry| entry.path == path);
    let opened = |path: &String| !old.contains_key(path) && mapped(path);
    seen.saw_if(
        after.file.files.iter().any(|f| f.content.is_some() && opened(&f.path)),
        "request: file opened",
    );
    let (count, now) = (before.file.messages.len(), after.file.messages.len());
    let kept = usize::from(before.file.prompt.is_some());
    if after.step == Step::Appended {
        seen.saw_if(kept == 1, "request: prompt became a message");
        seen.saw(if now > count + kept { "request: messages appended" } else { "request: nothing appended" });
        let open = |call: &str| {
            let made = |part: &Part| matches!(part, Part::ToolCall(made) if *made.id == *call && made.result.is_none());
            let answered = |message: &AgentMessage| matches!(&*message.body, Body::ToolResult { call_id, .. } if **call_id == *call);
            let messages = &before.file.messages;
            messages.iter().flat_map(parts).any(made) && !messages.iter().any(answered)
        };
        let late = |message: &AgentMessage| matches!(&*message.body, Body::ToolResult { call_id, .. } if open(call_id));
        seen.saw_if(after.file.messages[count..].iter().any(late), "request: late result");
    } else {
        let deleted = |m: &AgentMessage| m.state == State::Deleted;
        let gone =
            |m: &AgentMessage| after.file.messages.iter().all(|other| other.id != m.id || deleted(other));
        seen.saw_if(before.file.messages.iter().any(|m| !deleted(m) && gone(m)), "request: message deleted");
    }
    seen.saw_if(before.target != after.target, "request: model switched");
}
