//! The providers' rules once more, on the bytes: written from `providers.md` alone, so that one
//! mistake is not made twice.

mod anthropic; // Messages
mod gemini; // generateContent
mod openai; // Chat Completions
mod responses; // OpenAI Responses
mod tests; // the checker itself

use std::collections::BTreeSet;

use hardpan_context::Target;
use hardpan_models::{MarkerFormat, Protocol};
use serde_json::{Map, Value};

use crate::violation::{CheckResult, require};

/// Checks a body; `markers` is how many breakpoints the prompt has.
pub fn check(body: &Value, target: &Target, markers: usize) -> CheckResult {
    match target.profile.protocol {
        Protocol::Anthropic => anthropic::check(body, target)?,
        Protocol::Openai => openai::check(body, target)?,
        Protocol::Gemini => gemini::check(body, target)?,
        Protocol::OpenaiResponses => responses::check(body, target)?,
    }
    let on_the_wire = blocks(body).iter().filter(|block| block.marked).count();
    require(on_the_wire == markers, "every breakpoint of the prompt is on the wire", || {
        format!("{on_the_wire} of {markers} markers")
    })?;
    require(on_the_wire <= 4, "at most 4 markers", || format!("{on_the_wire} markers"))?;
    let is_silent = target.profile.markers == MarkerFormat::None;
    require(!is_silent || on_the_wire == 0, "no marker where none is understood", || {
        format!("{on_the_wire} markers")
    })
}

/// A block of a body, as a cache sees it.
#[derive(PartialEq)]
pub struct WireBlock {
    /// Who says it and what, without markers.
    pub content: Value,
    /// Whether a cache entry ends here.
    pub marked: bool,
}

/// Tools, system, messages: block by block.
pub fn blocks(body: &Value) -> Vec<WireBlock> {
    let mut blocks = Vec::new();
    list(&body["tools"]).iter().for_each(|tool| blocks.push(block(Value::Null, tool)));
    list(&body["system"]).iter().for_each(|text| blocks.push(block("system".into(), text)));
    list(&body["systemInstruction"]["parts"])
        .iter()
        .for_each(|text| blocks.push(block("system".into(), text)));
    for message in list(&body["contents"]) {
        list(&message["parts"]).iter().for_each(|part| blocks.push(block(message["role"].clone(), part)));
    }
    for message in list(&body["messages"]) {
        let who = Value::Array(vec![message["role"].clone(), message["tool_call_id"].clone()]);
        match &message["content"] {
            Value::Array(parts) => parts.iter().for_each(|part| blocks.push(block(who.clone(), part))),
            Value::Null => {}
            other => blocks.push(block(who.clone(), other)),
        }
        list(&message["tool_calls"]).iter().for_each(|call| blocks.push(block(who.clone(), call)));
    }
    for item in list(&body["input"]) {
        let who = Value::Array(vec![item["role"].clone(), item["call_id"].clone()]);
        match (&item["content"], &item["output"]) {
            (Value::Array(parts), _) | (_, Value::Array(parts)) => {
                parts.iter().for_each(|part| blocks.push(block(who.clone(), part)));
            }
            _ => blocks.push(block(who, item)),
        }
    }
    blocks
}

fn block(who: Value, part: &Value) -> WireBlock {
    let mut part = part.clone();
    let mut marked = false;
    if let Some(object) = part.as_object_mut() {
        for marker in ["cache_control", "prompt_cache_breakpoint"] {
            marked |= object.shift_remove(marker).is_some();
        }
    }
    WireBlock { content: Value::Array(vec![who, part]), marked }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The object, if it has no field but these.
fn object<'a>(
    value: &'a Value,
    fields: &[&str],
) -> Result<&'a Map<String, Value>, crate::violation::Violation> {
    let object = value.as_object();
    let known = object.is_some_and(|object| object.keys().all(|key| fields.contains(&key.as_str())));
    require(known, "an object has its known fields", || format!("{value} against {fields:?}"))?;
    Ok(object.expect("it was one"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `^[a-zA-Z0-9_-]+$`, and no longer than `max`.
fn require_plain(value: &Value, max: usize, rule: &'static str) -> CheckResult {
    let name = text(value);
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    require(!name.is_empty() && plain && name.len() <= max, rule, || value.to_string())
}

/// Declared tools: their names, and that no name is declared twice.
fn require_tools<'a>(names: impl Iterator<Item = &'a Value>) -> CheckResult {
    let mut seen = BTreeSet::new();
    for name in names {
        require_plain(name, 64, "a tool's name is plain")?;
        require(seen.insert(text(name)), "a tool is declared once", || name.to_string())?;
    }
    Ok(())
}
