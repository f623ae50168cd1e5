//! Fake tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_prompt::{Json, Tool as Declaration};
use hardpan_tools::{Effect, Tool, ToolInvocation, ToolOutcome};
use serde_json::{Value, json};

/// The tool `slow`, which sleeps for `ms` milliseconds and reports progress. It counts as reading.
pub struct SlowTool {
    declaration: Declaration,
    counts: Arc<SlowToolCounts>,
}

/// Counts over all calls of `slow`.
#[derive(Debug, Default)]
pub struct SlowToolCounts {
    running: AtomicUsize,
    most_parallel: AtomicUsize,
    ended: AtomicUsize,
}

impl SlowToolCounts {
    /// How many ran at the same time, at most.
    pub fn most_parallel(&self) -> usize {
        self.most_parallel.load(Ordering::SeqCst)
    }

    /// How many have ended.
    pub fn ended(&self) -> usize {
        self.ended.load(Ordering::SeqCst)
    }
}

impl SlowTool {
    /// The tool, with counts that the test keeps.
    pub fn new(counts: Arc<SlowToolCounts>) -> Self {
        let properties = json!({"ms": {"type": "integer"}});
        SlowTool { declaration: declaration("slow", "slow something", &properties), counts }
    }
}

impl Tool for SlowTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let SlowToolCounts { running, most_parallel, ended } = &*self.counts;
            most_parallel.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            (call.progress)("half");
            let ms = call.arguments.value()["ms"].as_u64().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            ended.fetch_add(1, Ordering::SeqCst);
            ToolOutcome::text(format!("slept {ms}")).with_details(json!({"ms": ms}))
        })
    }
}

/// The tool `paint`, which counts as changing something. It fails at plaid and panics at
/// ultraviolet, and before it begins at infrared.
pub struct PaintTool(Declaration);

impl PaintTool {
    /// The tool.
    #[allow(clippy::new_without_default, reason = "a tool has no default")]
    pub fn new() -> Self {
        PaintTool(declaration("paint", "paint something", &json!({"colour": {"type": "string"}})))
    }
}

impl Tool for PaintTool {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Changes
    }
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        let colour = call.arguments.value()["colour"].as_str().unwrap_or_default().to_owned();
        assert!(colour != "infrared", "a tool that breaks before it begins");
        Box::pin(async move {
            assert!(colour != "ultraviolet", "a tool that breaks");
            if colour == "plaid" {
                ToolOutcome::failed("plaid is no colour")
            } else {
                ToolOutcome::text(format!("painted {colour}"))
            }
        })
    }
}

/// A tool of any name that reads nothing and answers `seen`.
pub struct LookTool(Declaration);

impl LookTool {
    /// The tool under this name.
    pub fn new(name: &str) -> Self {
        LookTool(declaration(name, "Looks at something.", &json!({"at": {"type": "string"}})))
    }
}

impl Tool for LookTool {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, _call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::text("seen")))
    }
}

fn declaration(name: &str, description: &str, properties: &Value) -> Declaration {
    Declaration {
        name: name.into(),
        description: description.into(),
        parameters: Json::new(&json!({"type": "object", "properties": properties})),
        snippet: None,
        guidelines: Vec::new(),
    }
}
