//! [`ApiRequests`]: the requests that newer versions of Claude Code record as they were sent.
//!
//! `api-request-shape` has system prompt and tools under a hash; `api-request` refers to it and has
//! the parameters, the breakpoints and the hashes of the messages, of which only those after a
//! common beginning (`keep`) with an earlier request (`base`) are written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_economy::cache::Moment;
use serde_json::Value;

use super::super::json_fields::JsonFields;
use super::super::request_shape::{EFFORT, THINKING};
use super::super::{RequestShape, ShapePart};

/// System prompt and tools, as several requests share them.
type SystemAndTools = (Arc<[ShapePart]>, Arc<[ShapePart]>);

#[derive(Default)]
pub(super) struct ApiRequests {
    shapes: BTreeMap<Arc<str>, SystemAndTools>,
    requests: BTreeMap<Arc<str>, ApiRequest>,
    /// The number of each message, by its hash.
    messages: BTreeMap<Arc<str>, u32>,
}

/// A request as it was sent.
pub(super) struct ApiRequest {
    pub shape: Arc<RequestShape>,
    pub sent: Option<Moment>,
    pub effort: Option<Arc<str>>,
    model: Arc<str>,
    /// What it was for, by Claude Code's name: `sdk`, `compact`.
    source: Arc<str>,
    is_answered: bool,
}

impl ApiRequests {
    pub fn read_shape(&mut self, line: &Value) {
        let Some((hash, shape)) = line.str("shapeHash").zip(line.get("shape")) else { return };
        let system: Arc<[ShapePart]> = match shape.get("system") {
            Some(Value::Array(blocks)) => {
                let named = |(at, block): (usize, &Value)| {
                    ShapePart::new(format!("block {} of {}", at + 1, blocks.len()), block)
                };
                blocks.iter().enumerate().map(named).collect()
            }
            Some(text) => [ShapePart::new("its text", text)].into(),
            None => [].into(),
        };
        let tools = ShapePart::from_tools(shape.list("tools")).into();
        self.shapes.insert(hash.into(), (system, tools));
    }

    pub fn read_request(&mut self, line: &Value) {
        let Some(id) = line.str("id") else { return };
        let params = line.get("params").unwrap_or(&Value::Null);
        let shared = line.str("shapeHash").and_then(|hash| self.shapes.get(hash));
        let effort = params.get("output_config").and_then(|config| config.str("effort"));
        let shape = RequestShape {
            system: shared.map(|(system, _)| system.clone()),
            tools: shared.map(|(_, tools)| tools.clone()),
            settings: settings(params),
            messages: self.message_numbers(line),
            marked_messages: marked_messages(line),
        };
        let request = ApiRequest {
            shape: Arc::new(shape),
            sent: line.moment("timestamp"),
            effort: effort.map(Into::into),
            model: params.str("model").unwrap_or_default().into(),
            source: line.str("querySource").unwrap_or_default().into(),
            is_answered: false,
        };
        self.requests.insert(id.into(), request);
    }

    /// The messages of a request by number. `None` if the request that it builds on is not recorded.
    fn message_numbers(&mut self, line: &Value) -> Option<Vec<u32>> {
        let keep = usize::try_from(line.count("keep")).ok()?;
        let mut numbers: Vec<u32> = match line.str("base") {
            _ if keep == 0 => Vec::new(),
            Some(base) => self.requests.get(base)?.shape.messages.as_ref()?.get(..keep)?.to_vec(),
            None => return None,
        };
        for hash in line.get("tail")?.as_array()?.iter().filter_map(Value::as_str) {
            let next = u32::try_from(self.messages.len()).ok()?;
            numbers.push(*self.messages.entry(hash.into()).or_insert(next));
        }
        Some(numbers)
    }

    /// The request that an answer names, which is then answered.
    pub fn answered(&mut self, id: Option<&str>) -> Option<&ApiRequest> {
        let request = self.requests.get_mut(id?)?;
        request.is_answered = true;
        Some(request)
    }

    /// What the requests of a model were for that no answer names: those that the transcript leaves
    /// out. A failed attempt of an ordinary request is none of them.
    pub fn side_purposes(&self, is_model: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        let answered = self.requests.values().filter(|request| request.is_answered);
        let ordinary: BTreeSet<&Arc<str>> = answered.map(|request| &request.source).collect();
        let unanswered =
            self.requests.values().filter(|request| !request.is_answered && is_model(&request.model));
        let sources = unanswered.map(|request| &request.source);
        let sources: BTreeSet<&Arc<str>> =
            sources.filter(|source| !source.is_empty() && !ordinary.contains(source)).collect();
        sources.into_iter().cloned().collect()
    }
}

/// The settings that separate caches. How many tokens may be answered and how thinking is shown do
/// not.
fn settings(params: &Value) -> BTreeMap<&'static str, String> {
    let mut settings = BTreeMap::new();
    let mut set = |name: &'static str, value: Option<&Value>| {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            settings.insert(name, value.to_string());
        }
    };
    let thinking = params.get("thinking").map(|thinking| without(thinking, "display"));
    set(THINKING, thinking.as_ref());
    let output = params.get("output_config");
    set(EFFORT, output.and_then(|output| output.get("effort")));
    set("output format", output.and_then(|output| output.get("format")));
    set("task budget", output.and_then(|output| output.get("task_budget")));
    // Their order says nothing.
    let mut betas: Vec<&str> = params.list("betas").iter().filter_map(Value::as_str).collect();
    betas.sort_unstable();
    set("betas", Some(&Value::from(betas)));
    set("speed", params.get("speed"));
    set("tool choice", params.get("tool_choice"));
    set("context management", params.get("context_management"));
    settings
}

fn without(value: &Value, key: &str) -> Value {
    let mut value = value.clone();
    if let Value::Object(fields) = &mut value {
        fields.remove(key);
    }
    value
}

/// How many messages come up to the last breakpoint; 0 if only system prompt and tools have one.
fn marked_messages(line: &Value) -> Option<usize> {
    let markers = line.get("cacheControl")?.as_array()?;
    let places = markers.iter().filter_map(|marker| match marker.list("path") {
        [section, place, ..] if section.as_str() == Some("messages") => usize::try_from(place.as_u64()?).ok(),
        _ => None,
    });
    Some(places.map(|place| place.saturating_add(1)).max().unwrap_or(0))
}
