//! [`ConventionsConfig`]: which files that people wrote for this and other agents are used.

use hardpan_agent::expand::ForeignFolders;
use hardpan_workspace::InstructionKinds;
use serde::Deserialize;

/// `[conventions]`: a switch for each file and folder that is read by its name. All are on by default,
/// except for `home_listed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConventionsConfig {
    /// `AGENTS.md`.
    pub agents_md: Option<bool>,
    /// `CLAUDE.md` and `.claude/CLAUDE.md`.
    pub claude_md: Option<bool>,
    /// `CLAUDE.local.md`.
    pub claude_local_md: Option<bool>,
    /// `.github/copilot-instructions.md`.
    pub copilot_instructions: Option<bool>,
    /// `.cursor/rules`.
    pub cursor_rules: Option<bool>,
    /// Files that instructions name with `@path`.
    pub imports: Option<bool>,
    /// `.claude/commands`.
    pub claude_commands: Option<bool>,
    /// `.claude/skills`.
    pub claude_skills: Option<bool>,
    /// `.agents/skills`.
    pub agents_skills: Option<bool>,
    /// `~/.claude/CLAUDE.md`.
    pub home_claude_md: Option<bool>,
    /// `~/.codex/AGENTS.md`.
    pub home_codex_md: Option<bool>,
    /// `~/.claude/commands`.
    pub home_claude_commands: Option<bool>,
    /// `~/.codex/prompts`.
    pub home_codex_prompts: Option<bool>,
    /// `~/.claude/skills`.
    pub home_claude_skills: Option<bool>,
    /// `~/.agents/skills`.
    pub home_agents_skills: Option<bool>,
    /// `~/.claude/agents`.
    pub home_claude_agents: Option<bool>,
    /// Whether the model is told of the skills and agents of the home folder.
    pub home_listed: Option<bool>,
}

impl ConventionsConfig {
    /// These with those of `above` laid over them.
    pub(super) fn merged_with(self, above: Self) -> Self {
        ConventionsConfig {
            agents_md: above.agents_md.or(self.agents_md),
            claude_md: above.claude_md.or(self.claude_md),
            claude_local_md: above.claude_local_md.or(self.claude_local_md),
            copilot_instructions: above.copilot_instructions.or(self.copilot_instructions),
            cursor_rules: above.cursor_rules.or(self.cursor_rules),
            imports: above.imports.or(self.imports),
            claude_commands: above.claude_commands.or(self.claude_commands),
            claude_skills: above.claude_skills.or(self.claude_skills),
            agents_skills: above.agents_skills.or(self.agents_skills),
            home_claude_md: above.home_claude_md.or(self.home_claude_md),
            home_codex_md: above.home_codex_md.or(self.home_codex_md),
            home_claude_commands: above.home_claude_commands.or(self.home_claude_commands),
            home_codex_prompts: above.home_codex_prompts.or(self.home_codex_prompts),
            home_claude_skills: above.home_claude_skills.or(self.home_claude_skills),
            home_agents_skills: above.home_agents_skills.or(self.home_agents_skills),
            home_claude_agents: above.home_claude_agents.or(self.home_claude_agents),
            home_listed: above.home_listed.or(self.home_listed),
        }
    }

    /// The same without what concerns the home folder, which no project decides.
    pub(super) fn without_home(self) -> Self {
        ConventionsConfig {
            home_claude_md: None,
            home_codex_md: None,
            home_claude_commands: None,
            home_codex_prompts: None,
            home_claude_skills: None,
            home_agents_skills: None,
            home_claude_agents: None,
            home_listed: None,
            ..self
        }
    }

    /// The instruction files that are read.
    pub fn instruction_kinds(&self) -> InstructionKinds {
        InstructionKinds {
            agents_md: self.agents_md.unwrap_or(true),
            claude_md: self.claude_md.unwrap_or(true),
            claude_local_md: self.claude_local_md.unwrap_or(true),
            copilot_instructions: self.copilot_instructions.unwrap_or(true),
            cursor_rules: self.has_cursor_rules(),
            imports: self.imports.unwrap_or(true),
            home_claude_md: self.home_claude_md.unwrap_or(true),
            home_codex_md: self.home_codex_md.unwrap_or(true),
        }
    }

    /// The folders of skills and commands that are searched.
    pub fn foreign_folders(&self) -> ForeignFolders {
        ForeignFolders {
            agents_skills: self.agents_skills.unwrap_or(true),
            claude_skills: self.claude_skills.unwrap_or(true),
            claude_commands: self.claude_commands.unwrap_or(true),
            cursor_rules: self.has_cursor_rules(),
            home_claude_commands: self.home_claude_commands.unwrap_or(true),
            home_codex_prompts: self.home_codex_prompts.unwrap_or(true),
            home_claude_skills: self.home_claude_skills.unwrap_or(true),
            home_agents_skills: self.home_agents_skills.unwrap_or(true),
            home_claude_agents: self.home_claude_agents.unwrap_or(true),
            home_listed: self.home_listed.unwrap_or(false),
        }
    }

    /// Whether the rules of Cursor are used.
    pub fn has_cursor_rules(&self) -> bool {
        self.cursor_rules.unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_decides_nothing_about_the_home_folder() {
        let user = ConventionsConfig { home_codex_md: Some(false), ..ConventionsConfig::default() };
        let project = ConventionsConfig {
            claude_md: Some(false),
            home_claude_md: Some(false),
            home_codex_md: Some(true),
            home_claude_commands: Some(false),
            home_codex_prompts: Some(false),
            home_claude_skills: Some(false),
            home_agents_skills: Some(false),
            home_claude_agents: Some(false),
            home_listed: Some(true),
            ..ConventionsConfig::default()
        };
        let merged = user.merged_with(project.without_home());
        assert_eq!(merged, ConventionsConfig { claude_md: Some(false), ..user });
        let folders = merged.foreign_folders();
        assert!(folders.home_claude_skills && folders.home_claude_commands && !folders.home_listed);
    }
}
