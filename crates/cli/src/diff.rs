//! `hardpan request --diff A B`: finds the first block in which two requests differ.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hardpan_app::settings::Settings;
use hardpan_providers::body::{self, BodyBlock};
use serde_json::Value;

use crate::args::{RequestArgs, TargetArgs};
use crate::output::{cut, safe};

/// One of the two requests: its body, and the origins of its blocks if they are known.
struct DiffSide {
    body: Value,
    origins: Vec<Value>,
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
    let rows = side.origins.iter().filter(|row| row["block"] == block.address.as_str());
    let names = rows
        .flat_map(|row| row["from"].as_array().into_iter().flatten())
        .filter_map(|part| part["origin"].as_str());
    let mut origins: Vec<&str> = names.collect();
    origins.dedup();
    let origin = match origins.len() {
        0 => "unknown origin".to_owned(),
        1..=4 => origins.join(", "),
        n => format!("{} … {} ({n} parts)", origins[0], origins[n - 1]),
    };
    let (text, other) = (block_text(block), other.map(block_text).unwrap_or_default());
    let same = text.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let from: String = text.chars().skip(same.saturating_sub(20)).collect();
    format!("{} · from character {same}: {}", safe(&origin), cut(&safe(&from.replace('\n', "⏎")), 60))
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
        let origins = value["origins"].as_array().cloned().unwrap_or_default();
        return Ok(DiffSide { body: value["body"].clone(), origins });
    }
    if body::is_request_body(&value) {
        return Ok(DiffSide { body: value, origins: Vec::new() });
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
    let origins = crate::origins::origins(&request.preview.assembled, &request.addresses());
    let origins = origins.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    Ok(DiffSide { body, origins })
}
