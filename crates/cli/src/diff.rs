//! `hardpan request --diff A B`: finds the first block in which two requests differ.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hardpan_app::settings::Settings;
use hardpan_context::AssembledPrompt;
use hardpan_providers::body::{self, BodyBlock};
use serde_json::Value;

use crate::args::{RequestArgs, TargetArgs};
use crate::output::{cut, safe};

/// Columns of the text that is quoted from a block.
const QUOTE_WIDTH: usize = 60;

/// Where the blocks of a body came from, as rows of `--origins`; empty if it is not known.
#[derive(Default)]
pub struct BodyOrigins(Vec<Value>);

impl BodyOrigins {
    /// The origins of a request that was assembled here.
    pub fn of_request(assembled: &AssembledPrompt, addresses: &[String]) -> Self {
        let rows = crate::origins::origins(assembled, addresses);
        BodyOrigins(rows.iter().filter_map(|row| serde_json::to_value(row).ok()).collect())
    }

    /// The origins of a block, in words; none if they are not known.
    fn describe(&self, block: &BodyBlock) -> Option<String> {
        let rows = self.0.iter().filter(|row| row["block"] == block.address.as_str());
        let names = rows
            .flat_map(|row| row["from"].as_array().into_iter().flatten())
            .filter_map(|part| part["origin"].as_str());
        let mut origins: Vec<&str> = names.collect();
        origins.dedup();
        match origins.len() {
            0 => None,
            1..=4 => Some(origins.join(", ")),
            n => Some(format!("{} … {} ({n} parts)", origins[0], origins[n - 1])),
        }
    }
}

/// A block in a line: where it came from, or what it is if that is not known, and how it begins.
pub fn describe_block(block: &BodyBlock, origins: &BodyOrigins) -> String {
    let what = origins.describe(block).unwrap_or_else(|| block_kind(block));
    format!("{}: \"{}\"", safe(&what), quote(&block_text(block)))
}

/// What a block is, read off the body alone: a body does not say where its text came from.
fn block_kind(block: &BodyBlock) -> String {
    let content = &block.content;
    let name = || {
        ["/name", "/function/name", "/functionCall/name"]
            .iter()
            .find_map(|path| content.pointer(path)?.as_str())
    };
    let Some(role) = &block.role else {
        return name().map_or_else(|| "a tool".to_owned(), |name| format!("tool {name}"));
    };
    let whose = match role.as_str() {
        "system" | "developer" => "the system prompt".to_owned(),
        "assistant" | "model" => "the model".to_owned(),
        role => format!("the {role}"),
    };
    let kind = content["type"].as_str().unwrap_or_default();
    match kind {
        "tool_use" | "function_call" => format!("call of {}", name().unwrap_or("a tool")),
        "tool_result" | "function_call_output" => "result of a tool".to_owned(),
        "image" | "input_image" | "image_url" => format!("image of {whose}"),
        "thinking" | "redacted_thinking" | "reasoning" => format!("reasoning of {whose}"),
        _ if role == "tool" => "result of a tool".to_owned(),
        _ => format!("text of {whose}"),
    }
}

fn quote(text: &str) -> String {
    cut(&safe(&text.replace('\n', "⏎")), QUOTE_WIDTH)
}

/// One of the two requests: its body, and the origins of its blocks if they are known.
struct DiffSide {
    body: Value,
    origins: BodyOrigins,
}

/// Describes the first difference between two requests.
pub fn diff(a: &Path, b: &Path, request_args: &RequestArgs, settings: &Arc<Settings>) -> Result<String> {
    let (first, second) = (load(a, request_args, settings)?, load(b, request_args, settings)?);
    let Some(difference) = body::first_difference(&first.body, &second.body) else {
        return Ok("Both requests have the same blocks.\n".to_owned());
    };
    let block = difference.second.as_ref().or(difference.first.as_ref());
    let address = block.map_or_else(String::new, |block| block.address.clone());
    let mut text =
        format!("The first {} blocks are equal; the first difference is in {address}.\n", difference.same);
    for (name, side, block) in [(a, &first, &difference.first), (b, &second, &difference.second)] {
        text.push_str(&format!(
            "  {}: {}\n",
            name.display(),
            describe(side, block.as_ref(), other_block(&difference, block))
        ));
    }
    Ok(text)
}

fn other_block<'a>(difference: &'a body::BodyDifference, block: &Option<BodyBlock>) -> Option<&'a BodyBlock> {
    let other = if *block == difference.first { &difference.second } else { &difference.first };
    other.as_ref()
}

fn describe(side: &DiffSide, block: Option<&BodyBlock>, other: Option<&BodyBlock>) -> String {
    let Some(block) = block else { return "has no more blocks".to_owned() };
    let what = side.origins.describe(block).unwrap_or_else(|| block_kind(block));
    let (text, other) = (block_text(block), other.map(block_text).unwrap_or_default());
    let same = text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let from: String = text.chars().skip(same.saturating_sub(20)).collect();
    format!("{} · from character {same}: {}", safe(&what), quote(&from))
}

fn block_text(block: &BodyBlock) -> String {
    let content = &block.content;
    let text = content.as_str().or_else(|| content["text"].as_str()).or_else(|| content["content"].as_str());
    text.map_or_else(|| content.to_string(), str::to_owned)
}

/// The largest snapshot or body, in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Loads a request: assembles a snapshot, and takes a body as it is.
fn load(path: &Path, request_args: &RequestArgs, settings: &Arc<Settings>) -> Result<DiffSide> {
    let text = hardpan_files::read_small_text(path, MAX_BYTES)
        .map_err(std::io::Error::from)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let value: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))?;
    if value["body"].is_object() {
        let origins = BodyOrigins(value["origins"].as_array().cloned().unwrap_or_default());
        return Ok(DiffSide { body: value["body"].clone(), origins });
    }
    if body::is_request_body(&value) {
        return Ok(DiffSide { body: value, origins: BodyOrigins::default() });
    }
    if !value["version"].is_number() {
        bail!(
            "{} is neither a snapshot (from `hardpan snapshot`) nor a request body (from `hardpan request --json`)",
            path.display()
        );
    }
    let request_args = RequestArgs {
        snapshot: Some(path.to_owned()),
        prompt: None,
        files: Vec::new(),
        target_args: TargetArgs { image: Vec::new(), ..request_args.target_args.clone() },
        ..request_args.clone()
    };
    let request = crate::run::assemble(&request_args, settings)?;
    let body = serde_json::from_slice(request.body()).context("the body is not JSON")?;
    let origins = BodyOrigins::of_request(&request.preview.assembled, &request.addresses());
    Ok(DiffSide { body, origins })
}
