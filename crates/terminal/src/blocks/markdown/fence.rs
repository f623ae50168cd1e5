//! [`Fence`]: a code block. Its lines are rendered one by one, as they arrive.

use ratatui::text::{Line, Span};

use super::Context;
use super::block_stream::BlockStream;
use super::source_line::{FenceMark, dedent};
use super::table::Table;
use crate::blocks::CODE_INDENT;
use crate::blocks::highlight::{Highlighter, code_spans};
use crate::text::escape;

/// So many lines of a fence for Markdown are kept back, in case a table is among them.
const MAX_HELD_LINES: usize = 12;

/// A fence that is open.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    indent: usize,
    mark: char,
    length: usize,
    highlighter: Option<Highlighter>,
    content: FenceContent,
    depth: usize,
}

#[derive(Clone, Debug)]
enum FenceContent {
    Code,
    /// Markdown: code, unless there is a table in it.
    Undecided(Vec<String>),
    /// Markdown with a table, which reads better as a table than as its source.
    Markdown(Box<BlockStream>),
}

impl Fence {
    pub(super) fn new(mark: FenceMark<'_>, depth: usize) -> Self {
        let FenceMark { indent, mark, length, info } = mark;
        let language = info.split([' ', ',', '{', '\t']).next().unwrap_or("");
        let is_markdown = ["markdown", "md"].contains(&language.to_ascii_lowercase().as_str());
        let content = if is_markdown { FenceContent::Undecided(Vec::new()) } else { FenceContent::Code };
        Fence { indent, mark, length, highlighter: Highlighter::for_name(language), content, depth }
    }

    pub(super) fn is_closed_by(&self, line: &str) -> bool {
        if let FenceContent::Markdown(stream) = &self.content
            && stream.has_open_fence()
        {
            return false;
        }
        let text = line.trim();
        // A sloppy indent is forgiven: a fence that stays open takes the rest of the answer.
        text.len() >= self.length && text.chars().all(|c| c == self.mark)
    }

    pub(super) fn push_line(&mut self, line: &str, context: &Context<'_>) -> Vec<Line<'static>> {
        let line = dedent(line, self.indent);
        match &mut self.content {
            FenceContent::Code => vec![self.code_line(line, context)],
            FenceContent::Markdown(stream) => {
                let mut out = Vec::new();
                stream.push_line(line, context, &mut out);
                out
            }
            FenceContent::Undecided(held) => {
                let is_table = held.last().is_some_and(|head| Table::open(head, line).is_some());
                held.push(line.to_owned());
                if is_table {
                    let held = std::mem::take(held);
                    let mut stream = BlockStream::at_depth(self.depth);
                    let mut out = Vec::new();
                    for line in &held {
                        stream.push_line(line, context, &mut out);
                    }
                    self.content = FenceContent::Markdown(Box::new(stream));
                    return out;
                }
                if held.len() > MAX_HELD_LINES { self.decide_for_code(context) } else { Vec::new() }
            }
        }
    }

    /// The lines that are still held.
    pub(super) fn finish(&mut self, context: &Context<'_>) -> Vec<Line<'static>> {
        if let FenceContent::Markdown(stream) = &mut self.content {
            let mut out = Vec::new();
            stream.close(context, &mut out);
            return out;
        }
        self.decide_for_code(context)
    }

    fn decide_for_code(&mut self, context: &Context<'_>) -> Vec<Line<'static>> {
        let FenceContent::Undecided(held) = std::mem::replace(&mut self.content, FenceContent::Code) else {
            return Vec::new();
        };
        held.iter().map(|line| self.code_line(line, context)).collect()
    }

    fn code_line(&mut self, line: &str, context: &Context<'_>) -> Line<'static> {
        if line.trim().is_empty() {
            return Line::default();
        }
        let spans = code_spans(self.highlighter.as_mut(), &escape(line), context.theme);
        Line::from_iter([Span::raw(CODE_INDENT)].into_iter().chain(spans))
    }
}
