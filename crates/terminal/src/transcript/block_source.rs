//! [`BlockSource`]: what a block of the conversation is made of, and its lines for a width.

use std::borrow::Cow;
use std::time::Duration;

use hardpan_prompt::{Image, MediaType};
use ratatui::text::{Line, Span};

use crate::blocks::format::short_count;
use crate::blocks::{RunSummary, ToolCall, prompt_lines, reasoning_line, render_markdown};
use crate::text::{escape, wrap_hanging, wrap_indented};
use crate::theme::{Role, Theme};

/// What a block is made of. Its lines are made when its width is known.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockSource {
    /// What the person sent.
    Prompt(String),
    /// An answer of the model, in Markdown.
    Answer(String),
    /// What the model thought.
    Reasoning {
        /// All of it.
        text: String,
        /// How long it took, if that is known.
        elapsed: Option<Duration>,
    },
    /// A call of a tool that is over.
    Call(Box<CallRecord>),
    /// Sentences behind a mark.
    Marked {
        /// The mark: `!`.
        mark: &'static str,
        /// Its colour.
        role: Role,
        /// The sentences.
        text: String,
    },
    /// What a program printed.
    Output(String),
    /// What a command of the conversation replied.
    Reply(String),
    /// An image that the person or a tool gave the model. Where the terminal can, the page draws it below
    /// its note.
    Image(Image),
    /// Lines that do not depend on the width: a diff, a question's answer.
    Lines(Vec<Line<'static>>),
    /// The end of a run.
    Summary(RunSummary),
}

/// A call of a tool that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// Tool, subject, facts, and how it ended.
    pub call: ToolCall,
    /// What is printed below it: a diff.
    pub details: Vec<Line<'static>>,
    /// All of its output. The page prints none of it; of a failed call it prints what `call` holds.
    pub output: String,
}

impl BlockSource {
    /// The lines for the page. Prose is wrapped, other lines are whole.
    pub fn lines(&self, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        match self {
            BlockSource::Prompt(text) => prompt_lines(text, columns, theme),
            BlockSource::Answer(text) => render_markdown(text, columns, theme),
            BlockSource::Reasoning { text, elapsed } => {
                // About four characters are a token.
                let tokens = text.chars().count().div_ceil(4);
                vec![reasoning_line(*elapsed, Some(tokens), theme)]
            }
            BlockSource::Call(record) => {
                let mut lines = record.call.lines(columns, theme);
                lines.extend(record.details.iter().cloned());
                lines
            }
            BlockSource::Marked { mark, role, text } => marked_lines(mark, *role, text, columns, theme),
            BlockSource::Output(text) => {
                text.lines().map(|line| Line::from(escape(line).into_owned())).collect()
            }
            BlockSource::Reply(text) => {
                text.lines().flat_map(|line| wrap_hanging(&escape(line), columns)).collect()
            }
            BlockSource::Image(image) => vec![Line::styled(image_note(image), theme.style(Role::Quiet))],
            BlockSource::Lines(lines) => lines.clone(),
            BlockSource::Summary(summary) => summary.lines(columns, theme),
        }
    }

    /// Whether nothing would be shown of it.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            BlockSource::Prompt(text) | BlockSource::Answer(text) => text.trim().is_empty(),
            BlockSource::Marked { text, .. } | BlockSource::Output(text) | BlockSource::Reply(text) => {
                text.is_empty()
            }
            BlockSource::Lines(lines) => lines.is_empty(),
            BlockSource::Reasoning { .. }
            | BlockSource::Call(_)
            | BlockSource::Image(_)
            | BlockSource::Summary(_) => false,
        }
    }

    /// Whether its last line is blank.
    pub(super) fn ends_blank(&self) -> bool {
        match self {
            BlockSource::Output(text) | BlockSource::Reply(text) => {
                text.lines().last().is_some_and(str::is_empty)
            }
            BlockSource::Lines(lines) => lines.last().is_some_and(|line| line.width() == 0),
            _ => false,
        }
    }

    /// The texts that a search looks at, folded away or not.
    pub fn texts(&self) -> Vec<Cow<'_, str>> {
        match self {
            BlockSource::Prompt(text)
            | BlockSource::Answer(text)
            | BlockSource::Reasoning { text, .. }
            | BlockSource::Marked { text, .. }
            | BlockSource::Output(text)
            | BlockSource::Reply(text) => vec![text.into()],
            BlockSource::Lines(lines) => lines.iter().map(|line| line.to_string().into()).collect(),
            BlockSource::Call(record) => {
                let mut texts: Vec<Cow<'_, str>> = vec![
                    record.call.tool.as_str().into(),
                    record.call.subject.text().into(),
                    record.output.as_str().into(),
                ];
                texts.extend(record.call.facts.iter().map(|fact| fact.as_str().into()));
                texts.extend(record.details.iter().map(|line| line.to_string().into()));
                texts
            }
            BlockSource::Image(image) => vec![image_note(image).into()],
            BlockSource::Summary(_) => Vec::new(),
        }
    }
}

/// `  image: png, 640 x 480, about 420 tokens`.
fn image_note(image: &Image) -> String {
    let kind = match image.media_type {
        MediaType::Png => "png",
        MediaType::Jpeg => "jpeg",
        MediaType::Gif => "gif",
        MediaType::Webp => "webp",
    };
    let size = image.width.zip(image.height).map(|(width, height)| format!(", {width} x {height}"));
    format!("  image: {kind}{}, about {} tokens", size.unwrap_or_default(), short_count(image.tokens()))
}

fn marked_lines(mark: &str, role: Role, text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut first = Span::styled(format!("{mark} "), theme.style(role));
    let mut lines = Vec::new();
    for line in text.lines() {
        let spans = [Span::raw(escape(line).into_owned())];
        lines.extend(wrap_indented(&spans, columns, &first, &Span::raw("  ")));
        first = Span::raw("  ");
    }
    lines
}
