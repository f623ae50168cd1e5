//! [`record_git_branch`]: sessions know on which branch of git they went on.

use std::path::PathBuf;

use hardpan_agent::Agent;
use hardpan_agent::events::AgentStart;
use hardpan_workspace::checked_out_branch;

/// Stores the branch that is checked out in `root` with each run, if it is another one.
pub(crate) fn record_git_branch(agent: &Agent, root: PathBuf) {
    agent.events().subscribe::<AgentStart, _>("hardpan", move |_, agent| {
        let branch = checked_out_branch(&root);
        async move {
            if let Some(branch) = branch {
                // A session that cannot be written reports it with the next message.
                let _ = agent.record_git_branch(&branch).await;
            }
            Ok(())
        }
    });
}
