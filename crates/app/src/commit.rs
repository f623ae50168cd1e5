//! Commit messages: what git has staged, and the model that describes it.

pub mod message; // CommitMessage: checks and cleans what a model wrote
pub mod model; // MessageWriter: asks the model
pub mod staged; // StagedChanges: what git has staged; and the commit itself
