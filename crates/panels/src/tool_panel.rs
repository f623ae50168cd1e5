//! [`ToolPanel`] (P4): which tools are on and off.
//!
//! The model can switch tools off for itself, and on again. The declared tools stay what they are,
//! since another list would lose the cache of everything: a call is refused with the reason instead.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::Volatility;
use hardpan_tools::{ToolRegistry, ToolState};
use serde::Deserialize;
use serde_json::Value;

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshStrategy};

/// The list of tools.
pub struct ToolPanel {
    tools: ToolRegistry,
}

impl ToolPanel {
    /// The panel of these tools.
    pub fn new(tools: ToolRegistry) -> Self {
        ToolPanel { tools }
    }

    fn switch(&self, name: &str, is_on: bool) -> Result<String, ActionError> {
        let changed = self.tools.suspend(name, !is_on).map_err(ActionError::failed)?;
        let word = if is_on { "on" } else { "off" };
        // What the person switched off, the model does not switch on.
        let listed = self.tools.list().into_iter().find(|tool| &*tool.name == name);
        if is_on && listed.is_some_and(|tool| tool.state == ToolState::Off) {
            return Err(ActionError::Invalid {
                what: "tool that you switched off",
                name: name.to_owned(),
                expected: "another tool, or ask the user",
            });
        }
        Ok(if changed { format!("{name} is {word}") } else { format!("{name} is {word} already") })
    }
}

impl Panel for ToolPanel {
    fn key(&self) -> &str {
        "tools"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P4")
    }

    fn title(&self) -> String {
        "Tools".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Derived
    }

    fn volatility(&self) -> Volatility {
        Volatility::Slow
    }

    fn revision(&self) -> u64 {
        self.tools.version()
    }

    fn render(&self) -> Option<String> {
        let suspended = self.tools.suspended();
        let (mut on, mut waiting, mut off, mut off_by_model) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut on_demand = 0;
        for tool in self.tools.list() {
            let list = match tool.state {
                ToolState::Off => &mut off,
                ToolState::On if tool.is_on_demand => {
                    on_demand += 1;
                    continue;
                }
                ToolState::On if !tool.is_declared => &mut waiting,
                ToolState::On if suspended.contains(&tool.name) => &mut off_by_model,
                ToolState::On => &mut on,
            };
            list.push(tool.name.to_string());
        }
        let line = |title: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{title}: {}", names.join(", ")))
        };
        // Their names are in the description of the tool that finds them.
        let on_demand = (on_demand > 0).then(|| format!("on demand: {on_demand} tools of servers"));
        let lines = [
            line("on", &on),
            on_demand,
            line("on once the tools are declared anew", &waiting),
            line("off, by the user", &off),
            line("off, by you", &off_by_model),
        ];
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn actions(&self) -> &'static [PanelAction] {
        const {
            &[
                PanelAction::new("tool_off", "target: name; its calls are refused"),
                PanelAction::new("tool_on", "target: name"),
            ]
        }
    }

    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        match call.action {
            "tool_off" => self.switch(call.target()?, false),
            "tool_on" => self.switch(call.target()?, true),
            _ => Err(ActionError::UnknownAction { action: call.action.to_owned() }),
        }
    }

    fn save(&self) -> Option<Value> {
        let suspended = self.tools.suspended();
        (!suspended.is_empty()).then(|| serde_json::to_value(suspended).unwrap_or_default())
    }

    fn restore(&self, state: Option<&Value>) {
        let names = state.and_then(|state| BTreeSet::<Arc<str>>::deserialize(state).ok());
        self.tools.restore_suspended(names.unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use hardpan_tools::{ToolUnavailable, read_only_tools};
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_tool_that_is_off_stays_declared_and_is_refused() {
        let tools = ToolRegistry::built_in(read_only_tools());
        let panel = ToolPanel::new(tools.clone());
        let act = |action, target| {
            let call = ActionCall { target: Some(target), ..ActionCall::new(action, Timestamp::UNIX_EPOCH) };
            panel.act(&call).map_err(|error| error.to_string())
        };
        let declared = tools.declarations();
        assert_eq!(act("tool_off", "grep").unwrap(), "grep is off");
        assert_eq!(act("tool_off", "grep").unwrap(), "grep is off already");
        assert_eq!(tools.declarations(), declared);
        assert_eq!(tools.find("grep").err(), Some(ToolUnavailable::Suspended));
        assert_eq!(panel.render().unwrap(), "on: read, find, ls\noff, by you: grep");

        let (other, restored) = (ToolRegistry::built_in(read_only_tools()), panel.save());
        let resumed = ToolPanel::new(other.clone());
        resumed.restore(restored.as_ref());
        assert_eq!(resumed.render(), panel.render());
        assert!(other.find("grep").is_err());

        assert_eq!(act("tool_on", "grep").unwrap(), "grep is on");
        assert!(tools.find("grep").is_ok());
        tools.switch("ls", ToolState::Off).unwrap();
        assert_eq!(panel.render().unwrap(), "on: read, grep, find\noff, by the user: ls");
        assert!(act("tool_on", "ls").unwrap_err().contains("ask the user"));
        tools.set_declared(Some(["read", "grep", "ls"].map(Arc::from).into()));
        let waits = "on: read, grep\non once the tools are declared anew: find\noff, by the user: ls";
        assert_eq!(panel.render().unwrap(), waits);
        assert!(act("tool_off", "fly").unwrap_err().starts_with("there is no tool named fly"));
    }
}
