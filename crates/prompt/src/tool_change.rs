//! [`ToolChange`]: a tool that comes or goes in the middle of a conversation, while the list of
//! declared tools stays as it was. [`AvailableTools`] says which tools the model may call after that.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Content, Hash, ItemKind, Origin, Prompt, Source, Tool};

/// A change of the tools that holds from its place in the conversation on; only in system messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolChange {
    /// What becomes of which tool.
    pub action: ToolChangeAction,
    /// The tool that it is about.
    pub origin: Origin,
}

/// What becomes of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChangeAction {
    /// The model may call this tool. It replaces an earlier one of the same name.
    Define(Tool),
    /// The model may again call the tool of this name, as it was defined last.
    Restore(Arc<str>),
    /// The model may no longer call the tool of this name.
    Remove(Arc<str>),
}

impl ToolChange {
    /// Makes a change whose origin is its tool.
    pub fn new(action: ToolChangeAction) -> Self {
        let source = Source::Tool(action.tool_name().clone());
        ToolChange { action, origin: Origin { kind: ItemKind::System, source } }
    }

    /// Hash of everything the model sees of it.
    pub(crate) fn hash(&self) -> Hash {
        let text = |text: &str| Hash::of(text.as_bytes());
        match &self.action {
            ToolChangeAction::Define(tool) => Hash::chain([
                text("define tool"),
                text(&tool.name),
                text(&tool.description),
                tool.parameters.hash(),
            ]),
            ToolChangeAction::Restore(name) => Hash::chain([text("restore tool"), text(name)]),
            ToolChangeAction::Remove(name) => Hash::chain([text("remove tool"), text(name)]),
        }
    }
}

impl ToolChangeAction {
    /// The name of the tool that it is about.
    pub fn tool_name(&self) -> &Arc<str> {
        match self {
            ToolChangeAction::Define(tool) => &tool.name,
            ToolChangeAction::Restore(name) | ToolChangeAction::Remove(name) => name,
        }
    }

    /// How many bytes of it the model reads, about.
    pub fn size(&self) -> usize {
        let definition = match self {
            ToolChangeAction::Define(tool) => tool.description.len() + tool.parameters.as_str().len(),
            ToolChangeAction::Restore(_) | ToolChangeAction::Remove(_) => 0,
        };
        self.tool_name().len() + definition
    }
}

/// The tools that are defined at a place of the conversation, and which of them the model may call.
#[derive(Clone, Debug, Default)]
pub struct AvailableTools<'a> {
    /// In the order of their first definition, each with whether it may be called.
    defined: Vec<(&'a Tool, bool)>,
}

impl<'a> AvailableTools<'a> {
    /// The tools at the beginning of a conversation: all that are declared.
    pub fn new(declared: impl IntoIterator<Item = &'a Tool>) -> Self {
        AvailableTools { defined: declared.into_iter().map(|tool| (tool, true)).collect() }
    }

    /// Applies a change. Returns whether its tool is defined here; if not, nothing changes.
    pub fn apply(&mut self, action: &'a ToolChangeAction) -> bool {
        let known = self.defined.iter_mut().find(|(tool, _)| tool.name == *action.tool_name());
        match (action, known) {
            (ToolChangeAction::Define(tool), Some(known)) => *known = (tool, true),
            (ToolChangeAction::Define(tool), None) => self.defined.push((tool, true)),
            (ToolChangeAction::Restore(_), Some(known)) => known.1 = true,
            (ToolChangeAction::Remove(_), Some(known)) => known.1 = false,
            (_, None) => return false,
        }
        true
    }

    /// The last definition of a tool, whether the model may call it or not.
    pub fn definition(&self, name: &str) -> Option<&'a Tool> {
        self.defined.iter().find(|(tool, _)| *tool.name == *name).map(|(tool, _)| *tool)
    }

    /// Whether the model may call a tool of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.iter().any(|tool| *tool.name == *name)
    }

    /// The tools that the model may call.
    pub fn iter(&self) -> impl Iterator<Item = &'a Tool> {
        self.defined.iter().filter(|(_, is_available)| *is_available).map(|(tool, _)| *tool)
    }
}

impl Prompt {
    /// The tools that the model may call in its answer: those that are declared, with all changes.
    pub fn available_tools(&self) -> AvailableTools<'_> {
        let mut tools = AvailableTools::new(self.tools.iter().map(|block| &block.tool));
        for block in self.messages.iter().flat_map(|message| &message.blocks) {
            if let Content::ToolChange(change) = &*block.content {
                tools.apply(&change.action);
            }
        }
        tools
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;

    fn tool(name: &str, description: &str) -> Tool {
        Tool {
            name: name.into(),
            description: description.into(),
            parameters: Json::new(&serde_json::json!({"type": "object"})),
            snippet: None,
            guidelines: Vec::new(),
        }
    }

    #[test]
    fn a_tool_is_removed_restored_and_replaced() {
        let declared = [tool("read", "one"), tool("bash", "one")];
        let actions = [
            ToolChangeAction::Remove("bash".into()),
            ToolChangeAction::Define(tool("grep", "one")),
            ToolChangeAction::Define(tool("read", "two")),
            ToolChangeAction::Restore("bash".into()),
            ToolChangeAction::Remove("grep".into()),
        ];
        let mut tools = AvailableTools::new(&declared);
        let names = |tools: &AvailableTools<'_>| {
            tools.iter().map(|tool| format!("{} {}", tool.name, tool.description)).collect::<Vec<_>>()
        };
        let mut seen = Vec::new();
        for action in &actions {
            assert!(tools.apply(action));
            seen.push(names(&tools).join(", "));
        }
        let expected = [
            "read one",
            "read one, grep one",
            "read two, grep one",
            "read two, bash one, grep one",
            "read two, bash one",
        ];
        assert_eq!(seen, expected);
        assert_eq!(tools.definition("grep"), Some(&tool("grep", "one")), "it could be restored");
    }

    #[test]
    fn a_tool_that_is_not_defined_can_neither_come_back_nor_go() {
        let actions = [ToolChangeAction::Remove("a".into()), ToolChangeAction::Restore("a".into())];
        let mut tools = AvailableTools::default();
        assert!(!tools.apply(&actions[0]) && !tools.apply(&actions[1]));
        assert_eq!(tools.iter().count(), 0);
    }
}
