//! The agent with hands, against the simulator over HTTP: compaction, branches, the person's commands, tools that change
//! things, and a long run with faults.

mod branches; // going back, with and without a summary
mod changes; // files that the model changes, and what it is told of them
mod compaction; // a summary in place of what was said long ago
mod room; // a window that is nearly full, and one that is too small
mod shell; // commands that the person runs
mod soak; // many turns, many faults
mod stage; // an agent in a folder of its own
