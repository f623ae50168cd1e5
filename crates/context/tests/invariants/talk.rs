//! Random conversations, most of them broken somewhere.

use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, Body, CallResult, Image, Json, MediaType, MessageId, Part, State, Text, Tier, ToolCall,
};
use jiff::Timestamp;
use serde_json::json;

use crate::dice::Dice;
use crate::words;

/// Names fresh messages and calls, and knows who speaks.
pub struct Talk<'a> {
    makers: &'a [(String, String)],
    target: usize,
    next: usize,
    /// Calls that were made and never answered.
    open: Vec<Arc<str>>,
    /// Whether a call may have the id of an earlier one.
    ids_repeat: bool,
}

pub fn image(dice: &mut Dice) -> Image {
    let media_type = *dice.pick(&[MediaType::Png, MediaType::Jpeg, MediaType::Gif, MediaType::Webp]);
    let side = dice.rarely(2, |dice| dice.between(1, 300) as u32);
    Image { media_type, data: words::base64(dice).into(), width: side, height: side }
}

impl<'a> Talk<'a> {
    pub fn new(makers: &'a [(String, String)], target: usize) -> Self {
        Talk { makers, target, next: 0, open: Vec::new(), ids_repeat: true }
    }

    /// Another model from here on.
    pub fn switch(&mut self, dice: &mut Dice) -> usize {
        self.target = dice.below(self.makers.len());
        self.target
    }

    pub fn new_id(&mut self) -> MessageId {
        self.next += 1;
        MessageId(format!("m{}", self.next).into())
    }

    /// An id that is taken already, if there is one.
    pub fn any_id(&mut self, dice: &mut Dice, messages: &[AgentMessage]) -> MessageId {
        if messages.is_empty() { self.new_id() } else { dice.pick(messages).id.clone() }
    }

    /// A conversation from its beginning.
    pub fn history(&mut self, dice: &mut Dice) -> Vec<AgentMessage> {
        let mut messages = Vec::new();
        match dice.below(400) {
            0..=3 => self.long(dice, &mut messages),
            4..=7 => self.many_images(dice, &mut messages),
            _ => {}
        }
        for _ in 0..dice.below(6) {
            self.episode(dice, &mut messages);
        }
        for message in &mut messages {
            dress(dice, message);
        }
        if messages.len() > 1 && dice.one_in(25) {
            let (from, to) = (dice.below(messages.len()), dice.below(messages.len()));
            messages[to].id = messages[from].id.clone();
        }
        messages
    }

    /// What follows a request: an answer, perhaps with tools, perhaps cut off; sometimes a late result of a call that was
    /// given up. After a request without a prompt the model speaks first, or nobody does.
    pub fn go_on(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>, had_prompt: bool) {
        let given_up = std::mem::take(&mut self.open);
        let silent = dice.one_in(8);
        if silent {
            return;
        }
        let start = messages.len();
        match dice.below(5) {
            0 | 1 => self.answer(dice, messages),
            2 => {
                // A result that lost its call must not find an older one.
                self.ids_repeat = false;
                self.broken_round(dice, messages);
                self.ids_repeat = true;
            }
            _ => self.round(dice, messages),
        }
        let answered =
            messages[start..].iter().any(|message| matches!(*message.body, Body::Assistant { .. }));
        if let Some(id) = given_up.last().filter(|_| had_prompt && answered && dice.one_in(2)) {
            self.push_result(dice, messages, id.clone());
        }
        if dice.one_in(4) {
            self.episode(dice, messages);
        }
    }

    fn episode(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        match dice.below(14) {
            0..=2 => {
                self.user(dice, messages);
                self.answer(dice, messages);
            }
            3..=6 => {
                self.user(dice, messages);
                for _ in 0..dice.between(1, 2) {
                    self.round(dice, messages);
                }
                if dice.one_in(2) {
                    self.answer(dice, messages);
                }
            }
            7 | 8 => self.broken_round(dice, messages),
            9 => {
                self.user(dice, messages);
                self.user(dice, messages);
            }
            10 => self.aside(dice, messages),
            11 => self.answer(dice, messages),
            12 => self.one_by_one(dice, messages),
            _ => {
                self.user(dice, messages);
                self.aborted(dice, messages);
            }
        }
    }

    fn say(&mut self, body: Body) -> AgentMessage {
        AgentMessage::new(self.new_id(), body)
    }

    fn user(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        let mut content = Vec::new();
        match dice.below(12) {
            0 => content.push(Part::Image(image(dice))),
            1 => content.extend([
                Part::text(words::said(dice)),
                Part::Image(image(dice)),
                Part::text(words::said(dice)),
            ]),
            2 => content.push(Part::text("  \n")),
            _ => content.push(Part::text(words::said(dice))),
        }
        messages.push(self.say(Body::User { content }));
    }

    /// Commands, extensions, summaries.
    fn aside(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        let body = match dice.below(5) {
            0 | 1 => Body::BashExecution {
                command: "ls `pwd`".into(),
                output: words::body(dice).into(),
                exit_code: *dice.pick(&[Some(0), Some(1), None]),
                exclude_from_context: dice.one_in(3),
            },
            2 => Body::Custom {
                custom_type: "note".into(),
                content: vec![Part::text(words::said(dice))],
                display: false,
            },
            3 => Body::CompactionSummary { summary: words::body(dice).into() },
            _ => Body::BranchSummary { summary: words::body(dice).into() },
        };
        messages.push(self.say(body));
    }

    fn reasoning(&mut self, dice: &mut Dice) -> Part {
        let text = if dice.one_in(6) { String::new() } else { words::line(dice) };
        let signature = match dice.below(5) {
            0 => None,
            1 => Some("".into()),
            _ => Some(words::base64(dice).into()),
        };
        let redacted =
            dice.rarely(6, |dice| if dice.one_in(4) { "".into() } else { words::base64(dice).into() });
        Part::Reasoning { text: text.into(), signature, redacted }
    }

    /// A message of the model, made by this one, by another, or by nobody knows whom.
    fn assistant(&mut self, dice: &mut Dice, content: Vec<Part>) -> AgentMessage {
        let of = |(provider, model): &(String, String)| {
            (Some(provider.as_str().into()), Some(model.as_str().into()))
        };
        let (provider, model) = match dice.below(6) {
            0 => of(dice.pick(self.makers)),
            1 => (None, None),
            _ => of(&self.makers[self.target]),
        };
        let stop_reason =
            dice.rarely(4, |dice| (*dice.pick(&["end_turn", "tool_use", "aborted", "max_tokens"])).into());
        self.say(Body::Assistant { content, provider, model, stop_reason })
    }

    fn answer(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        let mut content = Vec::new();
        if dice.one_in(3) {
            content.push(self.reasoning(dice));
        }
        content.push(Part::text(words::said(dice)));
        if dice.one_in(5) {
            content.push(Part::text(words::line(dice)));
        }
        messages.push(self.assistant(dice, content));
    }

    /// A stream that was cut off: reasoning and no more, nothing at all, calls that were never run.
    fn aborted(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        let content = match dice.below(6) {
            0 => vec![self.reasoning(dice)],
            1 => Vec::new(),
            2 => vec![Part::text("")],
            3 => vec![Part::text(words::line(dice)), self.reasoning(dice)],
            4 => vec![self.reasoning(dice), self.open_call(dice)],
            _ => vec![Part::text(words::line(dice)), self.reasoning(dice), self.open_call(dice)],
        };
        messages.push(self.assistant(dice, content));
    }

    fn call(&mut self, dice: &mut Dice) -> ToolCall {
        self.next += 1;
        let id = match dice.below(14) {
            0 => format!("call/{}:é", self.next),
            1 if self.ids_repeat => "again".to_owned(),
            2 => format!("{}-{}", "long".repeat(15), self.next),
            3 if self.ids_repeat => format!("panel_{}", dice.pick(&["P1", "footer"])),
            4 if self.ids_repeat => "context_lively".to_owned(),
            5 if self.ids_repeat && dice.one_in(3) => String::new(),
            _ => format!("toolu_{:04}", self.next),
        };
        let name = match dice.below(12) {
            0 => "näme with spaces".to_owned(),
            1 if dice.one_in(2) => String::new(),
            1 => "n".repeat(80),
            2 => "context".to_owned(),
            _ => (*dice.pick(&["read", "bash", "edit-file_2"])).to_owned(),
        };
        let arguments = match dice.below(10) {
            0 => json!("just text"),
            1 => dice.pick(&[json!(null), json!([1, 2]), json!(7)]).clone(),
            2 => json!({"nested": {"b": 1, "a": [0.1, 1e21, -2.5, i64::MIN, u64::MAX]}, "é": "\u{0}\n"}),
            _ => json!({"path": words::line(dice), "limit": dice.below(100)}),
        };
        ToolCall { id: id.into(), name: name.into(), arguments: Json::new(&arguments), result: None }
    }

    fn open_call(&mut self, dice: &mut Dice) -> Part {
        let call = self.call(dice);
        self.open.push(call.id.clone());
        Part::ToolCall(call)
    }

    fn outcome(&mut self, dice: &mut Dice) -> Vec<Part> {
        match dice.below(10) {
            0 => Vec::new(),
            1 => vec![Part::text("\n \n")],
            2 => vec![Part::Image(image(dice))],
            3 => vec![Part::text(words::line(dice)), Part::Image(image(dice)), Part::text(words::line(dice))],
            _ => vec![Part::text(words::body(dice))],
        }
    }

    fn push_result(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>, call_id: Arc<str>) {
        let (content, is_error) = (self.outcome(dice), dice.one_in(6));
        messages.push(self.say(Body::ToolResult { call_id, tool_name: None, content, is_error }));
    }

    /// Calls side by side and all their results: stored with the calls, or as messages.
    fn round(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        let mut content = Vec::new();
        if dice.one_in(2) {
            content.push(self.reasoning(dice));
        }
        if dice.one_in(2) {
            content.push(Part::text(words::line(dice)));
        }
        let stored = dice.one_in(4);
        let mut ids = Vec::new();
        for _ in 0..*dice.pick(&[1, 1, 2, 3, 5]) {
            let mut call = self.call(dice);
            if stored {
                call.result = Some(CallResult { content: self.outcome(dice), is_error: dice.one_in(6) });
            } else {
                ids.push(call.id.clone());
            }
            content.push(Part::ToolCall(call));
        }
        messages.push(self.assistant(dice, content));
        if dice.one_in(4) {
            ids.reverse();
        }
        for id in ids {
            self.push_result(dice, messages, id);
        }
    }

    /// A round in which something is lost, doubled, or out of order.
    fn broken_round(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        let start = messages.len();
        self.round(dice, messages);
        match dice.below(6) {
            0 if messages.len() > start + 1 => drop(messages.pop()), // the last result was lost
            1 if messages.len() > start + 1 => messages.swap(start, start + 1), // it came before its call
            2 => self.push_result(dice, messages, "nobody".into()),
            3 => {
                let last = messages.last().cloned();
                messages.extend(last); // the same message twice, id and all
            }
            4 => self.aborted(dice, messages),
            _ => drop(messages.remove(start)), // results whose call was lost
        }
    }

    /// Parallel calls, each in a message of its own, before all their results.
    fn one_by_one(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        let calls: Vec<ToolCall> = (0..dice.between(2, 3)).map(|_| self.call(dice)).collect();
        for call in &calls {
            messages.push(self.assistant(dice, vec![Part::ToolCall(call.clone())]));
        }
        for call in &calls {
            self.push_result(dice, messages, call.id.clone());
        }
    }

    /// Long enough for `panels` to detach the older part: 25 messages and 7,500 tokens must stay.
    fn long(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        for _ in 0..32 {
            self.user(dice, messages);
            let text = "many words that fill a window ".repeat(95);
            messages.push(self.assistant(dice, vec![Part::text(text)]));
        }
    }

    /// More images than a request takes.
    fn many_images(&mut self, dice: &mut Dice, messages: &mut Vec<AgentMessage>) {
        let shots: Vec<Part> =
            (0..20).map(|_| Part::Image(Image { width: Some(9), height: Some(9), ..image(dice) })).collect();
        for _ in 0..6 {
            messages.push(self.say(Body::User { content: shots.clone() }));
            self.round(dice, messages);
        }
    }
}

/// State, tier and time, none of which changes what a message is.
fn dress(dice: &mut Dice, message: &mut AgentMessage) {
    if dice.one_in(8) {
        message.state = *dice.pick(&[State::TlDr, State::TlDr, State::Detached, State::Deleted]);
    }
    if dice.one_in(5) {
        message.tl_dr = Some(Text::new(if dice.one_in(5) { " ".to_owned() } else { words::line(dice) }));
    }
    message.tier = dice.rarely(2, |dice| *dice.pick(&Tier::ALL));
    message.time =
        dice.rarely(2, |dice| Timestamp::from_second(1_780_000_000 + dice.below(9) as i64).expect("a time"));
}
