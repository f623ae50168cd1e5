//! [`BlockStream`]: the blocks of a document, or of an item or a quotation within it, one after the
//! other.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::fence::Fence;
use super::inline::{complete_marks, inline};
use super::source_line::{ItemMark, LineKind, dedent, indent, underline_level};
use super::table::Table;
use super::{Context, MAX_OPEN_BYTES};
use crate::blocks::CODE_INDENT;
use crate::text::{TAB_STOP, escape, width, wrap};
use crate::theme::Role;

/// Containers within containers; what is nested deeper is text.
const MAX_DEPTH: usize = 12;

/// Reads lines, keeps the block that is open, and renders those that are closed.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockStream {
    depth: usize,
    open: OpenBlock,
    /// The kind of the last block, to decide what stands between it and the next.
    last: Option<BlockKind>,
    /// The source had a blank line since the last block.
    is_blank_before: bool,
    /// A blank line is due before the next line that is rendered.
    needs_separator: bool,
    has_lines: bool,
    /// The mark and the last number of the list that the last block belongs to.
    list: Option<(char, u64)>,
}

#[derive(Clone, Debug, Default)]
enum OpenBlock {
    #[default]
    None,
    Paragraph(String),
    Table(Table),
    Fence(Fence),
    /// Indented code, with the blank lines that may be within it or behind it.
    Indented {
        blank_lines: usize,
    },
    Item(Box<Item>),
    Quote(Box<BlockStream>),
}

#[derive(Clone, Debug)]
struct Item {
    marker: String,
    offset: usize,
    is_marked: bool,
    content: BlockStream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BlockKind {
    Paragraph,
    Heading,
    Rule,
    Code,
    Table,
    Item,
    Quote,
}

impl BlockStream {
    pub(super) fn at_depth(depth: usize) -> Self {
        BlockStream { depth, ..BlockStream::default() }
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.open, OpenBlock::None)
    }

    /// Takes the next line of the source, without its end.
    pub(super) fn push_line(&mut self, line: &str, context: &Context<'_>, out: &mut Vec<Line<'static>>) {
        let expanded;
        let line = if self.depth == 0 && line.contains('\t') {
            expanded = expand_indent(line);
            expanded.as_str()
        } else {
            line
        };
        if !self.continue_block(line, context, out) {
            self.close(context, out);
            self.start_block(line, context, out);
        }
    }

    /// Renders what is open.
    pub(super) fn close(&mut self, context: &Context<'_>, out: &mut Vec<Line<'static>>) {
        let lines = match std::mem::take(&mut self.open) {
            OpenBlock::None => return,
            OpenBlock::Paragraph(text) if context.is_open => paragraph(&complete_marks(&text), context),
            OpenBlock::Paragraph(text) => paragraph(&text, context),
            OpenBlock::Table(mut table) => table.finish(context),
            OpenBlock::Fence(mut fence) => fence.finish(context),
            OpenBlock::Indented { .. } => Vec::new(),
            OpenBlock::Item(mut item) => item.finish(context),
            OpenBlock::Quote(mut content) => {
                let mut lines = Vec::new();
                content.close(&context.narrower(2), &mut lines);
                quoted(lines, context)
            }
        };
        self.emit(lines, out);
    }

    /// Gives the line to the open block; false if it does not belong to it.
    fn continue_block(&mut self, line: &str, context: &Context<'_>, out: &mut Vec<Line<'static>>) -> bool {
        let kind = LineKind::of(line);
        let mut lines = Vec::new();
        let is_taken = match &mut self.open {
            OpenBlock::None => false,
            OpenBlock::Paragraph(_) => return self.continue_paragraph(line, kind, context, out),
            OpenBlock::Table(table) => {
                let is_row = line.contains('|') && !kind.interrupts_paragraph();
                if is_row {
                    lines = table.push_row(line, context);
                }
                is_row
            }
            OpenBlock::Fence(fence) => {
                if fence.is_closed_by(line) {
                    lines = fence.finish(context);
                    self.open = OpenBlock::None;
                } else {
                    lines = fence.push_line(line, context);
                }
                true
            }
            OpenBlock::Indented { blank_lines } => match kind {
                LineKind::Blank => {
                    *blank_lines += 1;
                    true
                }
                LineKind::Indented => {
                    lines.extend(std::iter::repeat_n(Line::default(), std::mem::take(blank_lines)));
                    lines.push(indented_code(line));
                    true
                }
                _ => {
                    self.is_blank_before |= *blank_lines > 0;
                    false
                }
            },
            OpenBlock::Item(item) => {
                let is_nested = indent(line) >= 2 && matches!(kind, LineKind::Item(_));
                let is_content = kind == LineKind::Blank
                    || indent(line) >= item.offset
                    || is_nested
                    || item.content.has_open_fence();
                let is_item = matches!(kind, LineKind::Item(_));
                let is_lazy = !is_item && !kind.interrupts_paragraph() && item.content.has_open_paragraph();
                if is_content || is_lazy {
                    lines = item.push_line(dedent(line, item.offset), context);
                    // A blank line may be within the item or behind it; both are read here.
                    self.is_blank_before = kind == LineKind::Blank;
                }
                is_content || is_lazy
            }
            OpenBlock::Quote(content) => {
                let inner = context.narrower(2);
                match kind {
                    LineKind::Quote { content: text } => {
                        content.push_line(text, &inner, &mut lines);
                        lines = quoted(lines, context);
                        true
                    }
                    LineKind::Blank => false,
                    kind if !kind.interrupts_paragraph() && content.has_open_paragraph() => {
                        content.push_line(line, &inner, &mut lines);
                        lines = quoted(lines, context);
                        true
                    }
                    _ => false,
                }
            }
        };
        self.emit(lines, out);
        is_taken
    }

    fn continue_paragraph(
        &mut self,
        line: &str,
        kind: LineKind<'_>,
        context: &Context<'_>,
        out: &mut Vec<Line<'static>>,
    ) -> bool {
        let OpenBlock::Paragraph(text) = &mut self.open else { return false };
        if let Some(level) = underline_level(line) {
            let text = std::mem::take(text);
            self.open = OpenBlock::None;
            self.last = Some(BlockKind::Heading);
            self.emit(heading(&text, level, context), out);
            return true;
        }
        if kind == LineKind::Blank || kind.interrupts_paragraph() {
            return false;
        }
        // The line above the delimiters is the head of a table; what is above that stays a paragraph.
        let start = text.rfind('\n').map_or(0, |end| end + 1);
        if let Some(table) = Table::open(&text[start..], line) {
            text.truncate(start.saturating_sub(1));
            if start == 0 {
                self.open = OpenBlock::None;
                self.last = Some(BlockKind::Table);
            } else {
                self.close(context, out);
                self.begin(BlockKind::Table);
            }
            self.open = OpenBlock::Table(table);
            return true;
        }
        if text.len() + line.len() > MAX_OPEN_BYTES {
            self.close(context, out);
            self.open = OpenBlock::Paragraph(line.trim_start().to_owned());
            return true;
        }
        text.push('\n');
        text.push_str(line.trim_start());
        true
    }

    fn start_block(&mut self, line: &str, context: &Context<'_>, out: &mut Vec<Line<'static>>) {
        let kind = LineKind::of(line);
        let is_deep = self.depth >= MAX_DEPTH;
        let mut lines = Vec::new();
        if !matches!(kind, LineKind::Item(_) | LineKind::Blank) {
            self.list = None;
        }
        match kind {
            LineKind::Blank => self.is_blank_before = true,
            LineKind::Heading { level, text } => {
                self.begin(BlockKind::Heading);
                lines = heading(text, level, context);
            }
            LineKind::Rule => {
                self.begin(BlockKind::Rule);
                let rule = context.theme.glyphs.line.repeat(3);
                lines = vec![Line::styled(rule, context.theme.style(Role::Quiet))];
            }
            LineKind::Fence(mark) => {
                self.begin(BlockKind::Code);
                self.open = OpenBlock::Fence(Fence::new(mark, self.depth));
            }
            LineKind::Quote { content } if !is_deep => {
                self.begin(BlockKind::Quote);
                let mut stream = BlockStream::at_depth(self.depth + 1);
                stream.push_line(content, &context.narrower(2), &mut lines);
                lines = quoted(lines, context);
                self.open = OpenBlock::Quote(Box::new(stream));
            }
            LineKind::Item(mark) if !is_deep => {
                self.begin(BlockKind::Item);
                let mut item = self.open_item(mark, context);
                lines = item.push_line(mark.content, context);
                self.open = OpenBlock::Item(Box::new(item));
            }
            LineKind::Indented if !matches!(self.last, Some(BlockKind::Item)) => {
                self.begin(BlockKind::Code);
                lines = vec![indented_code(line)];
                self.open = OpenBlock::Indented { blank_lines: 0 };
            }
            LineKind::Indented | LineKind::Text | LineKind::Quote { .. } | LineKind::Item(_) => {
                self.begin(BlockKind::Paragraph);
                self.open = OpenBlock::Paragraph(line.trim_start().to_owned());
            }
        }
        self.emit(lines, out);
    }

    /// The item that a mark opens, numbered after the one before it.
    fn open_item(&mut self, mark: ItemMark<'_>, context: &Context<'_>) -> Item {
        let number = match (self.list, mark.number) {
            (Some((last_mark, last)), Some(_)) if last_mark == mark.mark => Some(last + 1),
            (_, number) => number,
        };
        self.list = Some((mark.mark, number.unwrap_or(0)));
        let marker = match number {
            Some(number) => format!("{number}{} ", mark.mark),
            None => format!("{} ", context.theme.glyphs.bullet),
        };
        let content = BlockStream::at_depth(self.depth + 1);
        Item { marker, offset: mark.offset, is_marked: false, content }
    }

    /// Decides whether a blank line stands before a block of this kind.
    fn begin(&mut self, kind: BlockKind) {
        use BlockKind::{Code, Heading, Quote, Rule, Table};
        let is_set_off = |kind| matches!(kind, Heading | Code | Table | Quote | Rule);
        let is_blank = std::mem::take(&mut self.is_blank_before);
        let last = self.last.replace(kind);
        let is_apart = self.depth == 0 && last.is_some_and(|last| is_set_off(last) || is_set_off(kind));
        self.needs_separator = is_blank || is_apart;
    }

    fn emit(&mut self, lines: Vec<Line<'static>>, out: &mut Vec<Line<'static>>) {
        if lines.is_empty() {
            return;
        }
        if std::mem::take(&mut self.needs_separator) && self.has_lines {
            out.push(Line::default());
        }
        self.has_lines = true;
        out.extend(lines);
    }

    fn has_open_paragraph(&self) -> bool {
        match &self.open {
            OpenBlock::Paragraph(_) => true,
            OpenBlock::Item(item) => item.content.has_open_paragraph(),
            OpenBlock::Quote(content) => content.has_open_paragraph(),
            _ => false,
        }
    }

    pub(super) fn has_open_fence(&self) -> bool {
        match &self.open {
            OpenBlock::Fence(_) => true,
            OpenBlock::Item(item) => item.content.has_open_fence(),
            _ => false,
        }
    }
}

impl Item {
    fn push_line(&mut self, line: &str, context: &Context<'_>) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        self.content.push_line(line, &context.narrower(width(&self.marker)), &mut lines);
        self.mark(lines, context)
    }

    fn finish(&mut self, context: &Context<'_>) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        self.content.close(&context.narrower(width(&self.marker)), &mut lines);
        if lines.is_empty() && !self.is_marked {
            lines.push(Line::default());
        }
        self.mark(lines, context)
    }

    /// Puts the marker before the first line, and as many spaces before the others.
    fn mark(&mut self, mut lines: Vec<Line<'static>>, context: &Context<'_>) -> Vec<Line<'static>> {
        for line in &mut lines {
            if !std::mem::replace(&mut self.is_marked, true) {
                line.spans.insert(0, Span::styled(self.marker.clone(), context.theme.style(Role::Accent)));
            } else if !line.spans.is_empty() {
                line.spans.insert(0, Span::raw(" ".repeat(width(&self.marker))));
            }
        }
        lines
    }
}

fn paragraph(text: &str, context: &Context<'_>) -> Vec<Line<'static>> {
    let lines = inline(text, Style::new(), context.theme);
    lines.iter().flat_map(|spans| wrap(spans, context.prose_width())).collect()
}

fn heading(text: &str, level: usize, context: &Context<'_>) -> Vec<Line<'static>> {
    let mut style = context.theme.bold(Role::Text);
    if level == 1 {
        style = style.underlined();
    }
    let lines = inline(text, style, context.theme);
    lines.iter().flat_map(|spans| wrap(spans, context.prose_width())).collect()
}

fn quoted(mut lines: Vec<Line<'static>>, context: &Context<'_>) -> Vec<Line<'static>> {
    for line in &mut lines {
        let bar = format!("{} ", context.theme.glyphs.bar);
        line.spans.insert(0, Span::styled(bar, context.theme.style(Role::Quiet)));
    }
    lines
}

fn indented_code(line: &str) -> Line<'static> {
    Line::from(format!("{CODE_INDENT}{}", escape(dedent(line, 4))))
}

/// The line with spaces in place of the tabs that it begins with, or that follow a list's mark.
fn expand_indent(line: &str) -> String {
    let mut out = String::with_capacity(line.len() + 8);
    let end =
        line.find(|c: char| !c.is_whitespace() && !"-*+>0123456789.)".contains(c)).unwrap_or(line.len());
    for c in line[..end].chars() {
        if c == '\t' {
            out.extend(std::iter::repeat_n(' ', TAB_STOP - out.len() % TAB_STOP));
        } else {
            out.push(c);
        }
    }
    out.push_str(&line[end..]);
    out
}
