//! Long scripted sessions of the real binary. The principal type is [`PlannedWork`]: a repository and
//! what a model does in it, request by request, from a seed. [`LiveSetup::run`] carries it out with
//! the agent, its tools and the simulator as processes of their own, and returns a [`LiveOutcome`]
//! with the simulator's bill.
//!
//! The plan keeps its own copy of every file, so that each edit applies and each command ends as
//! foretold; what turns out otherwise is a [`LiveProblem`].

mod check_script; // the test runner of the repository
mod habits; // Habits: which calls each kind of work makes, and how often
mod outcome; // LiveOutcome, LiveProblem: what a run cost, and what went wrong
mod plan; // PlannedWork: runs, steps, calls
mod planner; // Planner: chooses the calls of a kind of work
mod process; // LiveSetup: agent and simulator as processes
mod source_tree; // SourceTree: generated files, and what edits make of them

pub use outcome::{LiveBill, LiveOutcome, LiveProblem};
pub use plan::{PlannedCall, PlannedRun, PlannedStep, PlannedWork, WorkKind, WorkShape};
pub use process::LiveSetup;
pub use source_tree::SourceTree;
