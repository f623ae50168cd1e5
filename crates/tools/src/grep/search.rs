//! [`FileSearcher`]: the matches of one file.

use std::io;
use std::path::Path;

use grep_matcher::{LineTerminator, Matcher};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};
use hardpan_files::{FileGuard, UnreadableReason};

use crate::blocking::{CancelFlag, CancellableReader};
use crate::limits::{MAX_ANSWER_BYTES, excerpt_around};

/// The most bytes that are shown of one line.
const MAX_LINE_BYTES: usize = 500;
/// The most memory for one file. A file with a longer line cannot be searched.
const MAX_HEAP_BYTES: usize = 16 * 1024 * 1024;

/// What to search for, and which files may be searched.
pub(super) struct FileSearcher<'a> {
    pub matcher: RegexMatcher,
    /// The most matches of one file that are shown. The search goes on for one more, to know
    /// whether there are more.
    pub limit: usize,
    pub context: usize,
    pub guard: &'a FileGuard,
    pub cancel: &'a CancelFlag,
}

/// The result of searching one file.
#[derive(Debug, PartialEq)]
pub(super) enum SearchedFile {
    /// The matches and their context; empty where nothing matched.
    Lines(Vec<ReportLine>),
    /// The file contains a NUL byte.
    Binary,
    /// The file could not be read, or has lines that are too long.
    Unreadable,
    /// The file no longer exists, or the call was cancelled.
    Nothing,
}

/// A matching line, a line of context, or a gap.
#[derive(Debug, PartialEq)]
pub(super) struct ReportLine {
    pub kind: LineKind,
    /// Line number, from 1.
    pub number: u64,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Match,
    /// Context before a match.
    Before,
    /// Context after a match.
    After,
    /// Lines are left out here; shown as `--`.
    Gap,
}

impl FileSearcher<'_> {
    pub fn build_searcher(&self) -> Searcher {
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .binary_detection(BinaryDetection::quit(0))
            .memory_map(MmapChoice::never()) // a file that shrinks under a map ends the process
            .heap_limit(Some(MAX_HEAP_BYTES))
            .build()
    }

    /// Searches one file. Opening it checks once more that it is in scope.
    pub fn search_file(&self, searcher: &mut Searcher, path: &Path) -> SearchedFile {
        let file = match self.guard.open(path) {
            Ok(file) => file.file,
            Err(UnreadableReason::Missing) => return SearchedFile::Nothing,
            Err(_) => return SearchedFile::Unreadable,
        };
        let mut lines =
            MatchCollector { search: self, lines: Vec::new(), matches: 0, bytes: 0, is_binary: false };
        let reader = CancellableReader { reader: file, cancel: self.cancel };
        let searched = searcher.search_reader(&self.matcher, reader, &mut lines);
        match searched {
            _ if self.cancel.is_set() => SearchedFile::Nothing,
            Ok(()) if lines.is_binary => SearchedFile::Binary,
            Ok(()) => SearchedFile::Lines(lines.lines),
            Err(_) => SearchedFile::Unreadable,
        }
    }
}

struct MatchCollector<'a> {
    search: &'a FileSearcher<'a>,
    lines: Vec<ReportLine>,
    matches: usize,
    bytes: usize,
    is_binary: bool,
}

impl MatchCollector<'_> {
    fn push_line(&mut self, kind: LineKind, number: Option<u64>, bytes: &[u8]) -> bool {
        let end = bytes.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |last| last + 1);
        let line = &bytes[..end];
        let found = match kind {
            LineKind::Match => {
                self.search.matcher.find(line).ok().flatten().map_or(0..0, |found| found.start()..found.end())
            }
            _ => 0..0,
        };
        let text = excerpt_around(line, found, MAX_LINE_BYTES);
        self.matches += usize::from(kind == LineKind::Match);
        self.bytes += text.len();
        self.lines.push(ReportLine { kind, number: number.unwrap_or_default(), text });
        // No answer shows more than either limit.
        self.matches <= self.search.limit && self.bytes <= MAX_ANSWER_BYTES && !self.search.cancel.is_set()
    }
}

impl Sink for MatchCollector<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        Ok(self.push_line(LineKind::Match, found.line_number(), found.bytes()))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let kind = match context.kind() {
            SinkContextKind::After => LineKind::After,
            SinkContextKind::Before | SinkContextKind::Other => LineKind::Before,
        };
        Ok(self.push_line(kind, context.line_number(), context.bytes()))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        Ok(self.push_line(LineKind::Gap, None, b""))
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}
