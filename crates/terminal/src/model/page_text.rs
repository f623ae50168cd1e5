//! [`PageText`]: lines that are finished and wait to be printed, with the blank lines between them.

use ratatui::text::Line;

use crate::blocks::MarkdownRenderer;
use crate::screen::{PictureProtocol, PrintedPicture};
use crate::theme::Theme;
use crate::transcript::{BlockSource, Transcript};

/// What a block is: one blank line stands between blocks, none between lines of the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// What the face says when it starts: the input line follows at once.
    Greeting,
    /// Something of its own.
    Text,
    /// A piece of the answer: pieces follow each other without a blank line.
    Answer,
    /// A tool call: calls stand together.
    Tool,
    /// A short note: notes stand together.
    Note,
}

/// Lines that wait to be printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PageText {
    lines: Vec<Line<'static>>,
    /// Pictures between those lines.
    pictures: Vec<PrintedPicture>,
    /// How the terminal is told to draw pictures; none if it draws none.
    pub protocol: Option<PictureProtocol>,
    last: Option<BlockKind>,
    ends_blank: bool,
    /// The first block of the transcript that is not here yet.
    next_block: usize,
    /// The answer that still grows: its block, and the bytes of it that are here.
    open_answer: Option<(usize, usize)>,
}

impl PageText {
    /// Takes what was said since the last time. `answer` renders the answer that grows.
    pub fn take_new(
        &mut self,
        transcript: &Transcript,
        answer: &mut MarkdownRenderer,
        columns: usize,
        theme: &Theme,
    ) {
        self.take_answer(transcript, answer);
        while let Some(block) = transcript.blocks().get(self.next_block) {
            if block.begins_apart {
                self.end_block();
            }
            let index = self.next_block;
            self.next_block += 1;
            if transcript.open_answer() == Some(index) {
                self.open_answer = Some((index, 0));
                self.take_answer(transcript, answer);
            } else {
                self.push(block.kind, block.source.lines(columns, theme));
                if let (BlockSource::Image(image), Some(protocol)) = (&block.source, self.protocol) {
                    let after = self.lines.len();
                    let bytes = protocol.bytes(image, columns);
                    self.pictures.extend(bytes.map(|bytes| PrintedPicture { after, bytes }));
                }
            }
        }
        if transcript.is_ended() {
            self.end_block();
        }
    }

    /// Takes what is new of the answer that grows. Only what is closed of it becomes lines.
    fn take_answer(&mut self, transcript: &Transcript, answer: &mut MarkdownRenderer) {
        let Some((index, taken)) = self.open_answer else { return };
        let Some(BlockSource::Answer(text)) = transcript.blocks().get(index).map(|block| &block.source)
        else {
            return;
        };
        self.push(BlockKind::Answer, answer.push(&text[taken..]));
        self.open_answer = Some((index, text.len()));
        if transcript.open_answer() != Some(index) {
            self.push(BlockKind::Answer, answer.finish());
            self.open_answer = None;
            self.end_block();
        }
    }

    /// What was said earlier is not printed: the page goes on with what is said from now on.
    pub fn skip_to_end(&mut self, transcript: &Transcript) {
        self.next_block = transcript.blocks().len();
        self.open_answer = None;
    }

    /// Adds a block, after a blank line if one belongs there.
    fn push(&mut self, kind: BlockKind, lines: impl IntoIterator<Item = Line<'static>>) {
        let mut lines = lines.into_iter().peekable();
        if lines.peek().is_none() {
            return;
        }
        if self.needs_blank_before(kind) {
            self.lines.push(Line::default());
        }
        self.lines.extend(lines);
        self.ends_blank = self.lines.last().is_some_and(|line| line.width() == 0);
        self.last = Some(kind);
    }

    /// Whether a blank line belongs between what was printed last and such a block.
    pub fn needs_blank_before(&self, kind: BlockKind) -> bool {
        let joins = self.last == Some(kind) && kind != BlockKind::Text;
        self.last.is_some() && !joins && !self.ends_blank
    }

    /// Ends a list: what follows is separated, even if it is of the same kind.
    fn end_block(&mut self) {
        if self.last.is_some() {
            self.last = Some(BlockKind::Text);
        }
    }

    /// The lines that wait.
    pub fn lines(&self) -> &[Line<'static>] {
        &self.lines
    }

    /// The pictures between the lines that wait.
    pub fn pictures(&self) -> &[PrintedPicture] {
        &self.pictures
    }

    /// What the last block was, printed or not.
    pub fn last_kind(&self) -> Option<BlockKind> {
        self.last
    }

    /// Whether the last line, printed or not, was blank.
    pub fn ends_blank(&self) -> bool {
        self.ends_blank
    }

    /// Forgets the lines: they are on the page.
    pub fn mark_printed(&mut self) {
        self.lines.clear();
        self.pictures.clear();
    }
}
