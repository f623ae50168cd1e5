//! The `inline` layout: the conversation, with all context right before the last user message.

use std::collections::BTreeMap;

use hardpan_prompt::{
    Block, Content, Item, ItemCopy, ItemKind, Json, MessageBody, MessageId, Omission, OmissionReason, Origin,
    PromptMessage, Region, Role, Segment, Tool, ToolBlock,
};

use crate::breakpoints::CacheEnds;
use crate::declared_tools::{PromptHead, ToolPlace};
use crate::history::{self, ExchangeMerging, ToolCallHandling};
use crate::layout::{Arrangement, Layout, LayoutInput};
use crate::layout_state::StateStorage;
use crate::message_builder::MessageBuilder;
use crate::snapshot::{AgentMode, ContextImage, OVERVIEW_KEY, is_conversation_placeholder};
use crate::texts::fill_template;
use crate::{run_context, system};

/// The `inline` layout. It keeps no state but the declared tools.
pub struct Inline;

impl StateStorage for Inline {}

impl Layout for Inline {
    fn arrange(&self, input: &LayoutInput<'_>) -> Arrangement {
        let snapshot = input.snapshot;
        let mut layout_state = snapshot.layout_state.clone();
        let mut prompt = input.empty_prompt();
        let place = ToolPlace { layout: self, region: Region::Inline, own: None, beside: &[] };
        let PromptHead { tools, system } = place.begin_prompt(input, &mut layout_state.declared_tools);
        let strict = |block: ToolBlock| ToolBlock { tool: require_all_properties(&block.tool), ..block };
        prompt.tools = tools.into_iter().map(strict).collect();
        prompt.system_id = input.target.profile.message_ids.then(|| system::system_message_id(&system));
        prompt.system.extend((!system.is_empty()).then(|| Block::new(Region::Inline, Content::Text(system))));

        let calls = match snapshot.agent_mode {
            AgentMode::On => ToolCallHandling::Keep,
            AgentMode::Off => ToolCallHandling::Strip,
        };
        let history = history::convert_history(input, &snapshot.messages, calls, ExchangeMerging::Join);
        prompt.left_out.extend(history.left_out);
        let mut builder = MessageBuilder::default();
        let is_persons = |id: &MessageId| {
            let mut messages = snapshot.messages.iter().rev();
            let message = messages.find(|message| message.id == *id);
            message.is_some_and(|message| matches!(*message.body, MessageBody::User { .. }))
        };
        let mut positions = Vec::with_capacity(history.messages.len());
        for message in &history.messages {
            positions.push(builder.0.len());
            builder.push_converted(message, Region::Inline, input);
        }
        let from_last = history.messages.iter().zip(positions).rev();
        let mut trailing = from_last.take_while(|(message, _)| message.role == Role::User);
        let last_of_person = match &snapshot.prompt {
            Some(_) => Some(builder.0.len()),
            None => trailing.find(|(message, _)| message.ids.iter().any(is_persons)).map(|(_, at)| at),
        };
        let (context_images, prompt_images): (Vec<&ContextImage>, Vec<&ContextImage>) =
            snapshot.images.iter().partition(|image| image.path.is_some());
        builder.push_user_prompt(input, Region::Inline, &prompt_images);

        let mut ends = CacheEnds::default();
        ends.add_system();
        // A request that continues after tool calls does not send the context again, so what comes
        // before the context is all that it can read.
        let position = context_position(&builder.0, last_of_person);
        let mut context = Vec::new();
        match position {
            Some(at) => {
                if let Some(message) = builder.0.get_mut(at) {
                    message.documents = snapshot.documents.clone();
                }
                context = context_messages(input, &context_images, &mut prompt.left_out);
            }
            None => {
                let leave = |item: &Item| Omission::of_item(item.key.clone(), OmissionReason::Continuation);
                prompt.left_out.extend(snapshot.items.iter().map(leave));
            }
        }
        let before_context = position.filter(|_| !context.is_empty());
        builder.0.splice(before_context.unwrap_or(0)..before_context.unwrap_or(0), context);
        let inserted = builder.opening_messages();
        let mut prompt = builder.finish(input, Region::Inline, prompt);
        let conversation = before_context.map_or(prompt.messages.len(), |at| at + inserted);
        run_context::push_closing_block(input, &mut prompt, Vec::new(), true);
        let measured = ends.mark(input, &mut prompt, inserted, conversation);
        Arrangement { prompt, layout_state, measured: Some(measured), fold: None }
    }

    fn suits_single_requests(&self) -> bool {
        true
    }

    fn has_prompt_types(&self) -> bool {
        true
    }

    fn shows_context_images(&self) -> bool {
        true
    }
}

/// Where the context goes: right before the last message of the person, also if messages of
/// extensions follow it; where only these follow the last answer, before the last of them. None if
/// tool results or an answer follow.
fn context_position(messages: &[PromptMessage], last_of_person: Option<usize>) -> Option<usize> {
    let is_results = |message: &PromptMessage| {
        message.blocks.iter().any(|block| matches!(*block.content, Content::Result(_)))
    };
    let is_plain = |message: &PromptMessage| message.role == Role::User && !is_results(message);
    match messages.last() {
        None => Some(0),
        Some(message) if is_plain(message) => {
            let at = last_of_person.filter(|&at| at < messages.len() && messages[at..].iter().all(is_plain));
            Some(at.unwrap_or(messages.len() - 1))
        }
        Some(_) => None,
    }
}

/// The context messages: files, pages and panels in the order given, images, the directory map.
fn context_messages(
    input: &LayoutInput<'_>,
    images: &[&ContextImage],
    left_out: &mut Vec<Omission>,
) -> Vec<PromptMessage> {
    let phrases = &input.texts.phrases.inline;
    let mut builder = MessageBuilder::default();
    let mut tree = None;
    for item in &input.snapshot.items {
        let mut leave = |reason| left_out.push(Omission::of_item(item.key.clone(), reason));
        match item.kind {
            _ if is_conversation_placeholder(item) => leave(OmissionReason::ConversationItem),
            ItemKind::Symbols | ItemKind::Legend => leave(OmissionReason::NoSymbolMap),
            ItemKind::Tree if !input.snapshot.directory_map => leave(OmissionReason::DirectoryMapOff),
            ItemKind::Tree if tree.is_none() => tree = Some(item),
            ItemKind::Tree => leave(OmissionReason::OneOfItsKind),
            _ => {
                let name = if item.kind == ItemKind::Panel { &item.title } else { item.name() };
                let text =
                    input.render_cache.get_or_render("inline context", &[name], item.body.hash(), || {
                        fill_template(&phrases.context, &[("path", name), ("content", &item.body)])
                    });
                builder.push_text(
                    Role::User,
                    Region::Inline,
                    &text,
                    Origin::item(item.kind, &item.key, ItemCopy::Current),
                );
            }
        }
    }
    for image in images {
        let path = image.path.as_deref().unwrap_or_default();
        let origin = Origin::rule(ItemKind::File, "context image");
        let text = fill_template(&phrases.image, &[("path", path)]);
        let text = Block::new(Region::Inline, Content::Text(vec![Segment::new(text, origin.clone())]));
        let picture = Block::new(Region::Inline, Content::Image(image.image.clone(), origin));
        builder.0.push(PromptMessage::new(Role::User, vec![text, picture]));
    }
    if let Some(tree) = tree {
        let text = input.render_cache.get_or_render("directory map", &[], tree.body.hash(), || {
            let directories = match &*tree.key {
                OVERVIEW_KEY => tree.body.to_string(),
                _ => directory_summary(tree),
            };
            fill_template(&phrases.directory_map, &[("directories", &directories)])
        });
        builder.push_text(
            Role::User,
            Region::Inline,
            &text,
            Origin::item(ItemKind::Tree, &tree.key, ItemCopy::Current),
        );
    }
    builder.0
}

/// A summary of the tree: each directory with the number of files in it.
fn directory_summary(tree: &Item) -> String {
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

/// The tool with a schema in which every property is required and `strict` is removed, as some
/// servers want it. Optional properties become nullable, so that they stay optional in meaning.
pub fn require_all_properties(tool: &Tool) -> Tool {
    let mut schema = tool.parameters.value();
    require_all_in(&mut schema);
    Tool { parameters: Json::new(&schema), ..tool.clone() }
}

fn require_all_in(schema: &mut serde_json::Value) {
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
                    value
                        .as_object_mut()
                        .into_iter()
                        .flatten()
                        .for_each(|(_, schema)| require_all_in(schema));
                } else {
                    require_all_in(value);
                }
            });
        }
        Value::Array(values) => values.iter_mut().for_each(require_all_in),
        _ => {}
    }
}

/// Whether a schema keyword holds data, which must not be rewritten like a schema.
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
