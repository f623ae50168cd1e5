//! [`ConversationGenerator`]: random conversations, most of them broken somewhere.

use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, CallResult, Image, Json, MediaType, MessageBody, MessageId, MessagePart, MessageState,
    Text, Tier, ToolCall,
};
use jiff::Timestamp;
use serde_json::json;

use crate::random_text;
use crate::rng::TestRng;

/// Generates messages with new ids, and remembers the current model and unanswered calls.
pub struct ConversationGenerator<'a> {
    model_names: &'a [(String, String)],
    target: usize,
    next: usize,
    /// The ids of calls that were made and never answered.
    open: Vec<Arc<str>>,
    /// Whether a call may have the id of an earlier one.
    ids_repeat: bool,
}

pub fn image(rng: &mut TestRng) -> Image {
    let media_type = *rng.pick(&[MediaType::Png, MediaType::Jpeg, MediaType::Gif, MediaType::Webp]);
    let side = rng.rarely(2, |rng| rng.between(1, 300) as u32);
    Image { media_type, data: random_text::base64(rng).into(), width: side, height: side }
}

impl<'a> ConversationGenerator<'a> {
    pub fn new(model_names: &'a [(String, String)], target: usize) -> Self {
        ConversationGenerator { model_names, target, next: 0, open: Vec::new(), ids_repeat: true }
    }

    /// Chooses another model for the messages from here on, and returns its target.
    pub fn switch(&mut self, rng: &mut TestRng) -> usize {
        self.target = rng.below(self.model_names.len());
        self.target
    }

    pub fn new_id(&mut self) -> MessageId {
        self.next += 1;
        MessageId(format!("m{}", self.next).into())
    }

    /// An id that is taken already, if there is one.
    pub fn any_id(&mut self, rng: &mut TestRng, messages: &[AgentMessage]) -> MessageId {
        if messages.is_empty() { self.new_id() } else { rng.pick(messages).id.clone() }
    }

    /// A conversation from its beginning.
    pub fn generate(&mut self, rng: &mut TestRng) -> Vec<AgentMessage> {
        let mut messages = Vec::new();
        match rng.below(400) {
            0..=3 => self.push_long_history(rng, &mut messages),
            4..=7 => self.push_many_images(rng, &mut messages),
            _ => {}
        }
        for _ in 0..rng.below(6) {
            self.push_episode(rng, &mut messages);
        }
        for message in &mut messages {
            add_metadata(rng, message);
        }
        if messages.len() > 1 && rng.one_in(25) {
            let (from, to) = (rng.below(messages.len()), rng.below(messages.len()));
            messages[to].id = messages[from].id.clone();
        }
        messages
    }

    /// What follows a request: an answer, perhaps with tools, perhaps cut off; sometimes a late
    /// result of a call that was given up. After a request without a prompt the model speaks first,
    /// or nobody does.
    pub fn continue_after_request(
        &mut self,
        rng: &mut TestRng,
        messages: &mut Vec<AgentMessage>,
        had_prompt: bool,
    ) {
        let given_up = std::mem::take(&mut self.open);
        let silent = rng.one_in(8);
        if silent {
            return;
        }
        let start = messages.len();
        match rng.below(5) {
            0 | 1 => self.push_answer(rng, messages),
            2 => {
                // A result that lost its call must not find an older one.
                self.ids_repeat = false;
                self.push_broken_round(rng, messages);
                self.ids_repeat = true;
            }
            _ => self.push_tool_round(rng, messages),
        }
        let answered =
            messages[start..].iter().any(|message| matches!(*message.body, MessageBody::Assistant { .. }));
        if let Some(id) = given_up.last().filter(|_| had_prompt && answered && rng.one_in(2)) {
            self.push_result(rng, messages, id.clone());
        }
        if rng.one_in(4) {
            self.push_episode(rng, messages);
        }
    }

    fn push_episode(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        match rng.below(14) {
            0..=2 => {
                self.push_user(rng, messages);
                self.push_answer(rng, messages);
            }
            3..=6 => {
                self.push_user(rng, messages);
                for _ in 0..rng.between(1, 2) {
                    self.push_tool_round(rng, messages);
                }
                if rng.one_in(2) {
                    self.push_answer(rng, messages);
                }
            }
            7 | 8 => self.push_broken_round(rng, messages),
            9 => {
                self.push_user(rng, messages);
                self.push_user(rng, messages);
            }
            10 => self.push_other_message(rng, messages),
            11 => self.push_answer(rng, messages),
            12 => self.push_calls_one_by_one(rng, messages),
            _ => {
                self.push_user(rng, messages);
                self.push_aborted(rng, messages);
            }
        }
    }

    fn new_message(&mut self, body: MessageBody) -> AgentMessage {
        AgentMessage::new(self.new_id(), body)
    }

    fn push_user(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        let mut content = Vec::new();
        match rng.below(12) {
            0 => content.push(MessagePart::Image(image(rng))),
            1 => content.extend([
                MessagePart::text(random_text::typed_text(rng)),
                MessagePart::Image(image(rng)),
                MessagePart::text(random_text::typed_text(rng)),
            ]),
            2 => content.push(MessagePart::text("  \n")),
            _ => content.push(MessagePart::text(random_text::typed_text(rng))),
        }
        messages.push(self.new_message(MessageBody::User { content }));
    }

    /// Adds a message of a rarer kind: a shell command, an extension's message, a summary.
    fn push_other_message(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        let body = match rng.below(5) {
            0 | 1 => MessageBody::BashExecution {
                command: "ls `pwd`".into(),
                output: random_text::file_text(rng).into(),
                exit_code: *rng.pick(&[Some(0), Some(1), None]),
                exclude_from_context: rng.one_in(3),
            },
            2 => MessageBody::Custom {
                custom_type: "note".into(),
                content: vec![MessagePart::text(random_text::typed_text(rng))],
                display: false,
            },
            3 => MessageBody::CompactionSummary { summary: random_text::file_text(rng).into() },
            _ => MessageBody::BranchSummary { summary: random_text::file_text(rng).into() },
        };
        messages.push(self.new_message(body));
    }

    fn reasoning(&mut self, rng: &mut TestRng) -> MessagePart {
        let text = if rng.one_in(6) { String::new() } else { random_text::line(rng) };
        let signature = match rng.below(5) {
            0 => None,
            1 => Some("".into()),
            _ => Some(random_text::base64(rng).into()),
        };
        let redacted =
            rng.rarely(6, |rng| if rng.one_in(4) { "".into() } else { random_text::base64(rng).into() });
        MessagePart::Reasoning { text: text.into(), signature, redacted }
    }

    /// A message of the model: by the current model, by another, or of unknown origin.
    fn assistant(&mut self, rng: &mut TestRng, content: Vec<MessagePart>) -> AgentMessage {
        let of = |(provider, model): &(String, String)| {
            (Some(provider.as_str().into()), Some(model.as_str().into()))
        };
        let (provider, model) = match rng.below(6) {
            0 => of(rng.pick(self.model_names)),
            1 => (None, None),
            _ => of(&self.model_names[self.target]),
        };
        let stop_reason =
            rng.rarely(4, |rng| (*rng.pick(&["end_turn", "tool_use", "aborted", "max_tokens"])).into());
        self.new_message(MessageBody::Assistant { content, provider, model, stop_reason })
    }

    fn push_answer(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        let mut content = Vec::new();
        if rng.one_in(3) {
            content.push(self.reasoning(rng));
        }
        content.push(MessagePart::text(random_text::typed_text(rng)));
        if rng.one_in(5) {
            content.push(MessagePart::text(random_text::line(rng)));
        }
        messages.push(self.assistant(rng, content));
    }

    /// Adds an answer that was cut off: reasoning only, nothing at all, calls that were never run.
    fn push_aborted(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        let content = match rng.below(6) {
            0 => vec![self.reasoning(rng)],
            1 => Vec::new(),
            2 => vec![MessagePart::text("")],
            3 => vec![MessagePart::text(random_text::line(rng)), self.reasoning(rng)],
            4 => vec![self.reasoning(rng), self.open_call(rng)],
            _ => vec![MessagePart::text(random_text::line(rng)), self.reasoning(rng), self.open_call(rng)],
        };
        messages.push(self.assistant(rng, content));
    }

    fn call(&mut self, rng: &mut TestRng) -> ToolCall {
        self.next += 1;
        let id = match rng.below(14) {
            0 => format!("call/{}:é", self.next),
            1 if self.ids_repeat => "again".to_owned(),
            2 => format!("{}-{}", "long".repeat(15), self.next),
            3 if self.ids_repeat => format!("panel_{}", rng.pick(&["P1", "footer"])),
            4 if self.ids_repeat => "context_lively".to_owned(),
            5 if self.ids_repeat && rng.one_in(3) => String::new(),
            _ => format!("toolu_{:04}", self.next),
        };
        let name = match rng.below(12) {
            0 => "näme with spaces".to_owned(),
            1 if rng.one_in(2) => String::new(),
            1 => "n".repeat(80),
            2 => "context".to_owned(),
            _ => (*rng.pick(&["read", "bash", "edit-file_2"])).to_owned(),
        };
        let arguments = match rng.below(10) {
            0 => json!("just text"),
            1 => rng.pick(&[json!(null), json!([1, 2]), json!(7)]).clone(),
            2 => json!({"nested": {"b": 1, "a": [0.1, 1e21, -2.5, i64::MIN, u64::MAX]}, "é": "\u{0}\n"}),
            _ => json!({"path": random_text::line(rng), "limit": rng.below(100)}),
        };
        ToolCall { id: id.into(), name: name.into(), arguments: Json::new(&arguments), result: None }
    }

    fn open_call(&mut self, rng: &mut TestRng) -> MessagePart {
        let call = self.call(rng);
        self.open.push(call.id.clone());
        MessagePart::ToolCall(call)
    }

    fn result_content(&mut self, rng: &mut TestRng) -> Vec<MessagePart> {
        match rng.below(10) {
            0 => Vec::new(),
            1 => vec![MessagePart::text("\n \n")],
            2 => vec![MessagePart::Image(image(rng))],
            3 => vec![
                MessagePart::text(random_text::line(rng)),
                MessagePart::Image(image(rng)),
                MessagePart::text(random_text::line(rng)),
            ],
            _ => vec![MessagePart::text(random_text::file_text(rng))],
        }
    }

    fn push_result(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>, call_id: Arc<str>) {
        let (content, is_error) = (self.result_content(rng), rng.one_in(6));
        messages.push(self.new_message(MessageBody::ToolResult {
            call_id,
            tool_name: None,
            content,
            is_error,
            not_run: None,
        }));
    }

    /// Adds parallel calls and all their results, stored with the calls or as messages.
    fn push_tool_round(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        let mut content = Vec::new();
        if rng.one_in(2) {
            content.push(self.reasoning(rng));
        }
        if rng.one_in(2) {
            content.push(MessagePart::text(random_text::line(rng)));
        }
        let stored = rng.one_in(4);
        let mut ids = Vec::new();
        for _ in 0..*rng.pick(&[1, 1, 2, 3, 5]) {
            let mut call = self.call(rng);
            if stored {
                call.result = Some(CallResult { content: self.result_content(rng), is_error: rng.one_in(6) });
            } else {
                ids.push(call.id.clone());
            }
            content.push(MessagePart::ToolCall(call));
        }
        messages.push(self.assistant(rng, content));
        if rng.one_in(4) {
            ids.reverse();
        }
        for id in ids {
            self.push_result(rng, messages, id);
        }
    }

    /// Adds a round in which something is lost, doubled, or out of order.
    fn push_broken_round(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        let start = messages.len();
        self.push_tool_round(rng, messages);
        match rng.below(6) {
            0 if messages.len() > start + 1 => drop(messages.pop()), // the last result was lost
            1 if messages.len() > start + 1 => messages.swap(start, start + 1), // it came before its call
            2 => self.push_result(rng, messages, "nobody".into()),
            3 => {
                let last = messages.last().cloned();
                messages.extend(last); // the same message twice, id and all
            }
            4 => self.push_aborted(rng, messages),
            _ => drop(messages.remove(start)), // results whose call was lost
        }
    }

    /// Adds parallel calls, each in a message of its own, before all their results.
    fn push_calls_one_by_one(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        let calls: Vec<ToolCall> = (0..rng.between(2, 3)).map(|_| self.call(rng)).collect();
        for call in &calls {
            messages.push(self.assistant(rng, vec![MessagePart::ToolCall(call.clone())]));
        }
        for call in &calls {
            self.push_result(rng, messages, call.id.clone());
        }
    }

    /// Adds enough for `panels` to detach the older part: 25 messages and 7,500 tokens must stay.
    fn push_long_history(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        for _ in 0..32 {
            self.push_user(rng, messages);
            let text = "many words that fill a window ".repeat(95);
            messages.push(self.assistant(rng, vec![MessagePart::text(text)]));
        }
    }

    /// Adds more images than a request takes.
    fn push_many_images(&mut self, rng: &mut TestRng, messages: &mut Vec<AgentMessage>) {
        let shots: Vec<MessagePart> = (0..20)
            .map(|_| MessagePart::Image(Image { width: Some(9), height: Some(9), ..image(rng) }))
            .collect();
        for _ in 0..6 {
            messages.push(self.new_message(MessageBody::User { content: shots.clone() }));
            self.push_tool_round(rng, messages);
        }
    }
}

/// Adds a random state, tier and time.
fn add_metadata(rng: &mut TestRng, message: &mut AgentMessage) {
    if rng.one_in(8) {
        message.state = *rng.pick(&[
            MessageState::TlDr,
            MessageState::TlDr,
            MessageState::Detached,
            MessageState::Deleted,
        ]);
    }
    if rng.one_in(5) {
        message.tl_dr = Some(Text::new(if rng.one_in(5) { " ".to_owned() } else { random_text::line(rng) }));
    }
    message.tier = rng.rarely(2, |rng| *rng.pick(&Tier::ALL));
    message.time =
        rng.rarely(2, |rng| Timestamp::from_second(1_780_000_000 + rng.below(9) as i64).expect("a time"));
}
