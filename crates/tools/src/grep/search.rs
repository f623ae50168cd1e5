//! The matches of one file.

use std::io;
use std::path::Path;

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use hardpan_workspace::{Reason, open};

use crate::blocking::{Cancel, Cancellable};
use crate::limits::{BYTES, cut_around};
use crate::scope::Bounds;

/// The most bytes of a line that are shown.
const LINE_BYTES: usize = 500;
/// The most memory for one file: a longer line cannot be searched.
const MEMORY: usize = 16 * 1024 * 1024;

/// What is looked for, and where it may be.
pub(super) struct Search<'a> {
    pub matcher: RegexMatcher,
    /// The most matches of one file: one more is looked for, to know that there is one.
    pub limit: usize,
    pub context: usize,
    pub bounds: &'a Bounds,
    pub cancel: &'a Cancel,
}

/// What came of a file.
#[derive(Debug, PartialEq)]
pub(super) enum Found {
    /// It was searched.
    Lines(Vec<Line>),
    /// It is binary.
    Binary,
    /// It could not be read, or has lines that are too long.
    Unreadable,
    /// There is no such file any more, or nobody waits.
    Nothing,
}

/// A line to show.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub kind: Kind,
    /// From 1.
    pub number: u64,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Match,
    /// Context before a match.
    Before,
    /// Context after one.
    After,
    /// Lines are left out here.
    Gap,
}

impl Search<'_> {
    pub fn searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .binary_detection(BinaryDetection::quit(0))
            .memory_map(MmapChoice::never()) // a file that shrinks under a map ends the process
            .heap_limit(Some(MEMORY))
            .build()
    }

    /// Searches a file that is judged once more when it is open.
    pub fn file(&self, searcher: &mut Searcher, path: &Path) -> Found {
        let file = match open(path) {
            Ok((file, _)) if self.bounds.holds_open(&file, path) => file,
            Err(Reason::Missing) => return Found::Nothing,
            _ => return Found::Unreadable,
        };
        let mut lines = Collected { search: self, lines: Vec::new(), matches: 0, bytes: 0, is_binary: false };
        let reader = Cancellable { reader: file, cancel: self.cancel };
        let searched = searcher.search_reader(&self.matcher, reader, &mut lines);
        match searched {
            _ if self.cancel.is_set() => Found::Nothing,
            Ok(()) if lines.is_binary => Found::Binary,
            Ok(()) => Found::Lines(lines.lines),
            Err(_) => Found::Unreadable,
        }
    }
}

struct Collected<'a> {
    search: &'a Search<'a>,
    lines: Vec<Line>,
    matches: usize,
    bytes: usize,
    is_binary: bool,
}

impl Collected<'_> {
    fn take(&mut self, kind: Kind, number: Option<u64>, bytes: &[u8]) -> bool {
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        let line = &bytes[..end];
        let found = match kind {
            Kind::Match => {
                self.search.matcher.find(line).ok().flatten().map_or(0..0, |found| found.start()..found.end())
            }
            _ => 0..0,
        };
        let text = cut_around(line, found, LINE_BYTES);
        self.matches += usize::from(kind == Kind::Match);
        self.bytes += text.len();
        self.lines.push(Line { kind, number: number.unwrap_or_default(), text });
        // What is beyond either limit is shown in no answer.
        self.matches <= self.search.limit && self.bytes <= BYTES && !self.search.cancel.is_set()
    }
}

impl Sink for Collected<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        Ok(self.take(Kind::Match, found.line_number(), found.bytes()))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let kind = match context.kind() {
            SinkContextKind::After => Kind::After,
            SinkContextKind::Before | SinkContextKind::Other => Kind::Before,
        };
        Ok(self.take(kind, context.line_number(), context.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.take(Kind::Gap, None, b""))
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}
