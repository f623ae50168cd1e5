//! [`Coverage`]: which kinds of cases have occurred, read from the sessions themselves and not from
//! the generator's intentions.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_context::{AgentMode, LostCache, SnapshotFile, Target};
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, MessageState, Tier, Volatility};

use crate::random_session::{Request, Step, key_of};

/// How often each kind of thing has occurred.
#[derive(Clone, Default)]
pub struct Coverage(BTreeMap<String, u64>);

/// Every kind that must occur. Those that start with `target` and `layout` are added by who runs
/// the test.
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
    request: third, request: fold, request: no fold, request: short cache lost,
    request: cache lost, outcome: an hour, outcome: five minutes, outcome: both lifetimes, request: item changed, request: item added,
    request: item removed, request: file opened, request: messages appended, request: nothing appended,
    request: message deleted, request: prompt became a message, request: model switched,
    request: late result, request: tools changed, outcome: tool added, outcome: tools wait,
    outcome: definition waits,
    outcome: tools declared anew,
    outcome: tool removed, outcome: current, outcome: diff, outcome: body told, outcome: said,
    outcome: closed, outcome: former copy, outcome: stub, outcome: tail, outcome: tail unchanged,
    outcome: left out, outcome: window full, outcome: too long, outcome: history detached,
    outcome: reasoning sent, outcome: thinking dropped, outcome: no breakpoint, outcome: one breakpoint,
    outcome: two breakpoints, outcome: three breakpoints, outcome: four breakpoints,
    outcome: frontier met again, outcome: prefix kept,
    outcome: another clock in strata, outcome: another clock in panels, outcome: another clock in tiers, outcome: another clock in inline
";

/// Every kind that must occur, one by one.
pub fn kinds() -> impl Iterator<Item = String> {
    KINDS.split(',').map(|kind| kind.trim().to_owned())
}

impl Coverage {
    pub fn record(&mut self, kind: &str) {
        match self.0.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(kind.to_owned(), 1)),
        }
    }

    pub fn record_if(&mut self, condition: bool, kind: &str) {
        if condition {
            self.record(kind);
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
    coverage: &mut Coverage,
    number: usize,
    request: &Request,
    before: Option<&Request>,
    target: &Target,
) {
    let file = &request.file;
    coverage.record(&format!("target: {}", target.model.name()));
    items(coverage, file);
    history(coverage, &file.messages, target);
    for message in &file.messages {
        state(coverage, message);
    }
    coverage.record(if file.thinking.is_some() { "thinking: on" } else { "thinking: off" });
    coverage.record(if file.agent_mode == AgentMode::On { "agent mode: on" } else { "agent mode: off" });
    coverage.record(if file.tools.is_empty() { "tools: none" } else { "tools: some" });
    coverage.record(if file.prompt.is_some() { "prompt: yes" } else { "prompt: no" });
    coverage.record_if(file.prompt.is_some() && !file.images.is_empty(), "prompt: image");
    coverage.record_if(
        prompt_id(file).is_some_and(|id| file.messages.iter().any(|m| *m.id.0 == *id)),
        "prompt: id taken",
    );
    coverage
        .record_if(file.system.agent.as_ref().is_some_and(|text| text.trim().is_empty()), "system: blank");
    if let Some(before) = before {
        coverage.record(if number == 1 { "request: second" } else { "request: third" });
        coverage.record(if file.fold { "request: fold" } else { "request: no fold" });
        coverage.record_if(file.lost_cache == Some(LostCache::Short), "request: short cache lost");
        coverage.record_if(file.lost_cache == Some(LostCache::All), "request: cache lost");
        compare(coverage, before, request);
    }
}

fn prompt_id(file: &SnapshotFile) -> Option<String> {
    use hardpan_context::PromptEntry;
    file.prompt.as_ref().map(|prompt| match prompt {
        PromptEntry::Text(_) => "prompt".to_owned(),
        PromptEntry::WithId { id, .. } => id.to_string(),
    })
}

fn items(coverage: &mut Coverage, file: &SnapshotFile) {
    let mut times = BTreeSet::new();
    for entry in &file.files {
        coverage.record(match (&entry.content, entry.tier) {
            (None, _) => "file: unreadable",
            (_, Some(Tier::L0)) => "file: L0",
            (_, Some(Tier::L1)) => "file: L1",
            (_, Some(Tier::L2)) => "file: L2",
            (_, Some(Tier::L3)) => "file: L3",
            (_, Some(Tier::Active)) => "file: active",
            (_, None) => "file: untracked",
        });
        let text = entry.content.as_deref().unwrap_or("-");
        coverage.record_if(text.is_empty(), "file: empty");
        coverage.record_if(text.contains("```"), "text: backticks");
        coverage.record_if(text.contains("\r\n"), "text: CRLF");
        coverage.record_if(!text.is_ascii(), "text: other scripts");
        coverage.record_if(
            text.contains(|c: char| c.is_control() && !c.is_whitespace()),
            "text: control characters",
        );
        coverage.record_if(!times.insert(entry.last_refresh_ms), "tie in last_refresh_ms");
    }
    for entry in file.symbols.iter().flat_map(|symbols| &symbols.entries) {
        let open = file.files.iter().any(|file| file.path == entry.path && file.content.is_some());
        coverage.record(if open { "symbols: file open" } else { "symbols: file not open" });
        coverage.record_if(entry.tier == Some(Tier::Active), "symbols: active");
    }
    coverage.record_if(file.symbols.as_ref().is_some_and(|symbols| symbols.legend.is_some()), "legend");
    coverage.record_if(file.tree.is_some(), "tree");
    coverage.record_if(file.pages.is_empty(), "pages: none");
    coverage.record_if(file.pages.len() >= 4, "pages: 4 or more");
    let plain = |id: &str| id.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    let mut ids = BTreeSet::new();
    for entry in &file.items {
        coverage.record(if entry.key.is_none() { "panel" } else { "item: not a panel" });
        coverage.record_if(&*entry.id == "chat", "panel: chat");
        coverage.record_if(entry.id.is_empty() || plain(&entry.id) != *entry.id, "panel: odd id");
        coverage.record_if(!ids.insert(plain(&entry.id)), "panel: ids that become one");
        coverage.record_if(entry.volatility == Some(Volatility::Tail), "item: tail");
    }
    let shown_by = file.files.iter().filter_map(|entry| entry.shown_by.as_ref());
    for id in shown_by.chain(file.items.iter().filter_map(|entry| entry.shown_by.as_ref())) {
        let exists = file.messages.iter().any(|message| message.id == *id);
        coverage.record(if exists { "said_by: a message" } else { "said_by: nobody" });
    }
}

fn parts(message: &AgentMessage) -> &[MessagePart] {
    match &*message.body {
        MessageBody::User { content } | MessageBody::Assistant { content, .. } => content,
        MessageBody::ToolResult { content, .. } | MessageBody::Custom { content, .. } => content,
        _ => &[],
    }
}

fn is_blank(parts: &[MessagePart]) -> bool {
    parts.iter().all(|part| matches!(part, MessagePart::Text { text } if text.trim().is_empty()))
}

fn history(coverage: &mut Coverage, messages: &[AgentMessage], target: &Target) {
    let is = |index: usize, test: fn(&MessageBody) -> bool| {
        messages.get(index).is_some_and(|message| test(&message.body))
    };
    let is_result = |body: &MessageBody| matches!(body, MessageBody::ToolResult { .. });
    let is_assistant = |body: &MessageBody| matches!(body, MessageBody::Assistant { .. });
    coverage.record_if(is(0, is_result), "history: result first");
    coverage.record_if(is(0, is_assistant), "history: assistant first");
    coverage.record_if(is(messages.len().wrapping_sub(1), is_assistant), "history: assistant last");
    let (mut calls, mut ids) = (BTreeMap::new(), BTreeSet::new());
    let results: Vec<(usize, &str)> = messages
        .iter()
        .enumerate()
        .filter_map(|(index, message)| match &*message.body {
            MessageBody::ToolResult { call_id, .. } => Some((index, &**call_id)),
            _ => None,
        })
        .collect();
    let mut images = 0;
    for (index, message) in messages.iter().enumerate() {
        coverage.record_if(!ids.insert(&message.id), "history: message id twice");
        coverage.record_if(
            message.is_user() && is(index + 1, |body| matches!(body, MessageBody::User { .. })),
            "history: two users in a row",
        );
        images += parts(message).iter().filter(|part| matches!(part, MessagePart::Image(_))).count();
        match &*message.body {
            MessageBody::User { content } => {
                let image = content.iter().any(|part| matches!(part, MessagePart::Image(_)));
                coverage.record_if(image, "history: image by the user");
                coverage.record_if(image && content.len() == 1, "history: nothing but an image");
            }
            MessageBody::ToolResult { content, is_error, .. } => {
                coverage.record("history: result message");
                coverage.record_if(*is_error, "history: failed result");
                coverage.record_if(!content.is_empty() && is_blank(content), "history: blank result");
                coverage.record_if(
                    content.iter().any(|part| matches!(part, MessagePart::Image(_))),
                    "history: image in a result",
                );
            }
            MessageBody::Assistant { content, provider, model, .. } => {
                let by = (provider.as_deref(), model.as_deref());
                coverage.record(match by {
                    (None, None) => "history: by nobody knows whom",
                    by if by == (Some(&target.provider), Some(&target.model.id)) => "history: by this model",
                    _ => "history: by another model",
                });
                assistant(coverage, content);
                let one_call = |body: &MessageBody| matches!(body, MessageBody::Assistant { content, .. } if matches!(content[..], [MessagePart::ToolCall(_)]));
                coverage
                    .record_if(is(index, one_call) && is(index + 1, one_call), "history: calls one by one");
                for call in content
                    .iter()
                    .filter_map(|part| if let MessagePart::ToolCall(call) = part { Some(call) } else { None })
                {
                    coverage.record_if(calls.insert(&*call.id, index).is_some(), "history: call id twice");
                    let answers = results.iter().filter(|(_, id)| *id == &*call.id);
                    let late = answers.clone().any(|(at, _)| *at > index);
                    let early = answers.clone().any(|(at, _)| *at < index);
                    coverage.record_if(call.result.is_none() && !late, "history: call without result");
                    coverage.record_if(early && !late, "history: result before call");
                }
            }
            _ => {}
        }
    }
    coverage.record_if(results.iter().any(|(_, id)| !calls.contains_key(id)), "history: result without call");
    coverage.record_if(images > 100, "history: more than 100 images");
}

fn assistant(coverage: &mut Coverage, content: &[MessagePart]) {
    let is_reasoning = |part: &MessagePart| matches!(part, MessagePart::Reasoning { .. });
    coverage.record_if(is_blank(content), "history: empty message");
    coverage.record_if(!content.is_empty() && content.iter().all(is_reasoning), "history: reasoning only");
    coverage
        .record_if(content.len() > 1 && content.last().is_some_and(is_reasoning), "history: reasoning last");
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let mut calls = 0;
    for part in content {
        match part {
            MessagePart::Reasoning { redacted: Some(_), .. } => {
                coverage.record("history: reasoning redacted");
            }
            MessagePart::Reasoning { signature, .. }
                if signature.as_ref().is_some_and(|text| !text.is_empty()) =>
            {
                coverage.record("history: reasoning signed");
            }
            MessagePart::Reasoning { .. } => coverage.record("history: reasoning unsigned"),
            MessagePart::ProviderBlock(_) => coverage.record("history: web search"),
            MessagePart::Sources { .. } => {}
            MessagePart::ToolCall(call) => {
                calls += 1;
                coverage.record_if(!plain(&call.id) || call.id.is_empty(), "history: invalid call id");
                coverage.record_if(call.id.len() > 40, "history: long call id");
                coverage.record_if(
                    !plain(&call.name) || call.name.is_empty() || call.name.len() > 64,
                    "history: invalid tool name",
                );
                coverage.record_if(!call.arguments.is_object(), "history: arguments not an object");
                coverage.record_if(call.result.is_some(), "history: stored result");
            }
            MessagePart::Text { .. } | MessagePart::Image(_) => {}
        }
    }
    coverage.record_if(calls > 1, "history: parallel calls");
}

fn state(coverage: &mut Coverage, message: &AgentMessage) {
    let short = message.tl_dr.as_ref().is_some_and(|text| !text.trim().is_empty());
    coverage.record(match message.state {
        MessageState::Whole => "state: whole",
        MessageState::TlDr if short => "state: tl_dr",
        MessageState::TlDr => "state: tl_dr without text",
        MessageState::Detached => "state: detached",
        MessageState::Deleted => "state: deleted",
    });
    match &*message.body {
        MessageBody::BashExecution { exclude_from_context: true, .. } => {
            coverage.record("message: bash kept from the model");
        }
        MessageBody::BashExecution { .. } => coverage.record("message: bash"),
        MessageBody::Custom { .. } => coverage.record("message: custom"),
        MessageBody::CompactionSummary { .. } => coverage.record("message: compaction"),
        MessageBody::BranchSummary { .. } => coverage.record("message: branch"),
        MessageBody::User { .. } | MessageBody::Assistant { .. } | MessageBody::ToolResult { .. } => {}
    }
}

fn compare(coverage: &mut Coverage, before: &Request, after: &Request) {
    let bodies = |request: &Request| -> BTreeMap<String, String> {
        let files =
            request.file.files.iter().filter_map(|f| Some((f.path.clone(), f.content.as_ref()?.to_string())));
        files.chain(request.file.items.iter().map(|item| (key_of(item), item.content.to_string()))).collect()
    };
    let (old, new) = (bodies(before), bodies(after));
    coverage.record_if(
        new.iter().any(|(key, body)| old.get(key).is_some_and(|old| old != body)),
        "request: item changed",
    );
    coverage.record_if(new.keys().any(|key| !old.contains_key(key)), "request: item added");
    coverage.record_if(old.keys().any(|key| !new.contains_key(key)), "request: item removed");
    let mapped =
        |path: &str| before.file.symbols.iter().flat_map(|s| &s.entries).any(|entry| entry.path == path);
    let opened = |path: &String| !old.contains_key(path) && mapped(path);
    coverage.record_if(
        after.file.files.iter().any(|f| f.content.is_some() && opened(&f.path)),
        "request: file opened",
    );
    let (count, now) = (before.file.messages.len(), after.file.messages.len());
    let kept = usize::from(before.file.prompt.is_some());
    if after.step == Step::Appended {
        coverage.record_if(kept == 1, "request: prompt became a message");
        coverage.record(if now > count + kept {
            "request: messages appended"
        } else {
            "request: nothing appended"
        });
        let open = |call: &str| {
            let made = |part: &MessagePart| matches!(part, MessagePart::ToolCall(made) if *made.id == *call && made.result.is_none());
            let answered = |message: &AgentMessage| matches!(&*message.body, MessageBody::ToolResult { call_id, .. } if **call_id == *call);
            let messages = &before.file.messages;
            messages.iter().flat_map(parts).any(made) && !messages.iter().any(answered)
        };
        let late = |message: &AgentMessage| matches!(&*message.body, MessageBody::ToolResult { call_id, .. } if open(call_id));
        coverage.record_if(after.file.messages[count..].iter().any(late), "request: late result");
    } else {
        let deleted = |m: &AgentMessage| m.state == MessageState::Deleted;
        let gone =
            |m: &AgentMessage| after.file.messages.iter().all(|other| other.id != m.id || deleted(other));
        coverage.record_if(
            before.file.messages.iter().any(|m| !deleted(m) && gone(m)),
            "request: message deleted",
        );
    }
    coverage.record_if(before.target != after.target, "request: model switched");
    coverage.record_if(before.file.tools != after.file.tools, "request: tools changed");
}
