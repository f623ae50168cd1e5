//! [`ServerLimits`]: how much of a change of tools the model is told where servers make it by themselves.
//!
//! What is told stays in all later requests until a fold, so a server that has other tools each time must
//! not be able to tell of all of them. What is not told waits for the fold, as on models that take no
//! changes of tools: a new tool is unknown to the model, and the calls of one that is gone are refused.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{Tool, ToolChangeAction};

use super::state::ToolChangeSet;
use super::tool_changes::definition_of;

/// How many tools a server may add between two folds, besides those that it listed first.
const MAX_ADDITIONS: usize = 16;

/// How often the model is told between two folds that a server's tool is gone.
const MAX_REMOVALS: usize = 2;

/// How much of what servers may change is used up since the last fold. Tools of others have no limits:
/// the person switches them, or an extension of the person.
pub struct ServerLimits<'a> {
    /// The servers of which the model knew tools before.
    known: BTreeSet<&'a str>,
    /// The additions of each server, without its first list.
    additions: BTreeMap<&'a str, usize>,
    /// How often each tool of a server was removed.
    removals: BTreeMap<&'a str, usize>,
}

impl<'a> ServerLimits<'a> {
    /// What is used up by the changes that were `told` since the tools were declared.
    pub fn new(declared: &'a [Tool], told: &'a [ToolChangeSet]) -> Self {
        let servers = |tools: &mut dyn Iterator<Item = &'a Tool>| -> BTreeSet<&'a str> {
            tools.filter_map(|tool| server_of(&tool.name)).collect()
        };
        let (additions, removals) = (BTreeMap::new(), BTreeMap::new());
        let mut limits = ServerLimits { known: servers(&mut declared.iter()), additions, removals };
        for change in told {
            for action in &change.actions {
                let name = action.tool_name();
                match (action, server_of(name)) {
                    (ToolChangeAction::Define(_), Some(_)) => drop(limits.take_addition(name)),
                    (ToolChangeAction::Remove(_), Some(_)) => *limits.removals.entry(name).or_default() += 1,
                    (ToolChangeAction::Define(_) | ToolChangeAction::Remove(_), None)
                    | (ToolChangeAction::Restore(_), _) => {}
                }
            }
            limits.known.append(&mut servers(&mut change.actions.iter().filter_map(definition_of)));
        }
        limits
    }

    /// Whether the model is told of one more tool, which then counts. The first list of a server that was
    /// late does not count: its tools would have been declared.
    pub fn take_addition(&mut self, name: &'a str) -> bool {
        let Some(server) = server_of(name).filter(|server| self.known.contains(server)) else { return true };
        let additions = self.additions.entry(server).or_default();
        *additions += 1;
        *additions <= MAX_ADDITIONS
    }

    /// Whether the model is told that a tool is gone.
    pub fn may_remove(&self, name: &str) -> bool {
        self.removals.get(name).is_none_or(|removals| *removals < MAX_REMOVALS)
    }
}

/// The server whose tool has this name.
fn server_of(name: &str) -> Option<&str> {
    name.split_once("__").map(|(server, _)| server)
}
