//! [`Conversion`]: converts the stored conversation message by message.

use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, Call, Content, Image, Json, MessageBody, MessageId, MessagePart, MessageState, Omission,
    OmissionKey, OmissionReason, Origin, ProviderBlockKind, Reasoning, ResultPart, Role, Segment,
    SharedContent, Text, ToolCall, ToolOutcome, ToolResult, begins_exchange,
};
use rustc_hash::FxHashSet;

use super::pairing::{CallAnswer, CallPairing};
use super::searches::{cited_pieces, is_complete, provider_content, push_cited_text};
use super::{ConvertedHistory, ConvertedMessage, ExchangeMerging, ToolCallHandling};
use crate::layout::{LayoutInput, LayoutName};
use crate::texts::fill_template;

/// A conversion in progress.
pub(super) struct Conversion<'a> {
    pub input: &'a LayoutInput<'a>,
    pub messages: &'a [AgentMessage],
    pub calls: ToolCallHandling,
    pub exchanges: ExchangeMerging,
    /// The position of the message being converted.
    pub index: usize,
    pub pairing: CallPairing<'a>,
    pub used_ids: FxHashSet<Arc<str>>,
    /// The used ids of messages that are not settled yet.
    pub new_ids: Vec<Arc<str>>,
    /// Whether the next message of the model continues the last one: parallel calls may have been
    /// stored in a message each.
    pub continues_message: bool,
    pub history: ConvertedHistory,
}

impl Conversion<'_> {
    /// Converts the message at `index`. The caller has checked that its state lets it be sent.
    pub(super) fn convert_message(&mut self, index: usize) {
        self.index = index;
        let message = &self.messages[index];
        let phrases = &self.input.texts.phrases.history;
        let contents = match &*message.body {
            MessageBody::User { content } | MessageBody::Custom { content, .. } => {
                self.convert_parts(message, content)
            }
            MessageBody::BashExecution { exclude_from_context: true, .. } => {
                self.leave_out(message, OmissionReason::HiddenCommand);
                return;
            }
            MessageBody::BashExecution { command, output, exit_code, .. } => {
                let code = exit_code.map(|code| code.to_string());
                let text = self.input.render_cache.get_or_render(
                    "bash",
                    &[command, code.as_deref().unwrap_or("-")],
                    output.hash(),
                    || {
                        let mut text = fill_template(
                            &phrases.bash,
                            &[("command", command), ("output", output.trim_end())],
                        );
                        match code.as_deref() {
                            Some("0") => {}
                            Some(code) => {
                                text.push_str(&fill_template(&phrases.bash_failed, &[("code", code)]));
                            }
                            None => text.push_str(&phrases.bash_killed),
                        }
                        text
                    },
                );
                vec![text_content(summary_text(message).cloned().unwrap_or(text), message)]
            }
            MessageBody::CompactionSummary { summary } => {
                self.convert_summary(message, "compaction", &phrases.compaction_summary, summary)
            }
            MessageBody::BranchSummary { summary } => {
                self.convert_summary(message, "branch", &phrases.branch_summary, summary)
            }
            MessageBody::Assistant { content, provider, model, .. } => {
                let ours = self.is_from_target(provider.as_deref(), model.as_deref());
                self.convert_assistant(message, content, ours);
                return;
            }
            MessageBody::ToolResult { .. } => return, // sent with its call
        };
        self.push_message(Role::User, vec![message.id.clone()], contents);
    }

    fn push_message(&mut self, role: Role, ids: Vec<MessageId>, contents: Vec<Content>) {
        if !contents.is_empty() {
            let contents = contents.into_iter().map(SharedContent::from).collect();
            self.history.messages.push(Arc::new(ConvertedMessage { role, ids, contents, first: self.index }));
        }
    }

    fn leave_out(&mut self, message: &AgentMessage, reason: OmissionReason) {
        self.history.left_out.push(Omission::of_message(&message.id, reason));
    }

    fn convert_summary(
        &self,
        message: &AgentMessage,
        form: &'static str,
        phrase: &str,
        summary: &Text,
    ) -> Vec<Content> {
        let fill_template = || fill_template(phrase, &[("summary", summary.trim())]);
        let text = self.input.render_cache.get_or_render(form, &[], summary.hash(), fill_template);
        vec![text_content(summary_text(message).cloned().unwrap_or(text), message)]
    }

    /// Converts text and images; a summary replaces all text.
    fn convert_parts(&mut self, message: &AgentMessage, parts: &[MessagePart]) -> Vec<Content> {
        let mut contents = Vec::new();
        contents.extend(summary_text(message).map(|short| text_content(short.clone(), message)));
        for part in parts {
            match part {
                MessagePart::Text { text } if summary_text(message).is_none() && !text.trim().is_empty() => {
                    contents.push(text_content(text.clone(), message));
                }
                MessagePart::Image(image) if self.can_send_image(image, message) => {
                    contents.push(Content::Image(image.clone(), Origin::message(&message.id)));
                }
                MessagePart::Text { .. }
                | MessagePart::Image(_)
                | MessagePart::Reasoning { .. }
                | MessagePart::ToolCall(_)
                | MessagePart::ProviderBlock(_)
                | MessagePart::Sources { .. } => {}
            }
        }
        contents
    }

    /// Whether an image can be sent; one that no provider takes is listed as left out.
    fn can_send_image(&mut self, image: &Image, message: &AgentMessage) -> bool {
        let refused = image.check().err();
        let can_send = refused.is_none();
        refused.into_iter().for_each(|error| self.leave_out(message, OmissionReason::ImageRefused(error)));
        can_send
    }

    fn convert_assistant(&mut self, message: &AgentMessage, parts: &[MessagePart], ours: bool) {
        let mut contents = Vec::new();
        let mut results = Vec::new();
        let mut result_ids = Vec::new();
        let (mut foreign_reasoning, mut stale_reasoning, mut foreign_search) = (false, false, false);
        contents.extend(summary_text(message).map(|short| text_content(short.clone(), message)));
        for (index, part) in parts.iter().enumerate() {
            match part {
                MessagePart::Text { text } if summary_text(message).is_none() && !text.trim().is_empty() => {
                    let can_cite = ours && self.can_send_searches(message);
                    let cited = if can_cite { cited_pieces(&parts[index + 1..]) } else { Vec::new() };
                    push_cited_text(text, &cited, message, &mut contents);
                }
                MessagePart::Text { .. } | MessagePart::Image(_) => {}
                MessagePart::Reasoning { text, signature, redacted } => {
                    // An empty proof is none: it would be sent, and refused.
                    let proof = |proof: &Option<Arc<str>>| proof.clone().filter(|proof| !proof.is_empty());
                    let is_detached = self.input.target.profile.protocol.traits().detached_signatures;
                    let reasoning = Reasoning {
                        text: if is_detached { Text::default() } else { text.clone() },
                        signature: proof(signature),
                        redacted: proof(redacted),
                        origin: Origin::message(&message.id),
                    };
                    if self.input.snapshot.stale_reasoning.contains(&message.id) {
                        stale_reasoning = true;
                    } else if ours && self.can_send_reasoning(&reasoning) {
                        contents.push(Content::Reasoning(reasoning));
                    } else if !(ours && is_detached) {
                        foreign_reasoning = true;
                    }
                }
                MessagePart::ToolCall(call) if self.calls == ToolCallHandling::Keep => {
                    let Some(answer) = self.pairing.find_answer(self.index, call) else {
                        self.drop_detached_signature(&mut contents);
                        let key = OmissionKey::Call(call.id.clone());
                        self.history
                            .left_out
                            .push(Omission { key, reason: OmissionReason::CallWithoutResult });
                        continue;
                    };
                    let id = self.unique_call_id(&call.id);
                    contents.push(Content::Call(Call {
                        id: id.clone(),
                        name: valid_tool_name(&call.name),
                        arguments: arguments_as_object(call),
                        origin: Origin::message(&message.id),
                    }));
                    if let Some(id) = answer.message().map(|message| message.id.clone()) {
                        result_ids.push(id);
                    }
                    results.push(Content::Result(self.convert_result(id, &answer, message)));
                }
                MessagePart::ToolCall(_) => self.drop_detached_signature(&mut contents),
                MessagePart::ProviderBlock(block) => match block.kind {
                    ProviderBlockKind::CitedText { .. } => {} // with its text
                    _ if ours
                        && self.can_send_searches(message)
                        && is_complete(block, self.messages, self.index) =>
                    {
                        contents.push(provider_content(block, None, message));
                    }
                    _ => foreign_search = true,
                },
                MessagePart::Sources { .. } => {} // for the person
            }
        }
        if foreign_search {
            self.leave_out(message, OmissionReason::ForeignSearch);
        }
        if stale_reasoning {
            self.leave_out(message, OmissionReason::StaleReasoning);
        }
        if foreign_reasoning {
            self.leave_out(message, OmissionReason::ForeignReasoning);
        }
        // Reasoning by itself is not a message, and no message may end with it, unless signatures
        // stand apart.
        let is_reasoning = |content: &Content| matches!(content, Content::Reasoning(_));
        let led_to = contents.iter().rposition(|content| !is_reasoning(content));
        let is_detached = self.input.target.profile.protocol.traits().detached_signatures;
        let end = match led_to {
            Some(_) if is_detached => contents.len(),
            Some(last) => last + 1,
            None => 0,
        };
        if end < contents.len() {
            contents.truncate(end);
            self.leave_out(message, OmissionReason::ReasoningAtEnd);
        }
        if contents.is_empty() {
            return;
        }
        if result_ids.is_empty() {
            result_ids.push(message.id.clone());
        }
        self.push_tool_round(message.id.clone(), contents, result_ids, results);
        self.continues_message = continues_message(parts);
    }

    /// Adds a message of the model and the results of its calls. If it continues the message
    /// before, it is merged into that one, so that parallel calls stand side by side.
    fn push_tool_round(
        &mut self,
        id: MessageId,
        calls: Vec<Content>,
        ids: Vec<MessageId>,
        results: Vec<Content>,
    ) {
        let apart = |first: usize| {
            self.exchanges == ExchangeMerging::Separate
                && (first + 1..=self.index).any(|at| begins_exchange(self.messages, at))
        };
        let messages = &mut self.history.messages;
        let answered = messages.last().is_some_and(|last| last.role == Role::User);
        let before = messages.len().checked_sub(if answered { 2 } else { 1 }).filter(|at| {
            self.continues_message && messages[*at].role == Role::Assistant && !apart(messages[*at].first)
        });
        let Some(at) = before else {
            self.push_message(Role::Assistant, vec![id], calls);
            return self.push_message(Role::User, ids, results);
        };
        let model = Arc::make_mut(&mut messages[at]);
        model.ids.push(id);
        model.contents.extend(calls.into_iter().map(SharedContent::from));
        match messages.get_mut(at + 1) {
            Some(earlier) if !results.is_empty() => {
                let earlier = Arc::make_mut(earlier);
                earlier.ids.extend(ids);
                earlier.contents.extend(results.into_iter().map(SharedContent::from));
            }
            Some(_) => {}
            None => self.push_message(Role::User, ids, results),
        }
    }

    fn convert_result(
        &mut self,
        call_id: Arc<str>,
        answer: &CallAnswer<'_>,
        call: &AgentMessage,
    ) -> ToolResult {
        let message = answer.message().unwrap_or(call);
        let origin = Origin::message(&message.id);
        let segment = |text: &Text| Segment { text: text.clone(), origin: origin.clone() };
        let mut parts: Vec<ResultPart> = Vec::new();
        let summary = answer.message().and_then(summary_text);
        let texts: Vec<&Text> = match summary {
            Some(summary) => vec![summary],
            None => {
                answer.parts().iter().filter_map(part_text).filter(|text| !text.trim().is_empty()).collect()
            }
        };
        if !texts.is_empty() {
            let newline = || Segment::new("\n", origin.clone());
            let segments = texts
                .iter()
                .enumerate()
                .flat_map(|(index, text)| (index > 0).then(newline).into_iter().chain([segment(text)]));
            parts.push(ResultPart::Text(segments.collect()));
        }
        parts.extend(answer.parts().iter().filter_map(|part| match part {
            MessagePart::Image(image) if self.can_send_image(image, message) => {
                Some(ResultPart::Image(image.clone()))
            }
            _ => None,
        }));
        if parts.is_empty() {
            parts.push(ResultPart::Text(vec![segment(&self.input.texts.phrases.history.no_output)]));
        }
        let outcome = if answer.is_error() { ToolOutcome::Failed } else { ToolOutcome::Done };
        ToolResult { call_id, parts, outcome, origin }
    }

    fn is_from_target(&self, provider: Option<&str>, model: Option<&str>) -> bool {
        let target = self.input.target;
        provider.is_none_or(|provider| provider == target.provider)
            && model.is_none_or(|model| model == target.model.id)
    }

    fn can_send_reasoning(&self, reasoning: &Reasoning) -> bool {
        let traits = self.input.target.profile.protocol.traits();
        if traits.signed_reasoning {
            reasoning.signature.is_some() || (reasoning.redacted.is_some() && !traits.detached_signatures)
        } else {
            self.input.target.profile.reasoning_field.name().is_some() && !reasoning.text.is_empty()
        }
    }

    /// Whether the web searches of a message can go back to the model that made them: if searches are
    /// asked for, and nothing else of the message is left out.
    fn can_send_searches(&self, message: &AgentMessage) -> bool {
        let is_stale = self.input.snapshot.stale_reasoning.contains(&message.id);
        self.input.web_search().is_some() && summary_text(message).is_none() && !is_stale
    }

    /// Drops the signature of a call that is not sent: it would go to the part after the call.
    fn drop_detached_signature(&self, contents: &mut Vec<Content>) {
        if self.input.target.profile.protocol.traits().detached_signatures {
            contents.pop_if(|last| matches!(last, Content::Reasoning(_)));
        }
    }

    /// A call id that the strictest provider accepts and that no other call has.
    fn unique_call_id(&mut self, id: &str) -> Arc<str> {
        let mut valid: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
            .collect();
        let mut layouts = LayoutName::ALL.into_iter().map(LayoutName::layout);
        let is_layouts_own =
            layouts.any(|layout| layout.own_call_prefix().is_some_and(|prefix| valid.starts_with(prefix)));
        if valid.is_empty() || is_layouts_own {
            valid.insert_str(0, "call_");
        }
        let id = unique_id(&valid, &mut self.used_ids);
        self.new_ids.push(id.clone());
        id
    }

    /// Lists results that answer no call as left out.
    pub(super) fn list_orphans(&mut self, orphans: &[usize]) {
        if self.calls == ToolCallHandling::Keep {
            orphans.iter().for_each(|index| {
                self.leave_out(&self.messages[*index], OmissionReason::ResultWithoutCall);
            });
        }
    }
}

/// Whether the model's next message continues this one. Not after a call that stores its result:
/// the model had seen that result by then.
fn continues_message(parts: &[MessagePart]) -> bool {
    !parts.iter().any(|part| matches!(part, MessagePart::ToolCall(call) if call.result.is_some()))
}

/// The longest call id in bytes that every provider accepts (OpenAI's limit, from error reports).
const MAX_CALL_ID_BYTES: usize = 40;

/// A call id that has not been used yet: `id`, shortened and numbered as needed. `id` is ASCII.
pub fn unique_id(id: &str, used: &mut FxHashSet<Arc<str>>) -> Arc<str> {
    let mut candidate: Arc<str> = id[..id.len().min(MAX_CALL_ID_BYTES)].into();
    let mut copy = 2;
    while !used.insert(candidate.clone()) {
        let end = format!("_{copy}");
        candidate = format!("{}{end}", &id[..id.len().min(MAX_CALL_ID_BYTES - end.len())]).into();
        copy += 1;
    }
    candidate
}

/// The summary that replaces a message's text, if the message is summarised and has one.
fn summary_text(message: &AgentMessage) -> Option<&Text> {
    let summary = message.tl_dr.as_ref().filter(|summary| !summary.trim().is_empty());
    summary.filter(|_| message.state == MessageState::TlDr)
}

pub(super) fn text_content(text: Text, message: &AgentMessage) -> Content {
    Content::Text(vec![Segment { text, origin: Origin::message(&message.id) }])
}

fn part_text(part: &MessagePart) -> Option<&Text> {
    match part {
        MessagePart::Text { text } => Some(text),
        _ => None,
    }
}

/// Makes a tool name valid for every provider: 1 to 64 letters, digits, `_` and `-`.
fn valid_tool_name(name: &Arc<str>) -> Arc<str> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(valid) {
        return name.clone();
    }
    let name: String = name.chars().map(|c| if valid(c) { c } else { '_' }).take(64).collect();
    if name.is_empty() { "unknown".into() } else { name.into() }
}

/// A call's arguments as an object, which providers require; anything else is wrapped in one.
fn arguments_as_object(call: &ToolCall) -> Json {
    if call.arguments.is_object() {
        call.arguments.clone()
    } else {
        Json::new(&serde_json::json!({ "arguments": call.arguments.value() }))
    }
}
