//! [`MarkdownRenderer`]: Markdown as it streams in, as lines.
//!
//! A block is rendered once, when it is closed: a paragraph at a blank line, an item of a list at the
//! next one, code line by line, a table at its end. What is not closed yet is rendered again for every
//! frame ([`MarkdownRenderer::open_tail`]), and its size is bounded. So the cost is proportional to
//! the new text, however long the answer is.
//!
//! Which lines are closed depends on the source's lines alone, not on how it was cut into pieces.
//! pulldown-cmark reads what stands within paragraphs, headings and cells; containers are read here,
//! line by line, because a parser of whole documents would have to begin anew with every piece.
//!
//! ```
//! use hardpan_terminal::blocks::MarkdownRenderer;
//! use hardpan_terminal::theme::Theme;
//!
//! let mut markdown = MarkdownRenderer::new(80, Theme::default());
//! assert!(markdown.push("Hello **wor").is_empty());
//! assert_eq!(markdown.open_tail()[0].to_string(), "Hello wor");
//! assert_eq!(markdown.push("ld**\n\nNext").len(), 1);
//! ```

mod block_stream; // containers and leaves, line by line
mod fence; // code, and Markdown that a model put into a fence
mod inline; // what stands within a paragraph
mod source_line; // what a line of the source begins
mod table;
#[cfg(test)]
mod tests;

use ratatui::text::Line;

use crate::text::PROSE_WIDTH;
use crate::theme::Theme;
use block_stream::BlockStream;

/// A line or a paragraph of more bytes is closed, so that what is rendered for every frame is bounded.
const MAX_OPEN_BYTES: usize = 16 * 1024;

/// A table of more rows than this is printed before it is complete; its columns then stay as wide as
/// they are.
const MAX_OPEN_ROWS: usize = 10;

/// Renders Markdown that arrives in pieces.
#[derive(Clone, Debug)]
pub struct MarkdownRenderer {
    width: usize,
    theme: Theme,
    /// The last line of the source, as long as its end is not known.
    line: String,
    blocks: BlockStream,
}

/// What rendering depends on.
#[derive(Clone, Copy, Debug)]
struct Context<'a> {
    /// The columns of the block's container.
    width: usize,
    theme: &'a Theme,
    /// The end of the source is not known: marks that are open are closed.
    is_open: bool,
}

impl Context<'_> {
    fn prose_width(&self) -> usize {
        self.width.min(PROSE_WIDTH)
    }

    fn narrower(self, columns: usize) -> Self {
        Context { width: self.width.saturating_sub(columns).max(8), ..self }
    }
}

impl MarkdownRenderer {
    /// For a terminal of this width.
    pub fn new(width: usize, theme: Theme) -> Self {
        MarkdownRenderer { width, theme, line: String::new(), blocks: BlockStream::default() }
    }

    /// The terminal's width has changed: lines from now on have the new one.
    pub fn set_width(&mut self, width: usize) {
        self.width = width;
    }

    /// Takes the next piece of the source, and returns the lines of what is closed by it.
    pub fn push(&mut self, text: &str) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        for piece in text.split_inclusive('\n') {
            let (piece, has_end) = piece.strip_suffix('\n').map_or((piece, false), |piece| (piece, true));
            self.push_part(piece, &mut out);
            if has_end {
                self.end_line(&mut out);
            }
        }
        out
    }

    /// The source is complete: the lines of what was open.
    pub fn finish(&mut self) -> Vec<Line<'static>> {
        let mut out = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        let context = Context { width: self.width, theme: &self.theme, is_open: false };
        self.blocks.close(&context, &mut out);
        self.blocks = BlockStream::default();
        out
    }

    /// The lines of what is not closed yet, as they would be if the source ended here.
    pub fn open_tail(&self) -> Vec<Line<'static>> {
        let context = Context { width: self.width, theme: &self.theme, is_open: true };
        let mut blocks = self.blocks.clone();
        let mut out = Vec::new();
        // A line of marks alone would be a heading, a rule or an item for a moment.
        if !source_line::is_unfinished_mark(&self.line) {
            blocks.push_line(&self.line, &context, &mut out);
        }
        blocks.close(&context, &mut out);
        out
    }

    /// Whether everything that was pushed has been returned as lines.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty() && self.blocks.is_closed()
    }

    fn push_part(&mut self, mut text: &str, out: &mut Vec<Line<'static>>) {
        loop {
            let room = MAX_OPEN_BYTES - self.line.len();
            let end = text.floor_char_boundary(room);
            self.line.push_str(&text[..end]);
            text = &text[end..];
            if text.is_empty() {
                return;
            }
            self.end_line(out);
        }
    }

    fn end_line(&mut self, out: &mut Vec<Line<'static>>) {
        let line = std::mem::take(&mut self.line);
        let context = Context { width: self.width, theme: &self.theme, is_open: false };
        self.blocks.push_line(line.strip_suffix('\r').unwrap_or(&line), &context, out);
    }
}

/// The lines of a whole text.
pub fn render_markdown(text: &str, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut renderer = MarkdownRenderer::new(width, *theme);
    let mut lines = renderer.push(text);
    lines.extend(renderer.finish());
    lines
}
