//! The end of an output, and the whole of it on disk.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::clean::Cleaner;
use crate::limits::BYTES;

/// The most lines of output in an answer.
const LINES: usize = 2000;

/// The most bytes of output that are kept on disk: an endless one must not fill it.
const KEPT: u64 = 256 * 1024 * 1024;

/// What a command has said so far.
pub(super) struct Output {
    cleaner: Cleaner,
    /// The end of it; all of it as long as nothing was cut.
    tail: String,
    lines: usize,
    bytes: u64,
    folder: PathBuf,
    whole: Whole,
}

/// The whole output, where the tail no longer is it.
enum Whole {
    InTail,
    OnDisk {
        path: PathBuf,
        file: File,
        bytes: u64,
    },
    /// It could not be kept.
    Lost(String),
}

impl Output {
    /// An output that is kept in this folder should it become long.
    pub fn new(folder: &Path) -> Self {
        Output {
            cleaner: Cleaner::default(),
            tail: String::new(),
            lines: 0,
            bytes: 0,
            folder: folder.to_owned(),
            whole: Whole::InTail,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let text = self.cleaner.feed(bytes);
        self.add(&text);
    }

    /// Says that no more comes.
    pub fn end(&mut self) {
        let text = self.cleaner.end();
        self.add(&text);
    }

    fn add(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.lines += text.matches('\n').count();
        self.tail.push_str(text);
        match &self.whole {
            Whole::InTail if self.tail.len() > BYTES || self.lines > LINES => {
                self.whole = match create(&self.folder) {
                    Ok((path, file)) => Whole::OnDisk { path, file, bytes: 0 },
                    Err(error) => Whole::Lost(error.to_string()),
                };
                self.keep(None);
            }
            Whole::InTail => return,
            _ => self.keep(Some(text)),
        }
        // Cut rarely, and then much: each cut moves what stays.
        if self.tail.len() > 4 * BYTES {
            let from = self.tail.ceil_char_boundary(self.tail.len() - BYTES);
            self.tail.drain(..from);
        }
    }

    /// Appends a text to the file; without one, all there is so far.
    fn keep(&mut self, text: Option<&str>) {
        let text = text.unwrap_or(&self.tail);
        let Whole::OnDisk { file, bytes, .. } = &mut self.whole else { return };
        let room = usize::try_from(KEPT - *bytes).unwrap_or(usize::MAX).min(text.len());
        let text = &text[..text.floor_char_boundary(room)];
        // What overwrites a line in a terminal is a line of its own in a file.
        match file.write_all(text.replace('\r', "\n").as_bytes()) {
            Ok(()) => *bytes += text.len() as u64,
            Err(error) => self.whole = Whole::Lost(error.to_string()),
        }
    }

    /// The end of the output as it came.
    pub fn tail(&self) -> &str {
        &self.tail
    }

    /// The end of the output, within the limits of an answer, each line as a terminal would leave it.
    pub fn shown(&self) -> String {
        let end = self.end_of_tail();
        let lines = end.split_inclusive('\n').map(overwritten);
        lines.collect()
    }

    fn end_of_tail(&self) -> &str {
        let from = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(BYTES));
        let text = &self.tail[from..];
        // Not from the middle of a line, if there is a whole one.
        let begins_line = from == 0 || self.tail.as_bytes()[from - 1] == b'\n';
        let text = match text.find('\n') {
            Some(end) if !begins_line && end + 1 < text.len() => &text[end + 1..],
            _ => text,
        };
        let body = text.strip_suffix('\n').unwrap_or(text);
        match body.rmatch_indices('\n').nth(LINES - 1) {
            Some((cut, _)) => &text[cut + 1..],
            None => text,
        }
    }

    /// What there is to say about output that is not shown.
    pub fn notice(&self) -> Option<String> {
        let shown = self.end_of_tail();
        let (lines, bytes) = (shown.lines().count(), shown.len());
        let cut = format!(
            "only the last {lines} of {} lines ({bytes} of {} bytes) are shown",
            self.lines(),
            self.bytes
        );
        match &self.whole {
            Whole::InTail => None,
            Whole::OnDisk { path, bytes, .. } if *bytes < self.bytes => {
                Some(format!("{cut}; the first {bytes} bytes are in {}", path.display()))
            }
            Whole::OnDisk { path, .. } => Some(format!("{cut}; all of them are in {}", path.display())),
            Whole::Lost(why) => Some(format!("{cut}; the rest could not be kept: {why}")),
        }
    }

    /// How many lines there were.
    pub fn lines(&self) -> usize {
        self.lines + usize::from(!self.tail.is_empty() && !self.tail.ends_with('\n'))
    }

    /// How many bytes of text there were.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where the whole of it is, if it is not in the answer.
    pub fn file(&self) -> Option<&Path> {
        match &self.whole {
            Whole::OnDisk { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// What a line that was overwritten after carriage returns looks like in the end.
fn overwritten(line: &str) -> Cow<'_, str> {
    let body = line.strip_suffix('\n').unwrap_or(line);
    let end = &line[body.len()..];
    match body.trim_end_matches('\r').rsplit_once('\r') {
        Some((_, last)) => Cow::Owned(last.to_owned() + end),
        None if body.ends_with('\r') => Cow::Owned(body.trim_end_matches('\r').to_owned() + end),
        None => Cow::Borrowed(line),
    }
}

/// A new file in the folder, readable by its owner only.
fn create(folder: &Path) -> io::Result<(PathBuf, File)> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::create_dir_all(folder)?;
    let mut number = 1;
    loop {
        let path = folder.join(format!("output-{number}.txt"));
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}
