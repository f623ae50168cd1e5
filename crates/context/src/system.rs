//! [`system_prompt_segments`]: how the system prompt is put together, for every layout.

use std::sync::Arc;

use hardpan_prompt::{Hash, ItemKind, Origin, Segment, Text, Tool};

use crate::layout::{Layout, LayoutInput, RepositoryView};
use crate::snapshot::{AgentMode, PromptType};
use crate::texts::fill_template;

/// The line of `system.md` at which its section on edit blocks begins.
const EDIT_BLOCKS_SECTION: &str = "<!-- edit blocks -->";

/// The system prompt of a layout, one segment per part: the agent's text, extra text, tool
/// snippets, guidelines, appended text, project files, skills, the tools hint, where Hardpan's own
/// documentation is. Nothing in it changes from request to request.
pub fn system_prompt_segments(input: &LayoutInput<'_>, layout: &dyn Layout) -> Vec<Segment> {
    segments_with_tools(input, layout, input.snapshot.active_tools())
}

/// The system prompt that mentions these tools.
pub fn segments_with_tools(input: &LayoutInput<'_>, layout: &dyn Layout, tools: &[Tool]) -> Vec<Segment> {
    let system = &input.snapshot.system;
    let phrases = &input.texts.phrases.system;
    let mut builder = SystemPromptBuilder { input, segments: Vec::new() };
    if let Some(whole) = system.whole.as_ref().filter(|whole| !whole.trim().is_empty()) {
        builder.add("extension", whole);
        return builder.segments;
    }
    // A model without tools is told of none.
    let tools = if input.target.model.tools { tools } else { &[] };
    for (name, text) in agent_texts(input, layout) {
        builder.add(name, &text);
    }
    if system.edit_blocks && !tells_edit_protocol(input, layout) {
        builder.add("edit blocks", &input.texts.reminder);
    }
    if let Some(extra) = system.extra.as_ref().or(input.texts.extra.as_ref()) {
        builder.add("system_extra", extra);
    }
    // The declarations say what the tools do; there is a list only if a tool has more to say, and then
    // of all of them.
    let is_listed = tools.iter().any(|tool| tool.snippet.is_some());
    let in_short = |tool: &Tool| match &tool.snippet {
        Some(snippet) => format!("- {}: {snippet}", tool.name),
        None => format!("- {}: {}", tool.name, tool.description),
    };
    let snippets: Vec<String> = tools.iter().filter(|_| is_listed).map(in_short).collect();
    builder.add_list("tool snippets", &phrases.tools, "tools", &snippets);
    let mut guidelines: Vec<String> = Vec::new();
    for line in tools.iter().flat_map(|tool| &tool.guidelines).map(|line| format!("- {line}")) {
        if !guidelines.contains(&line) {
            guidelines.push(line);
        }
    }
    builder.add_list("guidelines", &phrases.guidelines, "guidelines", &guidelines);
    if let Some(append) = &system.append {
        builder.add("append", append);
    }
    let files: Vec<String> = system
        .project_files
        .iter()
        .map(|(path, content)| {
            fill_template(&phrases.project_file, &[("path", path), ("content", content.trim_end())])
        })
        .collect();
    if !files.is_empty() {
        builder.add_string(
            "project files",
            fill_template(&phrases.project_files, &[("files", &files.join("\n\n"))]),
        );
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
            fill_template(&phrases.skill, &values)
        })
        .collect();
    builder.add_list("skills", &phrases.skills, "skills", &skills);
    if !input.target.model.tools && system.edit_blocks {
        builder.add("no tools", &phrases.no_tools);
    }
    if !tools.is_empty() {
        builder.add("tools hint", &phrases.tools_hint);
        builder.add("docs", &phrases.docs);
    }
    builder.segments
}

/// The text of all segments.
pub fn joined_text(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.text.as_str()).collect()
}

/// An id for the system message that depends on its content alone.
pub fn system_message_id(segments: &[Segment]) -> Arc<str> {
    let hash = Hash::of(joined_text(segments).as_bytes()).to_string();
    format!("system-{}", &hash[..16]).into()
}

struct SystemPromptBuilder<'a> {
    input: &'a LayoutInput<'a>,
    segments: Vec<Segment>,
}

impl SystemPromptBuilder<'_> {
    fn add(&mut self, name: &'static str, text: &Text) {
        if text.trim().is_empty() {
            return;
        }
        let origin = Origin::rule(ItemKind::System, name);
        let first = self.segments.is_empty();
        let text = if first {
            text.clone()
        } else {
            self.input.render_cache.get_or_render("system part", &[], text.hash(), || format!("\n\n{text}"))
        };
        self.segments.push(Segment { text, origin });
    }

    fn add_string(&mut self, name: &'static str, text: String) {
        self.add(name, &Text::new(text));
    }

    fn add_list(&mut self, name: &'static str, template: &str, placeholder: &str, lines: &[String]) {
        if !lines.is_empty() {
            self.add_string(name, fill_template(template, &[(placeholder, &lines.join("\n"))]));
        }
    }
}

fn agent_texts(input: &LayoutInput<'_>, layout: &dyn Layout) -> Vec<(&'static str, Text)> {
    let snapshot = input.snapshot;
    let system = &snapshot.system;
    let default_agent = || default_agent(input, layout);
    if !layout.has_prompt_types() {
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

/// Whether the agent's text is `system.md`, with its section on edit blocks.
fn tells_edit_protocol(input: &LayoutInput<'_>, layout: &dyn Layout) -> bool {
    let system = &input.snapshot.system;
    let is_general = !layout.has_prompt_types() || system.prompt_type == PromptType::General;
    let mut lines = input.texts.system.lines();
    is_general && system.agent.is_none() && lines.any(|line| line.trim() == EDIT_BLOCKS_SECTION)
}

/// `system.md`, with its sections on edit blocks and on the symbol map only where these are in use.
/// Neither depends on what is in the folder: the system prompt must not change with it.
fn default_agent(input: &LayoutInput<'_>, layout: &dyn Layout) -> Text {
    let text = &input.texts.system;
    let edit_blocks = input.snapshot.system.edit_blocks;
    let symbol_map = layout.repository_view() == RepositoryView::Map;
    let form = format!("system.md, edit blocks: {edit_blocks}, symbol map: {symbol_map}");
    input.render_cache.get_or_render("system.md", &[&form], text.hash(), || {
        let mut kept = String::with_capacity(text.len());
        let mut is_left_out = false;
        for line in text.lines() {
            match line.trim() {
                EDIT_BLOCKS_SECTION => is_left_out = !edit_blocks,
                "<!-- symbol map -->" => is_left_out = !symbol_map,
                "<!-- end -->" => is_left_out = false,
                _ if is_left_out => {}
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
