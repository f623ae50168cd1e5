//! The one recipe for the system prompt.

use std::sync::Arc;

use hardpan_prompt::{Block, Content, Hash, Kind, Origin, Place, Segment, Text};

use crate::layout::{Input, LayoutName};
use crate::snapshot::{AgentMode, PromptType};
use crate::texts::fill;

/// The system prompt of a layout: the agent's text, extra text, tool snippets, guidelines, appended text, project
/// files, skills, the tools hint, where Hardpan's own documents are; then, except in `strata`, the date and the working directory.
pub fn segments(input: &Input<'_>, layout: LayoutName) -> Vec<Segment> {
    let system = &input.snapshot.system;
    let phrases = &input.texts.phrases.system;
    let mut recipe = Recipe { input, segments: Vec::new() };
    if let Some(whole) = system.whole.as_ref().filter(|whole| !whole.trim().is_empty()) {
        recipe.add("extension", whole);
        return recipe.segments;
    }
    // A model without tools is told of none.
    let tools = if input.target.model.tools { input.snapshot.active_tools() } else { &[] };
    for (name, text) in base(input, layout) {
        recipe.add(name, &text);
    }
    if let Some(extra) = system.extra.as_ref().or(input.texts.extra.as_ref()) {
        recipe.add("system_extra", extra);
    }
    let snippets: Vec<String> = tools
        .iter()
        .filter_map(|tool| Some(format!("- {}: {}", tool.name, tool.snippet.as_ref()?)))
        .collect();
    recipe.list("tool snippets", &phrases.tools, "tools", &snippets);
    let mut guidelines: Vec<String> = Vec::new();
    for line in tools.iter().flat_map(|tool| &tool.guidelines).map(|line| format!("- {line}")) {
        if !guidelines.contains(&line) {
            guidelines.push(line);
        }
    }
    recipe.list("guidelines", &phrases.guidelines, "guidelines", &guidelines);
    if let Some(append) = &system.append {
        recipe.add("append", append);
    }
    let files: Vec<String> = system
        .project_files
        .iter()
        .map(|(path, content)| {
            fill(&phrases.project_file, &[("path", path), ("content", content.trim_end())])
        })
        .collect();
    if !files.is_empty() {
        recipe.add_string("project files", fill(&phrases.project_files, &[("files", &files.join("\n\n"))]));
    }
    let skills: Vec<String> = system
        .skills
        .iter()
        .map(|skill| {
            let values = [
                ("name", &*skill.name),
                ("description", &*skill.description),
                ("location", &*skill.location),
            ];
            fill(&phrases.skill, &values)
        })
        .collect();
    recipe.list("skills", &phrases.skills, "skills", &skills);
    if !tools.is_empty() {
        recipe.add("tools hint", &phrases.tools_hint);
        recipe.add("docs", &phrases.docs);
    }
    if layout != LayoutName::Strata {
        let mut lines = vec![fill(&phrases.date, &[("now", &crate::time::iso(input.snapshot.now))])];
        if let Some(path) = &input.snapshot.working_directory {
            lines.push(fill(&phrases.working_directory, &[("path", path)]));
        }
        recipe.add_string("date and directory", lines.join("\n"));
    }
    recipe.segments
}

/// The system prompt as one block; none if it says nothing.
pub fn block(input: &Input<'_>, layout: LayoutName, place: Place) -> Option<Block> {
    let segments = segments(input, layout);
    (!segments.is_empty()).then(|| Block::new(place, Content::Text(segments)))
}

/// The whole text.
pub fn text(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.text.as_str()).collect()
}

/// A name for the system message that depends on nothing but its content.
pub fn id(segments: &[Segment]) -> Arc<str> {
    let hash = Hash::of(text(segments).as_bytes()).to_string();
    format!("system-{}", &hash[..16]).into()
}

struct Recipe<'a> {
    input: &'a Input<'a>,
    segments: Vec<Segment>,
}

impl Recipe<'_> {
    fn add(&mut self, name: &'static str, text: &Text) {
        if text.trim().is_empty() {
            return;
        }
        let origin = Origin::rule(Kind::System, name);
        let first = self.segments.is_empty();
        let text = if first {
            text.clone()
        } else {
            self.input.memo.text("system part", &[], text.hash(), || format!("\n\n{text}"))
        };
        self.segments.push(Segment { text, origin });
    }

    fn add_string(&mut self, name: &'static str, text: String) {
        self.add(name, &Text::new(text));
    }

    fn list(&mut self, name: &'static str, template: &str, placeholder: &str, lines: &[String]) {
        if !lines.is_empty() {
            self.add_string(name, fill(template, &[(placeholder, &lines.join("\n"))]));
        }
    }
}

fn base(input: &Input<'_>, layout: LayoutName) -> Vec<(&'static str, Text)> {
    let snapshot = input.snapshot;
    let system = &snapshot.system;
    let default_agent = || default_agent(input);
    if layout != LayoutName::Inline {
        return vec![("agent", system.agent.clone().unwrap_or_else(default_agent))];
    }
    let (base, is_agent) = match system.prompt_type {
        PromptType::General => (Some(system.agent.clone().unwrap_or_else(default_agent)), false),
        PromptType::Agent => (Some(input.texts.agent.clone()), true),
        PromptType::Custom => (system.custom.clone(), false),
    };
    let base = base.filter(|text| !text.trim().is_empty());
    let base = base
        .map_or_else(|| ("fallback", input.texts.phrases.system.fallback.clone()), |text| ("agent", text));
    if snapshot.agent_mode == AgentMode::On && !is_agent {
        vec![("agent prefix", input.texts.agent.clone()), base]
    } else {
        vec![base]
    }
}

/// `system.md`, with its section on edit blocks only where these are in use.
fn default_agent(input: &Input<'_>) -> Text {
    let text = &input.texts.system;
    let form = if input.snapshot.system.edit_blocks { "system.md, edit blocks" } else { "system.md" };
    input.memo.text(form, &[], text.hash(), || {
        let mut kept = String::with_capacity(text.len());
        let mut inside = false;
        for line in text.lines() {
            match line.trim() {
                "<!-- edit blocks -->" => inside = true,
                "<!-- end -->" => inside = false,
                _ if inside && !input.snapshot.system.edit_blocks => {}
                _ => {
                    kept.push_str(line);
                    kept.push('\n');
                }
            }
        }
        kept.truncate(kept.trim_end().len());
        kept
    })
}
