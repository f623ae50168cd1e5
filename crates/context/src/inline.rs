//! `inline` (seed e): the conversation, with the context right before the last user message.

use std::collections::BTreeMap;

use hardpan_prompt::{
    Block, Content, Copy, Item, Json, Kind, LeftOut, Origin, Place, Role, Segment, Tool, ToolBlock, Turn,
};

use crate::history::{self, Calls, Exchanges};
use crate::layout::{Arrangement, Input, Layout, LayoutName};
use crate::snapshot::{AgentMode, ContextImage, is_chat};
use crate::system;
use crate::texts::fill;
use crate::turns::Turns;

/// The inline layout.
pub struct Inline;

impl Layout for Inline {
    fn name(&self) -> LayoutName {
        LayoutName::Inline
    }

    fn arrange(&self, input: &Input<'_>) -> Arrangement {
        let snapshot = input.snapshot;
        let mut prompt = input.blank();
        let strict = |block: ToolBlock| ToolBlock { tool: all_required(&block.tool), ..block };
        prompt.tools = input.tools(Place::Inline, None).into_iter().map(strict).collect();
        let system = system::segments(input, LayoutName::Inline);
        prompt.system_id = input.target.wire.message_ids.then(|| system::id(&system));
        prompt.system.push(Block::new(Place::Inline, Content::Text(system)));

        let calls = match snapshot.agent_mode {
            AgentMode::On => Calls::Keep,
            AgentMode::Off => Calls::Strip,
        };
        let spoken = history::spoken(input, &snapshot.messages, calls, Exchanges::Joined);
        prompt.left_out.extend(spoken.left_out);
        let mut turns = Turns::default();
        spoken.said.iter().for_each(|said| turns.said(said, Place::Inline, input));
        let (context_images, prompt_images): (Vec<&ContextImage>, Vec<&ContextImage>) =
            snapshot.images.iter().partition(|image| image.path.is_some());
        turns.prompt(input, Place::Inline, &prompt_images);

        // A continuation, after tools have run, does not send the context again.
        match place_for_context(&turns.0) {
            Some(at) => {
                if let Some(turn) = turns.0.get_mut(at) {
                    turn.documents = snapshot.documents.clone();
                }
                let context = context(input, &context_images, &mut prompt.left_out);
                turns.0.splice(at..at, context);
            }
            None => {
                let reason = "a continuation does not send the context again";
                prompt.left_out.extend(snapshot.items.iter().map(|item| LeftOut::new(&*item.key, reason)));
            }
        }
        let prompt = turns.finish(input, Place::Inline, prompt);
        Arrangement { prompt, memory: snapshot.memory.clone(), measured: None }
    }
}

/// Right before the last user message, if nothing has been said since; results of tools are not the user's words.
fn place_for_context(turns: &[Turn]) -> Option<usize> {
    let is_results =
        |turn: &Turn| turn.blocks.iter().any(|block| matches!(*block.content, Content::Result(_)));
    match turns.last() {
        None => Some(0),
        Some(turn) if turn.role == Role::User && !is_results(turn) => Some(turns.len() - 1),
        Some(_) => None,
    }
}

/// The context messages: files, pages and panels as they come, images, then the directory map.
fn context(input: &Input<'_>, images: &[&ContextImage], left_out: &mut Vec<LeftOut>) -> Vec<Turn> {
    let phrases = &input.texts.phrases.inline;
    let mut turns = Turns::default();
    let mut tree = None;
    for item in &input.snapshot.items {
        let mut leave = |reason: &str| left_out.push(LeftOut::new(&*item.key, reason));
        match item.kind {
            _ if is_chat(item) => leave("the conversation is sent as messages"),
            Kind::Symbols | Kind::Legend => leave("this layout has no symbol map"),
            Kind::Tree if !input.snapshot.directory_map => leave("the directory map is switched off"),
            Kind::Tree if tree.is_none() => tree = Some(item),
            Kind::Tree => leave("this layout takes only one of its kind"),
            _ => {
                let name = if item.kind == Kind::Panel { &item.title } else { item.name() };
                let text = input.memo.text("inline context", &[name], item.body.hash(), || {
                    fill(&phrases.context, &[("path", name), ("content", &item.body)])
                });
                turns.say(
                    Role::User,
                    Place::Inline,
                    &text,
                    Origin::item(item.kind, &item.key, Copy::Current),
                );
            }
        }
    }
    for image in images {
        let path = image.path.as_deref().unwrap_or_default();
        let origin = Origin::rule(Kind::File, "context image");
        let text = fill(&phrases.image, &[("path", path)]);
        let text = Block::new(Place::Inline, Content::Text(vec![Segment::new(text, origin.clone())]));
        let picture = Block::new(Place::Inline, Content::Image(image.image.clone(), origin));
        turns.0.push(Turn::new(Role::User, vec![text, picture]));
    }
    if let Some(tree) = tree {
        let text = input.memo.text("directory map", &[], tree.body.hash(), || {
            fill(&phrases.directory_map, &[("directories", &directories(tree))])
        });
        turns.say(Role::User, Place::Inline, &text, Origin::item(Kind::Tree, &tree.key, Copy::Current));
    }
    turns.0
}

/// A summary of the tree: each directory with the number of files in it.
fn directories(tree: &Item) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in tree.body.lines() {
        let directory = path.rsplit_once('/').map_or(".", |(directory, _)| directory);
        *counts.entry(directory).or_default() += 1;
    }
    let lines = counts.iter().map(|(directory, count)| {
        format!("{directory}/ ({count} {})", if *count == 1 { "file" } else { "files" })
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A schema as seed e sends it: every property required, `strict` removed; what was optional becomes nullable, so that it
/// stays optional in meaning.
pub fn all_required(tool: &Tool) -> Tool {
    let mut schema = tool.parameters.value();
    require_all(&mut schema);
    Tool { parameters: Json::new(&schema), ..tool.clone() }
}

fn require_all(schema: &mut serde_json::Value) {
    use serde_json::Value;
    match schema {
        Value::Object(object) => {
            if object.get("strict").is_some_and(Value::is_boolean) {
                object.shift_remove("strict");
            }
            if let Some(Value::Object(properties)) = object.get("properties") {
                let names: Vec<String> = properties.keys().cloned().collect();
                let required: Vec<String> = object
                    .get("required")
                    .and_then(Value::as_array)
                    .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
                    .unwrap_or_default();
                if let Some(Value::Object(properties)) = object.get_mut("properties") {
                    for (_, property) in properties.iter_mut().filter(|(name, _)| !required.contains(name)) {
                        make_nullable(property);
                    }
                }
                object.insert("required".into(), names.into());
            }
            object.iter_mut().filter(|(key, _)| !is_data(key)).for_each(|(key, value)| {
                if key == "properties" || key == "$defs" || key == "definitions" {
                    value.as_object_mut().into_iter().flatten().for_each(|(_, schema)| require_all(schema));
                } else {
                    require_all(value);
                }
            });
        }
        Value::Array(values) => values.iter_mut().for_each(require_all),
        _ => {}
    }
}

/// Whether a keyword's value is data, not a schema.
fn is_data(keyword: &str) -> bool {
    matches!(keyword, "required" | "enum" | "const" | "default" | "examples")
}

fn make_nullable(schema: &mut serde_json::Value) {
    use serde_json::{Value, json};
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(values)) = object.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let is_open = object.contains_key("enum") || object.is_empty();
    match object.get_mut("type") {
        Some(Value::String(name)) if name != "null" => {
            let name = std::mem::take(name);
            object.insert("type".into(), json!([name, "null"]));
        }
        Some(Value::Array(names)) if !names.contains(&json!("null")) => names.push(json!("null")),
        Some(_) => {}
        None if is_open => {}
        None => {
            let original = std::mem::take(schema);
            *schema = json!({ "anyOf": [original, { "type": "null" }] });
        }
    }
}
