//! `panels` (seed a): every item a made-up tool call and its result, oldest change first; then the conversation.

pub mod detach; // what leaves the conversation for a frozen panel

use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, Block, Call, Content, Copy, Hash, Item, Json, Kind, LeftOut, Lifetime, MessageId, Origin,
    Outcome, Place, ResultPart, Role, Segment, Source, Text, Tool, ToolResult, Turn, Volatility,
};

use rustc_hash::FxHashSet;

use crate::history::{self, Calls, Exchanges};
use crate::layout::{Arrangement, Input, Layout, LayoutName};
use crate::memory::{FrozenHistory, PanelsMemory, ShownPanel};
use crate::snapshot::is_chat;
use crate::system;
use crate::texts::fill;
use crate::time::{iso, iso_ms};
use crate::turns::Turns;

/// The panel layout.
pub struct Panels;

/// The tool that panels pretend to be results of.
const TOOL: &str = "dynamic_panel";
/// The id of the call that ends the panels.
const FOOTER_ID: &str = "panel_footer";

impl Layout for Panels {
    fn name(&self) -> LayoutName {
        LayoutName::Panels
    }

    fn arrange(&self, input: &Input<'_>) -> Arrangement {
        let snapshot = input.snapshot;
        let mut prompt = input.blank();
        let mut memory = snapshot.memory.clone();
        let live = detach_old(input, &mut memory.panels);
        let panels = panels(input, &memory.panels, &mut prompt.left_out);
        memory.panels.shown = count_hits(input, &panels);

        prompt.tools = input.tools(Place::Base, Some(tool(input)));
        let system = system::segments(input, LayoutName::Panels);
        let reinjection = &input.texts.phrases.panels.reinjection;
        let hashes =
            [reinjection].into_iter().chain(system.iter().map(|segment| &segment.text)).map(Text::hash);
        let system_text = input.memo.text("reinjection", &[], Hash::chain(hashes), || {
            fill(reinjection, &[("system_prompt", &system::text(&system))])
        });
        prompt.system.push(Block::new(Place::Base, Content::Text(system)));

        let mut turns = Turns::default();
        let mut ids = FxHashSet::from_iter([Arc::from(FOOTER_ID)]);
        for (index, panel) in panels.iter().enumerate() {
            show(input, panel, index == 0, call_id(&panel.id, &mut ids), &mut turns);
        }
        if !panels.is_empty() {
            footer(input, &live, &mut turns);
            turns.mark_last(0, Lifetime::FiveMinutes);
        }
        if input.target.is_anthropic() {
            let phrases = &input.texts.phrases.panels;
            turns.say(Role::User, Place::Panel, &system_text, Origin::rule(Kind::System, "reinjection"));
            let origin = Origin::rule(Kind::System, "reinjection reply");
            turns.say(Role::Assistant, Place::Panel, &phrases.reinjection_ack, origin);
        }
        let spoken = history::spoken(input, &live, Calls::Keep, Exchanges::Joined);
        prompt.left_out.extend(spoken.left_out);
        spoken.said.iter().for_each(|said| turns.said(said, Place::Log, input));
        turns.prompt(input, Place::Log, &snapshot.images.iter().collect::<Vec<_>>());
        let mut prompt = turns.finish(input, Place::Log, prompt);
        let mut turns = Turns(std::mem::take(&mut prompt.turns));
        turns.mark_last(0, Lifetime::FiveMinutes);
        prompt.turns = turns.0;
        Arrangement { prompt, memory, measured: None }
    }
}

fn tool(input: &Input<'_>) -> Tool {
    let properties = serde_json::json!({"id": {"type": "string"}, "action": {"type": "string"}});
    Tool {
        name: TOOL.into(),
        description: input.texts.phrases.panels.tool.as_str().into(),
        parameters: Json::new(&serde_json::json!({"type": "object", "properties": properties})),
        snippet: None,
        guidelines: Vec::new(),
    }
}

/// Freezes what has grown too long, and returns the conversation that stays live.
fn detach_old(input: &Input<'_>, memory: &mut PanelsMemory) -> Vec<AgentMessage> {
    let messages = &input.snapshot.messages;
    let mut live = not_frozen(messages, &memory.histories);
    let tokens = |message: &AgentMessage| detach::estimate_tokens(message, &input.memo.counter);
    while let Some(count) = detach::plan(&live, tokens) {
        let chunk: Vec<AgentMessage> = live.drain(..count).collect();
        memory.histories.push(Arc::new(freeze(input, &chunk, memory.histories.len() + 1)));
    }
    live
}

/// The messages that are in no frozen history. As a rule these hold the beginning of the conversation.
fn not_frozen(messages: &[AgentMessage], histories: &[Arc<FrozenHistory>]) -> Vec<AgentMessage> {
    let frozen = || histories.iter().flat_map(|history| &history.messages);
    let mut here = messages.iter();
    if frozen().all(|id| here.next().is_some_and(|message| message.id == *id)) {
        let begun: FxHashSet<&MessageId> = here.clone().map(|message| &message.id).collect();
        if frozen().all(|id| !begun.contains(id)) {
            return here.cloned().collect();
        }
    }
    let frozen: FxHashSet<&MessageId> = frozen().collect();
    messages.iter().filter(|message| !frozen.contains(&message.id)).cloned().collect()
}

fn freeze(input: &Input<'_>, chunk: &[AgentMessage], number: usize) -> FrozenHistory {
    let phrases = &input.texts.phrases.panels;
    let mut content = String::new();
    for message in chunk.iter().filter(|message| detach::is_active(message)) {
        for (role, part) in detach::lines(message) {
            content.push_str(&match part {
                detach::Line::Said(text) => {
                    fill(&phrases.history_message, &[("id", &message.id.0), ("role", role), ("text", text)])
                }
                detach::Line::Called(name, arguments) => {
                    let values =
                        [("id", &*message.id.0), ("role", role), ("name", name), ("arguments", arguments)];
                    fill(&phrases.history_call, &values)
                }
            });
        }
    }
    let name =
        |message: Option<&AgentMessage>| message.map_or_else(String::new, |message| message.id.to_string());
    let (first, last) = (name(chunk.first()), name(chunk.last()));
    FrozenHistory {
        id: format!("H{number}").into(),
        title: fill(&phrases.history_title, &[("first", &first), ("last", &last)]).into(),
        content: Text::new(content),
        at_ms: input.snapshot.now.as_millisecond(),
        messages: chunk.iter().map(|message| message.id.clone()).collect(),
    }
}

/// The panels in order: oldest change first, ties by id.
fn panels(input: &Input<'_>, memory: &PanelsMemory, left_out: &mut Vec<LeftOut>) -> Vec<Item> {
    let mut panels = Vec::new();
    for item in &input.snapshot.items {
        let mut leave = |reason: &str| left_out.push(LeftOut::new(&*item.key, reason));
        match item.kind {
            _ if is_chat(item) => leave("the conversation is sent as messages"),
            Kind::Symbols | Kind::Legend => leave("this layout has no symbol map"),
            _ => panels.push(item.clone()),
        }
    }
    panels.extend(memory.histories.iter().map(|history| Item {
        key: format!("history:{}", history.id).into(),
        id: history.id.clone(),
        kind: Kind::History,
        title: history.title.clone(),
        body: history.content.clone(),
        changed_at_ms: history.at_ms,
        volatility: Volatility::Still,
        tier: None,
        n: None,
        said_by: None,
    }));
    panels.sort_by(|a, b| a.changed_at_ms.cmp(&b.changed_at_ms).then_with(|| numerically(&a.id, &b.id)));
    panels
}

/// `P2` before `P10`.
fn numerically(a: &str, b: &str) -> std::cmp::Ordering {
    fn split(id: &str) -> (&str, Option<u64>) {
        let letters = id.trim_end_matches(|c: char| c.is_ascii_digit());
        (letters, id[letters.len()..].parse().ok())
    }
    split(a).cmp(&split(b)).then_with(|| a.cmp(b))
}

/// Seed a, step 7: a panel is a hit when it and its position are as in the last request.
fn count_hits(input: &Input<'_>, panels: &[Item]) -> Vec<ShownPanel> {
    let before = &input.snapshot.memory.panels.shown;
    let prices = input.target.model.prices_at(0);
    let mut prefix_holds = true;
    let shown = panels.iter().enumerate().map(|(index, panel)| {
        let hash = panel.body.hash();
        prefix_holds &= before.get(index).is_some_and(|last| last.hash == hash);
        let known = before.iter().find(|last| last.key == panel.key);
        let tokens = input.target.factor.scale(input.memo.counter.count(&panel.body)) as f64;
        let price = if prefix_holds { prices.read() } else { prices.write() };
        ShownPanel {
            key: panel.key.clone(),
            hash,
            hits: known.map_or(0, |last| last.hits) + u32::from(prefix_holds),
            misses: known.map_or(0, |last| last.misses) + u32::from(!prefix_holds),
            cost: known.map_or(0.0, |last| last.cost) + tokens * price / 1e6,
        }
    });
    shown.collect()
}

fn show(input: &Input<'_>, panel: &Item, first: bool, id: Arc<str>, turns: &mut Turns) {
    let phrases = &input.texts.phrases.panels;
    let rule = |name| Origin::rule(panel.kind, name);
    let time = iso_ms(panel.changed_at_ms);
    let timestamp = input.memo.text("panel timestamp", &[&time], phrases.timestamp.hash(), || {
        fill(&phrases.timestamp, &[("iso_time", &time)])
    });
    let body = input.memo.text("panel", &[&panel.id, &panel.title], panel.body.hash(), || {
        // A file that has no name but its path is shown as one.
        let is_path = panel.kind == Kind::File && *panel.title == *panel.name();
        let name = if is_path {
            fill(&phrases.file_name, &[("path", &panel.title)])
        } else {
            panel.title.to_string()
        };
        fill(&phrases.body, &[("id", &panel.id), ("name", &name), ("content", &panel.body)])
    });
    let mut blocks = Vec::with_capacity(3);
    if first {
        blocks.push(Block::text(Place::Panel, phrases.header.clone(), rule("panel header")));
    }
    blocks.push(Block::text(Place::Panel, timestamp, rule("panel timestamp")));
    let arguments = Json::new(&serde_json::json!({ "id": &*panel.id }));
    let origin =
        Origin { kind: panel.kind, source: Source::Item { key: panel.key.clone(), copy: Copy::Current } };
    pair(turns, blocks, id, arguments, panel.kind, Segment { text: body, origin });
}

/// `panel_P1`; ids of panels are ours, but a user may name one as they like, even twice.
fn call_id(id: &str, used: &mut FxHashSet<Arc<str>>) -> Arc<str> {
    let valid = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name = format!("panel_{}", id.chars().map(valid).collect::<String>());
    history::unique_id(&name, used)
}

fn footer(input: &Input<'_>, live: &[AgentMessage], turns: &mut Turns) {
    let phrases = &input.texts.phrases.panels;
    let mut text = phrases.footer.to_string();
    let timed: Vec<&AgentMessage> =
        live.iter().filter(|m| detach::is_active(m) && m.time.is_some()).collect();
    if !timed.is_empty() {
        text.push_str(&phrases.footer_messages);
    }
    for message in timed {
        let time = message.time.map(iso).unwrap_or_default();
        let values = [("id", &*message.id.0), ("role", detach::role(message)), ("iso_time", &time)];
        text.push_str(&fill(&phrases.footer_message, &values));
    }
    text.push_str(&fill(&phrases.footer_datetime, &[("iso_time", &iso(input.snapshot.now))]));
    let rule = |name| Origin::rule(Kind::Panel, name);
    let blocks = vec![Block::text(Place::Panel, Text::new(text), rule("panel footer"))];
    let arguments = Json::new(&serde_json::json!({ "action": "end_panels" }));
    let ack = Segment { text: phrases.footer_ack.clone(), origin: rule("panel footer") };
    pair(turns, blocks, FOOTER_ID.into(), arguments, Kind::Panel, ack);
}

fn pair(turns: &mut Turns, mut blocks: Vec<Block>, id: Arc<str>, arguments: Json, kind: Kind, body: Segment) {
    let origin = Origin::rule(kind, "panel call");
    let call = Call { id: id.clone(), name: TOOL.into(), arguments, origin: origin.clone() };
    blocks.push(Block::new(Place::Panel, Content::Call(call)));
    let result_origin = body.origin.clone();
    let parts = vec![ResultPart::Text(vec![body])];
    let result = ToolResult { call_id: id, parts, outcome: Outcome::Done, origin: result_origin };
    turns.0.push(Turn::new(Role::Assistant, blocks));
    turns.0.push(Turn::new(Role::User, vec![Block::new(Place::Panel, Content::Result(result))]));
}
