//! [`PlannedWork`]: what a model does in a generated repository, request by request.

use serde_json::{Value, json};

use super::planner::Planner;
use super::source_tree::SourceTree;

/// A kind of work: which calls a model makes, and how often it comes back to the same files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// Reads a few files and changes them again and again.
    Edit,
    /// Runs the tests, changes something, runs them again.
    TestLoop,
    /// Searches and reads, and comes back to what it has read.
    Explore,
}

impl WorkKind {
    /// All kinds.
    pub const ALL: [WorkKind; 3] = [WorkKind::Edit, WorkKind::TestLoop, WorkKind::Explore];

    /// The kind's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Edit => "edit",
            WorkKind::TestLoop => "test-loop",
            WorkKind::Explore => "explore",
        }
    }

    /// The kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        WorkKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// How much of which work.
#[derive(Clone, Copy, Debug)]
pub struct WorkShape {
    /// The kind of work.
    pub kind: WorkKind,
    /// The same seed plans the same work.
    pub seed: u64,
    /// Requests in all, the last of each run included.
    pub requests: usize,
    /// Prompts that the person sends.
    pub runs: usize,
}

/// A repository, and the work in it.
#[derive(Clone, Debug)]
pub struct PlannedWork {
    /// What it was planned from.
    pub shape: WorkShape,
    /// The files at the beginning.
    pub start: SourceTree,
    /// The files at the end, if every call did as planned.
    pub end: SourceTree,
    /// The prompts, and what follows each.
    pub runs: Vec<PlannedRun>,
}

/// A prompt, and the answers to it. The last one calls nothing.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// What the person types.
    pub prompt: String,
    /// The answers, one per request.
    pub steps: Vec<PlannedStep>,
}

/// An answer of the model.
#[derive(Clone, Debug)]
pub struct PlannedStep {
    /// The words.
    pub text: String,
    /// The calls after them.
    pub calls: Vec<PlannedCall>,
}

/// A tool call.
#[derive(Clone, Debug)]
pub struct PlannedCall {
    /// The call's id, unique in the session.
    pub id: String,
    /// The tool.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Value,
    /// Whether its result is an error: a command whose tests fail.
    pub fails: bool,
}

impl PlannedWork {
    /// Plans the work.
    pub fn new(shape: WorkShape) -> Self {
        let mut planner = Planner::new(shape.kind, shape.seed);
        let start = planner.tree().clone();
        let runs = (0..shape.runs).map(|run| {
            let steps = shape.requests * (run + 1) / shape.runs - shape.requests * run / shape.runs;
            planner.plan_run(run, steps)
        });
        let runs = runs.collect();
        PlannedWork { shape, start, end: planner.tree().clone(), runs }
    }

    /// All calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &PlannedCall> {
        self.runs.iter().flat_map(|run| &run.steps).flat_map(|step| &step.calls)
    }

    /// The simulator's script: one turn per request, and an error for any request beyond them.
    pub fn script(&self) -> String {
        let call =
            |call: &PlannedCall| json!({"name": call.tool, "arguments": call.arguments, "id": call.id});
        let steps = self.runs.iter().flat_map(|run| &run.steps);
        let turn = |step: &PlannedStep| {
            let calls: Vec<Value> = step.calls.iter().map(call).collect();
            match calls.is_empty() {
                true => json!({"text": step.text}),
                false => json!({"text": step.text, "tool_calls": calls}),
            }
        };
        json!({"turns": steps.map(turn).collect::<Vec<_>>()}).to_string()
    }
}
