//! The agent with all its tools against the simulator over HTTP: compaction, branches, the user's
//! shell commands, tools that change files, and a long run with faults.

mod branches; // going back, with and without a summary
mod changes; // files that the model changes, and what it learns about them
mod compaction; // a summary in place of old messages
mod context_window; // a window that is nearly full, and one that is too small
mod edit_blocks; // edits that the model writes into its answer
mod knowledge; // what the model has seen of files
mod message_states; // messages that are summarised or deleted
mod pages; // pages that prompts name
mod recall; // what folds and compactions took out, recalled
mod shell; // the user's shell commands
mod soak; // many turns, many faults
