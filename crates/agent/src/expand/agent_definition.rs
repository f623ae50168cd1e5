//! [`AgentDefinition`]: another agent than the default one: a system prompt, and what it works with.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ExpansionFault;
use super::discover::check_skill_name;
use super::frontmatter::{self, FrontMatterSplit, one_line};

/// The name of the agent whose text is `system.md`. It has no definition.
pub const DEFAULT_AGENT: &str = "default";

/// The agents that come with Hardpan.
const BUILTIN: [(&str, &str); 3] = [
    ("pirate-coder", include_str!("../../../../prompts/agents/pirate-coder.md")),
    ("plan", include_str!("../../../../prompts/agents/plan.md")),
    ("reviewer", include_str!("../../../../prompts/agents/reviewer.md")),
];

/// What other agents call tools that Hardpan has.
const OTHER_NAMES: [(&str, &str); 3] = [("glob", "find"), ("webfetch", "fetch"), ("multiedit", "edit")];

/// How much an agent may use when another one gives it a task. None for what the settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct TaskBudget {
    /// Requests to the model.
    pub requests: Option<u32>,
    /// Tokens that the model writes.
    pub output_tokens: Option<u64>,
    /// Dollars.
    pub dollars: Option<f64>,
    /// Minutes.
    pub minutes: Option<f64>,
}

/// An agent by another name: the text of its system prompt, its tools and its model.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentDefinition {
    /// The name it is chosen by: `--agent NAME`, `/agent NAME`.
    pub name: String,
    /// What it is for, in one line; may be empty.
    pub description: String,
    /// The text that stands in place of `system.md`.
    pub text: String,
    /// The tools that it may use. None for all of them.
    pub tools: Option<Vec<String>>,
    /// The model that it works with, if that is another one than the person's.
    pub model: Option<String>,
    /// How much it may use when another agent gives it a task.
    pub budget: TaskBudget,
    /// Path of its file. None for a built-in one.
    pub path: Option<PathBuf>,
    /// Whether the model is told that it can give it tasks.
    pub listed: bool,
}

/// The front matter of an agent. Fields that other agents write there are ignored.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AgentMatter {
    name: Option<String>,
    description: Option<String>,
    tools: Option<ToolNames>,
    model: Option<String>,
    #[serde(flatten)]
    budget: TaskBudget,
}

/// The tools of an agent: a list, or names with commas between them.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ToolNames {
    List(Vec<String>),
    Line(String),
}

impl AgentDefinition {
    /// The agents that come with Hardpan.
    pub fn builtin() -> Vec<AgentDefinition> {
        BUILTIN.iter().filter_map(|(name, text)| AgentDefinition::parse(name, None, text).ok()).collect()
    }

    /// Reads an agent's file. Its front matter may give it another name than the file's.
    pub(super) fn parse(file_name: &str, path: Option<&Path>, text: &str) -> Result<Self, ExpansionFault> {
        let FrontMatterSplit { yaml, body } = frontmatter::split(text)?;
        let matter: AgentMatter = frontmatter::parse(yaml.unwrap_or_default())?;
        let name = matter.name.unwrap_or_else(|| file_name.to_owned());
        check_skill_name(&name)?;
        if name == DEFAULT_AGENT {
            return Err(ExpansionFault::DefaultAgent);
        }
        if body.is_empty() {
            return Err(ExpansionFault::NoBody);
        }
        let names = matter.tools.map(|tools| match tools {
            ToolNames::List(names) => names,
            ToolNames::Line(line) => line.split(',').map(str::to_owned).collect(),
        });
        Ok(AgentDefinition {
            name,
            description: one_line(&matter.description.unwrap_or_default()),
            text: body.to_owned(),
            tools: names.map(|names| names.iter().map(|name| own_tool_name(name)).collect()),
            model: matter.model.filter(|model| model != "inherit" && !model.trim().is_empty()),
            budget: matter.budget,
            path: path.map(Path::to_path_buf),
            listed: true,
        })
    }

    /// Whether it may use a tool.
    pub fn allows(&self, tool: &str) -> bool {
        let is_named = |name: &String| match name.strip_suffix(ALL_OF_A_SERVER) {
            Some(server) => tool.split_once("__").is_some_and(|(of, _)| of == server),
            None => name == tool,
        };
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(is_named))
    }
}

/// The end of a name that means all tools of an MCP server: `tickets__*`.
const ALL_OF_A_SERVER: &str = "__*";

/// The name that Hardpan has for a tool: those of Claude Code differ in case, and some in the word. Its
/// tools of MCP servers are `mcp__server__tool`, and `mcp__server` all of one.
fn own_tool_name(name: &str) -> String {
    let name = name.trim();
    match name.strip_prefix("mcp__") {
        Some(tool) if tool.contains("__") => return tool.to_owned(),
        Some(server) => return format!("{server}{ALL_OF_A_SERVER}"),
        // Servers tell capital letters from small ones.
        None if name.contains("__") => return name.to_owned(),
        None => {}
    }
    let name = name.to_lowercase();
    OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, own)| (*own).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<AgentDefinition, ExpansionFault> {
        AgentDefinition::parse("file-name", None, text)
    }

    #[test]
    fn the_builtin_agents_can_be_read() {
        let names: Vec<String> = AgentDefinition::builtin().into_iter().map(|agent| agent.name).collect();
        assert_eq!(names, ["pirate-coder", "plan", "reviewer"]);
        let plan = &AgentDefinition::builtin()[1];
        assert!(plan.allows("read") && !plan.allows("edit") && !plan.allows("bash"));
    }

    #[test]
    fn files_of_other_agents_are_understood() {
        let text = "---\nname: helper\ndescription: >\n  helps\n  people\ntools: Read, Glob, WebFetch, Bash\n\
                    model: inherit\ncolor: red\n---\n\nYou help.\n";
        let agent = parse(text).unwrap();
        assert_eq!(
            (&*agent.name, &*agent.description, &*agent.text),
            ("helper", "helps people", "You help.")
        );
        assert_eq!(agent.tools.unwrap(), ["read", "find", "fetch", "bash"]);
        assert_eq!(agent.model, None);
    }

    #[test]
    fn tools_of_servers_are_named_one_by_one_or_all_of_a_server() {
        let text = "---\ntools: Read, mcp__tickets__createIssue, files__*, mcp__time, web__Get\n---\nx";
        let agent = parse(text).unwrap();
        for tool in ["read", "tickets__createIssue", "files__read", "files__a__b", "time__now", "web__Get"] {
            assert!(agent.allows(tool), "{tool}");
        }
        for tool in
            ["tickets__createissue", "tickets__other", "filesystem__read", "files", "web__Put", "bash"]
        {
            assert!(!agent.allows(tool), "{tool}");
        }
    }

    #[test]
    fn a_file_without_front_matter_is_an_agent_with_all_tools() {
        let agent = parse("You help.").unwrap();
        assert_eq!((&*agent.name, agent.tools), ("file-name", None));
    }

    #[test]
    fn nobody_replaces_the_default_agent_and_no_agent_is_empty() {
        assert!(matches!(parse("---\nname: default\n---\nx"), Err(ExpansionFault::DefaultAgent)));
        assert!(matches!(parse("---\nname: Bad Name\n---\nx"), Err(ExpansionFault::SkillName { .. })));
        assert!(matches!(parse("---\nname: a\n---\n"), Err(ExpansionFault::NoBody)));
    }
}
