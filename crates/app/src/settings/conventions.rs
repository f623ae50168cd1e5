//! [`ConventionsConfig`]: which files that people wrote for this and other agents are used.

use hardpan_agent::expand::ForeignFolders;
use hardpan_workspace::InstructionKinds;
use serde::Deserialize;

/// `[conventions]`: a switch for each file and folder that is read by its name. All are on by default.
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
        }
    }

    /// The folders of skills and commands that are searched.
    pub fn foreign_folders(&self) -> ForeignFolders {
        ForeignFolders {
            agents_skills: self.agents_skills.unwrap_or(true),
            claude_skills: self.claude_skills.unwrap_or(true),
            claude_commands: self.claude_commands.unwrap_or(true),
            cursor_rules: self.has_cursor_rules(),
        }
    }

    /// Whether the rules of Cursor are used.
    pub fn has_cursor_rules(&self) -> bool {
        self.cursor_rules.unwrap_or(true)
    }
}
