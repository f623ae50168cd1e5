//! [`PromptTexts`]: the texts that a model reads. They are the files of `prompts/`, compiled in;
//! users can override each with a file of the same name.

use std::path::Path;

use hardpan_prompt::Text;
use serde::Deserialize;
use thiserror::Error;

/// The name and built-in content of every file that can be overridden.
pub const PROMPT_FILES: [(&str, &str); 6] = [
    ("system.md", include_str!("../../../prompts/system.md")),
    ("agent.md", include_str!("../../../prompts/agent.md")),
    ("commit_message.md", include_str!("../../../prompts/commit_message.md")),
    ("compaction.md", include_str!("../../../prompts/compaction.md")),
    ("reminder.md", include_str!("../../../prompts/reminder.md")),
    (PHRASES_FILE, PHRASES),
];

/// Name of the file with the short texts. An override need not have all of them.
pub const PHRASES_FILE: &str = "phrases.toml";

/// The built-in content of [`PHRASES_FILE`].
pub const PHRASES: &str = include_str!("../../../prompts/phrases.toml");

/// The optional file of project-specific instructions; it has no built-in content.
pub const EXTRA_INSTRUCTIONS_FILE: &str = "system_extra.md";

/// Why a prompt override cannot be used. It is an error, so that the built-in text is never used
/// silently in its place.
#[derive(Debug, Error)]
pub enum PromptTextsError {
    /// `phrases.toml` is not valid TOML, or has unknown sections or phrases.
    #[error(
        "{file}: {message}\nRemedy: compare with the built-in text (`hardpan prompt --file phrases.toml`), or remove the line."
    )]
    Phrases {
        /// The path, with the line where it is known.
        file: String,
        /// What the parser expected and found.
        message: String,
    },
    /// A file has a name that overrides nothing.
    #[error("{file}: there is no prompt of this name; rename it to one of {known}, or remove it")]
    Unknown {
        /// The path of the file.
        file: String,
        /// The names that can be overridden, joined by commas.
        known: String,
    },
    /// An override holds nothing but whitespace.
    #[error("{file} is empty: a model needs some text here; remove the file to use the built-in one")]
    Empty {
        /// The path of the file.
        file: String,
    },
}

macro_rules! phrases {
    ($($(#[$doc:meta])* $section:ident: $name:ident { $($field:ident),* $(,)? })*) => {
        /// The short texts, by where they are used. `prompts/phrases.toml` holds them with their
        /// comments.
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(missing_docs)]
        pub struct Phrases { $($(#[$doc])* pub $section: $name,)* }
        $(
            /// One section of `prompts/phrases.toml`.
            #[derive(Clone, Debug, Deserialize)]
            #[serde(deny_unknown_fields)]
            #[allow(missing_docs)]
            pub struct $name { $(pub $field: Text,)* }
        )*

        /// The same with every phrase optional, as in an override. It is parsed only to find the
        /// line of a mistake.
        mod partial {
            use super::{Deserialize, Text};

            #[derive(Deserialize)]
            #[serde(deny_unknown_fields)]
            #[allow(dead_code, reason = "it is only read")]
            pub struct Phrases { $($section: Option<$name>,)* }
            $(
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                #[allow(dead_code, reason = "it is only read")]
                struct $name { $($field: Option<Text>,)* }
            )*
        }
    };
}

phrases! {
    system: SystemPhrases { tools, guidelines, project_files, project_file, skills, skill, tools_hint, no_tools, docs, fallback, date, working_directory }
    history: HistoryPhrases {
        opening, go_on, bash, bash_failed, bash_killed, compaction_summary, branch_summary, no_output,
        image_left_out, image_name, call_as_text, result_as_text, failure_as_text, context_ack,
        changed,
    }
    panels: PanelsPhrases {
        header, timestamp, body, file_name, footer, footer_messages, footer_message, footer_datetime, footer_ack,
        reinjection, reinjection_ack, tool, history_title, history_message, history_call,
    }
    tiers: TiersPhrases {
        repo_map, repo_map_continued, file_tree, file_tree_folders, file_list, url_context, url_separator,
        files_l0, files_l1, files_l2, files_l3, files_active, file, panels, panel, ok, url_ok,
    }
    agent: AgentPhrases {
        skipped, blocked, aborted, not_started, unknown_tool, tool_off, tool_suspended, layout_tool, denied, looping, tool_broke,
        summary_instructions, branch_request, files_read, files_changed, undone,
        edit_blocks, edit_blocks_failed, edit_blocks_cut, edit_block_opened, edit_block_unseen,
    }
    task: TaskPhrases {
        tool, agents, agent, default_agent, task_argument, context_argument, prompt, prompt_on_prefix, own_instructions,
        refused, refused_panel, refused_task, stopped, no_answer, cut,
    }
    commit: CommitPhrases { request, diff, summaries, summarise, again, cut, unread }
    overview: OverviewPhrases { text }
    inline: InlinePhrases { context, image, directory_map }
    strata: StrataPhrases {
        tool, item, base_ack, update_diff, update_body, update_closed, stub, stubs, paged_out, stub_argument, tail, tail_now, tail_directory, tail_item,
    }
}

/// All texts that a model reads, with the user's overrides applied.
#[derive(Clone, Debug)]
pub struct PromptTexts {
    /// `system.md`: the default agent.
    pub system: Text,
    /// `system_extra.md`: project-specific instructions, if there are any.
    pub extra: Option<Text>,
    /// `agent.md`: the agent prefix of `inline`.
    pub agent: Text,
    /// `commit_message.md`: how to write a commit message.
    pub commit_message: Text,
    /// `compaction.md`: how to summarise a conversation.
    pub compaction: Text,
    /// `reminder.md`: the edit format in short.
    pub reminder: Text,
    /// `phrases.toml`: the short texts.
    pub phrases: Phrases,
}

/// A file that replaces a built-in text of the same name.
#[derive(Clone, Debug)]
pub struct TextOverride {
    /// The path; its last component says which text it replaces.
    pub path: String,
    /// The text of the file.
    pub content: String,
}

impl PromptTexts {
    /// The built-in texts, without overrides.
    pub fn builtin() -> Result<Self, PromptTextsError> {
        PromptTexts::with_overrides(&[])
    }

    /// The built-in texts with overrides applied; later ones win over earlier ones.
    pub fn with_overrides(overrides: &[TextOverride]) -> Result<Self, PromptTextsError> {
        let mut files = PROMPT_FILES.map(|(name, text)| (name, Text::new(text.trim_end())));
        let mut phrases: toml::Table = parse_table(PHRASES_FILE, PHRASES)?;
        let mut extra = None;
        for TextOverride { path, content } in overrides {
            let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path);
            if name == EXTRA_INSTRUCTIONS_FILE {
                extra = (!content.trim().is_empty()).then(|| Text::new(content.trim_end()));
                continue;
            }
            let Some(file) = files.iter_mut().find(|(known, _)| *known == name) else {
                let known = PROMPT_FILES
                    .iter()
                    .map(|(name, _)| *name)
                    .chain([EXTRA_INSTRUCTIONS_FILE])
                    .collect::<Vec<_>>()
                    .join(", ");
                return Err(PromptTextsError::Unknown { file: path.clone(), known });
            };
            if content.trim().is_empty() {
                return Err(PromptTextsError::Empty { file: path.clone() });
            }
            if name == PHRASES_FILE {
                let table = parse_table(path, content)?;
                toml::from_str::<partial::Phrases>(content)
                    .map_err(|error| phrases_error(path, content, &error))?;
                merge_tables(&mut phrases, table);
            }
            file.1 = Text::new(content.trim_end());
        }
        let [system, agent, commit_message, compaction, reminder, _] = files.map(|(_, text)| text);
        let phrases = check_phrases(PHRASES_FILE, &phrases)?;
        Ok(PromptTexts { system, extra, agent, commit_message, compaction, reminder, phrases })
    }
}

fn parse_table(file: &str, content: &str) -> Result<toml::Table, PromptTextsError> {
    content.parse().map_err(|error| phrases_error(file, content, &error))
}

fn phrases_error(file: &str, content: &str, error: &toml::de::Error) -> PromptTextsError {
    let line = error.span().map(|span| content[..span.start.min(content.len())].matches('\n').count() + 1);
    let file = line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
    PromptTextsError::Phrases { file, message: error.message().to_owned() }
}

fn check_phrases(file: &str, table: &toml::Table) -> Result<Phrases, PromptTextsError> {
    table.clone().try_into().map_err(|error: toml::de::Error| PromptTextsError::Phrases {
        file: file.to_owned(),
        message: error.to_string().trim().replace('\n', " "),
    })
}

fn merge_tables(below: &mut toml::Table, above: toml::Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => merge_tables(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Replaces `{name}` placeholders in a template. One pass: braces within a value are not expanded.
pub fn fill_template(template: &str, values: &[(&str, &str)]) -> String {
    let mut filled =
        String::with_capacity(template.len() + values.iter().map(|(_, v)| v.len()).sum::<usize>());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        filled.push_str(&rest[..open]);
        let name_and_more = &rest[open + 1..];
        let known = name_and_more.find('}').and_then(|close| {
            let value = values.iter().find(|(name, _)| *name == &name_and_more[..close])?;
            Some((close, value.1))
        });
        match known {
            Some((close, value)) => {
                filled.push_str(value);
                rest = &name_and_more[close + 1..];
            }
            None => {
                filled.push('{');
                rest = name_and_more;
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> TextOverride {
        TextOverride { path: path.into(), content: content.into() }
    }

    #[test]
    fn what_is_filled_in_is_not_expanded_again() {
        assert_eq!(fill_template("{a}-{b}-{c}", &[("a", "{b}"), ("b", "x")]), "{b}-x-{c}");
        assert_eq!(fill_template("a { b } {", &[("b", "x")]), "a { b } {");
    }

    #[test]
    fn an_override_replaces_one_text_and_leaves_the_rest() {
        let texts = PromptTexts::with_overrides(&[
            file("/c/agent.md", "Be brief.\n"),
            file("/c/phrases.toml", "[tiers]\nok = \"Fine.\"\n"),
        ])
        .unwrap();
        assert_eq!(&*texts.agent, "Be brief.");
        assert_eq!(&*texts.phrases.tiers.ok, "Fine.");
        assert_eq!(&*texts.phrases.tiers.url_ok, "Ok, I've reviewed the URL content.");
    }

    #[test]
    fn a_malformed_override_names_the_file_and_the_line() {
        let error = |content| {
            PromptTexts::with_overrides(&[file("/c/phrases.toml", content)]).unwrap_err().to_string()
        };
        assert!(error("[tiers]\nok = Fine\n").starts_with("/c/phrases.toml:2: "));
        assert!(error("[tiers]\nokay = \"Fine\"\n").starts_with("/c/phrases.toml:2: unknown field `okay`"));
        assert!(error("\n[tiers]\n\nok = 5\n").starts_with("/c/phrases.toml:4: invalid type: integer `5`"));
        let wrong_name = PromptTexts::with_overrides(&[file("/c/sistem.md", "x")]).unwrap_err().to_string();
        assert!(wrong_name.contains("system.md"), "{wrong_name}");
        assert!(PromptTexts::with_overrides(&[file("/c/system.md", " \n")]).is_err());
    }
}
