//! [`Library`] (P2): the agents, skills and commands that there are. A skill that is loaded is a
//! panel of its own, [`SkillPanel`].

use std::sync::{Arc, Weak};

use hardpan_prompt::Volatility;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshStrategy};
use crate::registry::PanelRegistry;

/// What the key of a loaded skill begins with.
const SKILL_PREFIX: &str = "skill:";

/// Something that the library offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryEntry {
    /// What it is.
    pub kind: LibraryKind,
    /// The name it is called by.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
}

/// What a [`LibraryEntry`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LibraryKind {
    /// A named agent.
    Agent,
    /// A skill, with its text.
    Skill {
        /// The text below the front matter.
        body: String,
    },
    /// A command that the person types.
    Command,
}

/// The library.
pub struct Library {
    entries: Arc<Vec<LibraryEntry>>,
    registry: Weak<PanelRegistry>,
}

impl Library {
    /// The library of a conversation. It adds the skills that are loaded to `registry`, and brings
    /// them back after a resume.
    pub fn new(mut entries: Vec<LibraryEntry>, registry: &Arc<PanelRegistry>) -> Self {
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        registry.register_opener(
            "skill",
            Arc::new(|key, state| {
                let skill = LoadedSkill::deserialize(state?).ok()?;
                Some(Arc::new(SkillPanel { key: key.to_owned(), skill }) as Arc<dyn Panel>)
            }),
        );
        Library { entries: Arc::new(entries), registry: Arc::downgrade(registry) }
    }

    fn section(&self, title: &str, is_meant: fn(&LibraryKind) -> bool) -> Option<String> {
        let entries = self.entries.iter().filter(|entry| is_meant(&entry.kind));
        let lines: Vec<String> =
            entries.map(|entry| format!("- {}: {}", entry.name, entry.description)).collect();
        (!lines.is_empty()).then(|| format!("{title}\n{}", lines.join("\n")))
    }

    fn load(&self, name: &str) -> Result<String, ActionError> {
        let skills = || self.entries.iter().filter(|entry| matches!(entry.kind, LibraryKind::Skill { .. }));
        let Some(LibraryEntry { kind: LibraryKind::Skill { body }, .. }) =
            skills().find(|entry| entry.name == name)
        else {
            let known = skills().map(|entry| entry.name.clone()).collect();
            return Err(ActionError::NotFound { what: "skill", name: name.to_owned(), known });
        };
        let skill = LoadedSkill { name: name.to_owned(), body: body.clone() };
        let panel = SkillPanel { key: format!("{SKILL_PREFIX}{name}"), skill };
        let unknown = || ActionError::UnknownAction { action: "skill_load".into() };
        let id = self.registry.upgrade().ok_or_else(unknown)?.add(Arc::new(panel));
        Ok(format!("Loaded the skill {name} as {id}"))
    }
}

impl Panel for Library {
    fn key(&self) -> &str {
        "library"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P2")
    }

    fn title(&self) -> String {
        "Library".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Derived
    }

    fn volatility(&self) -> Volatility {
        Volatility::Slow
    }

    fn revision(&self) -> u64 {
        0
    }

    fn render(&self) -> Option<String> {
        let sections = [
            self.section("Agents:", |kind| *kind == LibraryKind::Agent),
            self.section("Skills:", |kind| matches!(kind, LibraryKind::Skill { .. })),
            self.section("Commands of the user:", |kind| *kind == LibraryKind::Command),
        ];
        let shown: Vec<String> = sections.into_iter().flatten().collect();
        (!shown.is_empty()).then(|| shown.join("\n\n"))
    }

    fn actions(&self) -> &'static [PanelAction] {
        const { &[PanelAction::new("skill_load", "target: name")] }
    }

    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        match call.action {
            "skill_load" => self.load(call.target()?),
            _ => Err(ActionError::UnknownAction { action: call.action.to_owned() }),
        }
    }
}

/// The text of a skill, as it was loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LoadedSkill {
    name: String,
    body: String,
}

/// A loaded skill. It never changes: what the conversation was told holds until it is closed.
pub struct SkillPanel {
    key: String,
    skill: LoadedSkill,
}

impl Panel for SkillPanel {
    fn key(&self) -> &str {
        &self.key
    }

    fn title(&self) -> String {
        format!("Skill: {}", self.skill.name)
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Static
    }

    fn volatility(&self) -> Volatility {
        Volatility::Static
    }

    fn revision(&self) -> u64 {
        0
    }

    fn render(&self) -> Option<String> {
        Some(self.skill.body.clone())
    }

    fn save(&self) -> Option<Value> {
        serde_json::to_value(&self.skill).ok()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn library(registry: &Arc<PanelRegistry>) -> Arc<Library> {
        let entry =
            |kind, name: &str| LibraryEntry { kind, name: name.into(), description: "what for".into() };
        let entries = vec![
            entry(LibraryKind::Command, "/review"),
            entry(LibraryKind::Skill { body: "Sort stably.".into() }, "sort"),
        ];
        Arc::new(Library::new(entries, registry))
    }

    #[test]
    fn a_loaded_skill_is_a_panel_that_comes_back() {
        let registry = Arc::new(PanelRegistry::default());
        registry.add(library(&registry));
        let now = Timestamp::UNIX_EPOCH;
        let load =
            |target| registry.act(&ActionCall { target: Some(target), ..ActionCall::new("skill_load", now) });
        assert_eq!(load("sort").unwrap(), "Loaded the skill sort as P10");
        assert_eq!(load("sort").unwrap(), "Loaded the skill sort as P10");
        assert_eq!(load("fly").unwrap_err().to_string(), "there is no skill fly; there is sort");
        let items = registry.items(now);
        assert_eq!(
            items[0].body.as_str(),
            "Skills:\n- sort: what for\n\nCommands of the user:\n- /review: what for"
        );
        assert_eq!((&*items[1].title, items[1].body.as_str()), ("Skill: sort", "Sort stably."));

        let resumed = Arc::new(PanelRegistry::default());
        resumed.add(Arc::new(Library::new(Vec::new(), &resumed)));
        resumed.restore(registry.save());
        assert_eq!(resumed.items(now)[..], items[1..]);
    }
}
