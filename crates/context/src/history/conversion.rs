//! The conversion, message by message.

use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, Body, Call, Content, Held, Image, Json, LeftOut, MessageId, Origin, Outcome, Part,
    Reasoning, ResultPart, Role, Segment, State, Text, ToolCall, ToolResult,
};
use rustc_hash::FxHashSet;

use super::pairing::{Answer, Pairing};
use super::{Calls, Exchanges, Said, Spoken, begins_exchange};
use crate::layout::Input;
use crate::texts::fill;

/// A conversation on its way.
pub(super) struct Conversion<'a> {
    pub input: &'a Input<'a>,
    pub messages: &'a [AgentMessage],
    pub calls: Calls,
    pub exchanges: Exchanges,
    /// The position of the message at hand.
    pub index: usize,
    pub pairing: Pairing<'a>,
    pub used_ids: FxHashSet<Arc<str>>,
    /// Those of them that are not settled.
    pub new_ids: Vec<Arc<str>>,
    /// Whether the message before was the model's: parallel calls may have been stored one by one.
    pub goes_on: bool,
    pub spoken: Spoken,
}

impl Conversion<'_> {
    /// Converts the message at `index`, which is to be sent.
    pub(super) fn message(&mut self, index: usize) {
        self.index = index;
        let message = &self.messages[index];
        let phrases = &self.input.texts.phrases.history;
        let contents = match &*message.body {
            Body::User { content } | Body::Custom { content, .. } => self.plain(message, content),
            Body::BashExecution { exclude_from_context: true, .. } => {
                self.leave_out(message, "run with `!!`: kept from the model");
                return;
            }
            Body::BashExecution { command, output, exit_code, .. } => {
                let code = exit_code.map(|code| code.to_string());
                let text = self.input.memo.text(
                    "bash",
                    &[command, code.as_deref().unwrap_or("-")],
                    output.hash(),
                    || {
                        let mut text =
                            fill(&phrases.bash, &[("command", command), ("output", output.trim_end())]);
                        match code.as_deref() {
                            Some("0") => {}
                            Some(code) => text.push_str(&fill(&phrases.bash_failed, &[("code", code)])),
                            None => text.push_str(&phrases.bash_killed),
                        }
                        text
                    },
                );
                vec![text_content(short(message).cloned().unwrap_or(text), message)]
            }
            Body::CompactionSummary { summary } => {
                self.summary(message, "compaction", &phrases.compaction_summary, summary)
            }
            Body::BranchSummary { summary } => {
                self.summary(message, "branch", &phrases.branch_summary, summary)
            }
            Body::Assistant { content, provider, model, .. } => {
                let ours = self.made_by_target(provider.as_deref(), model.as_deref());
                self.assistant(message, content, ours);
                return;
            }
            Body::ToolResult { .. } => return, // sent with its call
        };
        self.push(Role::User, vec![message.id.clone()], contents);
    }

    fn push(&mut self, role: Role, ids: Vec<MessageId>, contents: Vec<Content>) {
        if !contents.is_empty() {
            let contents = contents.into_iter().map(Held::from).collect();
            self.spoken.said.push(Arc::new(Said { role, ids, contents, first: self.index }));
        }
    }

    fn leave_out(&mut self, message: &AgentMessage, reason: &str) {
        self.spoken.left_out.push(LeftOut::new(format!("message:{}", message.id), reason));
    }

    fn summary(
        &self,
        message: &AgentMessage,
        form: &'static str,
        phrase: &str,
        summary: &Text,
    ) -> Vec<Content> {
        let fill = || fill(phrase, &[("summary", summary.trim())]);
        let text = self.input.memo.text(form, &[], summary.hash(), fill);
        vec![text_content(short(message).cloned().unwrap_or(text), message)]
    }

    /// Text and images; a summary stands for all text.
    fn plain(&mut self, message: &AgentMessage, parts: &[Part]) -> Vec<Content> {
        let mut contents = Vec::new();
        contents.extend(short(message).map(|short| text_content(short.clone(), message)));
        for part in parts {
            match part {
                Part::Text { text } if short(message).is_none() && !text.trim().is_empty() => {
                    contents.push(text_content(text.clone(), message));
                }
                Part::Image(image) if self.takes(image, message) => {
                    contents.push(Content::Image(image.clone(), Origin::message(&message.id)));
                }
                Part::Text { .. } | Part::Image(_) | Part::Reasoning { .. } | Part::ToolCall(_) => {}
            }
        }
        contents
    }

    /// Whether an image can be sent; one that no provider takes is listed.
    fn takes(&mut self, image: &Image, message: &AgentMessage) -> bool {
        let refused = image.check().err();
        refused
            .iter()
            .for_each(|reason| self.leave_out(message, &format!("one of its images is not sent: {reason}")));
        refused.is_none()
    }

    fn assistant(&mut self, message: &AgentMessage, parts: &[Part], ours: bool) {
        let mut contents = Vec::new();
        let mut results = Vec::new();
        let mut result_ids = Vec::new();
        let mut foreign_reasoning = false;
        contents.extend(short(message).map(|short| text_content(short.clone(), message)));
        for part in parts {
            match part {
                Part::Text { text } if short(message).is_none() && !text.trim().is_empty() => {
                    contents.push(text_content(text.clone(), message));
                }
                Part::Text { .. } | Part::Image(_) => {}
                Part::Reasoning { text, signature, redacted } => {
                    // An empty proof is none: it would be sent, and refused.
                    let proof = |proof: &Option<Arc<str>>| proof.clone().filter(|proof| !proof.is_empty());
                    let reasoning = Reasoning {
                        text: text.clone(),
                        signature: proof(signature),
                        redacted: proof(redacted),
                        origin: Origin::message(&message.id),
                    };
                    if ours && self.can_send(&reasoning) {
                        contents.push(Content::Reasoning(reasoning));
                    } else {
                        foreign_reasoning = true;
                    }
                }
                Part::ToolCall(call) if self.calls == Calls::Keep => {
                    let Some(answer) = self.pairing.answer(self.index, call) else {
                        let key = format!("call:{}", call.id);
                        self.spoken.left_out.push(LeftOut::new(key, "no result of this call is known"));
                        continue;
                    };
                    let id = self.unique(&call.id);
                    contents.push(Content::Call(Call {
                        id: id.clone(),
                        name: valid_name(&call.name),
                        arguments: object(call),
                        origin: Origin::message(&message.id),
                    }));
                    if let Some(id) = answer.message().map(|message| message.id.clone()) {
                        result_ids.push(id);
                    }
                    results.push(Content::Result(self.result(id, &answer, message)));
                }
                Part::ToolCall(_) => {}
            }
        }
        if foreign_reasoning {
            self.leave_out(
                message,
                "its reasoning is unsigned or was made by another model; the rest is sent",
            );
        }
        // Reasoning by itself is not a message, and no message may end with it.
        let led_to = contents.iter().rposition(|content| !matches!(content, Content::Reasoning(_)));
        let end = led_to.map_or(0, |last| last + 1);
        if end < contents.len() {
            contents.truncate(end);
            self.leave_out(message, "its last reasoning led to nothing that can be sent; the rest is sent");
        }
        if contents.is_empty() {
            return;
        }
        if result_ids.is_empty() {
            result_ids.push(message.id.clone());
        }
        self.push_round(message.id.clone(), contents, result_ids, results);
        self.goes_on = goes_on(parts);
    }

    /// A message of the model and the results of its calls. Right after another message of the model it is merged into
    /// that one, so that calls made side by side stand side by side.
    fn push_round(&mut self, id: MessageId, calls: Vec<Content>, ids: Vec<MessageId>, results: Vec<Content>) {
        let apart = |first: usize| {
            self.exchanges == Exchanges::Apart && begins_exchange(self.messages, first + 1..=self.index)
        };
        let said = &mut self.spoken.said;
        let answered = said.last().is_some_and(|last| last.role == Role::User);
        let before = said
            .len()
            .checked_sub(if answered { 2 } else { 1 })
            .filter(|at| self.goes_on && said[*at].role == Role::Assistant && !apart(said[*at].first));
        let Some(at) = before else {
            self.push(Role::Assistant, vec![id], calls);
            return self.push(Role::User, ids, results);
        };
        let model = Arc::make_mut(&mut said[at]);
        model.ids.push(id);
        model.contents.extend(calls.into_iter().map(Held::from));
        match said.get_mut(at + 1) {
            Some(earlier) if !results.is_empty() => {
                let earlier = Arc::make_mut(earlier);
                earlier.ids.extend(ids);
                earlier.contents.extend(results.into_iter().map(Held::from));
            }
            Some(_) => {}
            None => self.push(Role::User, ids, results),
        }
    }

    fn result(&mut self, call_id: Arc<str>, answer: &Answer<'_>, call: &AgentMessage) -> ToolResult {
        let message = answer.message().unwrap_or(call);
        let origin = Origin::message(&message.id);
        let segment = |text: &Text| Segment { text: text.clone(), origin: origin.clone() };
        let mut parts: Vec<ResultPart> = Vec::new();
        let summary = answer.message().and_then(short);
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
            Part::Image(image) if self.takes(image, message) => Some(ResultPart::Image(image.clone())),
            _ => None,
        }));
        if parts.is_empty() {
            parts.push(ResultPart::Text(vec![segment(&self.input.texts.phrases.history.no_output)]));
        }
        let outcome = if answer.is_error() { Outcome::Failed } else { Outcome::Done };
        ToolResult { call_id, parts, outcome, origin }
    }

    fn made_by_target(&self, provider: Option<&str>, model: Option<&str>) -> bool {
        let target = self.input.target;
        provider.is_none_or(|provider| provider == target.provider)
            && model.is_none_or(|model| model == target.model.id)
    }

    fn can_send(&self, reasoning: &Reasoning) -> bool {
        if self.input.target.is_anthropic() {
            reasoning.signature.is_some() || reasoning.redacted.is_some()
        } else {
            self.input.target.wire.reasoning_field.name().is_some() && !reasoning.text.is_empty()
        }
    }

    /// An id that the strictest provider accepts, used only once.
    fn unique(&mut self, id: &str) -> Arc<str> {
        let mut valid: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
            .collect();
        // These prefixes belong to the layouts' own calls.
        if valid.is_empty() || valid.starts_with("panel_") || valid.starts_with("context_") {
            valid.insert_str(0, "call_");
        }
        let id = unique_id(&valid, &mut self.used_ids);
        self.new_ids.push(id.clone());
        id
    }

    /// Lists results that answer nobody.
    pub(super) fn report(&mut self, orphans: &[usize]) {
        if self.calls == Calls::Keep {
            orphans.iter().for_each(|index| {
                self.leave_out(&self.messages[*index], "it answers no call that is sent");
            });
        }
    }
}

/// Whether what the model says next belongs to the same message: not after a call that holds its own result, which the
/// model had seen by then.
fn goes_on(parts: &[Part]) -> bool {
    !parts.iter().any(|part| matches!(part, Part::ToolCall(call) if call.result.is_some()))
}

/// The longest call id in bytes that every provider accepts (OpenAI's limit, from error reports).
const LONGEST_ID: usize = 40;

/// A call id that has not been used yet, as near to `id` as can be. `id` is plain ASCII.
pub fn unique_id(id: &str, used: &mut FxHashSet<Arc<str>>) -> Arc<str> {
    let mut candidate: Arc<str> = id[..id.len().min(LONGEST_ID)].into();
    let mut copy = 2;
    while !used.insert(candidate.clone()) {
        let end = format!("_{copy}");
        candidate = format!("{}{end}", &id[..id.len().min(LONGEST_ID - end.len())]).into();
        copy += 1;
    }
    candidate
}

/// The summary that stands for a message's text, if it is in that state and has one.
fn short(message: &AgentMessage) -> Option<&Text> {
    let summary = message.tl_dr.as_ref().filter(|summary| !summary.trim().is_empty());
    summary.filter(|_| message.state == State::TlDr)
}

fn text_content(text: Text, message: &AgentMessage) -> Content {
    Content::Text(vec![Segment { text, origin: Origin::message(&message.id) }])
}

fn part_text(part: &Part) -> Option<&Text> {
    match part {
        Part::Text { text } => Some(text),
        _ => None,
    }
}

/// Tool names are letters, digits, `_` and `-`, at most 64.
fn valid_name(name: &Arc<str>) -> Arc<str> {
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= 64 && name.chars().all(valid) {
        return name.clone();
    }
    let name: String = name.chars().map(|c| if valid(c) { c } else { '_' }).take(64).collect();
    if name.is_empty() { "unknown".into() } else { name.into() }
}

/// Arguments are an object on the wire; anything else a model made up is kept inside one.
fn object(call: &ToolCall) -> Json {
    if call.arguments.is_object() {
        call.arguments.clone()
    } else {
        Json::new(&serde_json::json!({ "arguments": call.arguments.value() }))
    }
}
