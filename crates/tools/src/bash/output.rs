//! [`CommandOutput`]: keeps the end of a command's output in memory, and all of it on disk once it
//! is long.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::sanitize::TextSanitizer;
use crate::limits::MAX_ANSWER_BYTES;

/// The most lines of output in an answer; the last ones are shown.
const MAX_LINES: usize = 2000;

/// The most bytes of one output that are written to disk, so that an endless command cannot fill
/// it.
const MAX_STORED_BYTES: u64 = 256 * 1024 * 1024;

/// What a command has printed so far.
pub(super) struct CommandOutput {
    sanitizer: TextSanitizer,
    /// The end of the output; all of it as long as `full` is [`FullOutput::InTail`].
    tail: String,
    lines: usize,
    bytes: u64,
    folder: PathBuf,
    full: FullOutput,
}

/// Where the whole output is.
enum FullOutput {
    InTail,
    OnDisk {
        path: PathBuf,
        file: File,
        bytes: u64,
    },
    /// It could not be written, for this reason.
    Lost(String),
}

impl CommandOutput {
    /// An empty output, which gets a file in `folder` once it is too long for an answer.
    pub fn new(folder: &Path) -> Self {
        CommandOutput {
            sanitizer: TextSanitizer::default(),
            tail: String::new(),
            lines: 0,
            bytes: 0,
            folder: folder.to_owned(),
            full: FullOutput::InTail,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let text = self.sanitizer.feed(bytes);
        self.add(&text);
    }

    /// Flushes what the sanitizer still holds. Call it when no more bytes come.
    pub fn end(&mut self) {
        let text = self.sanitizer.end();
        self.add(&text);
    }

    fn add(&mut self, text: &str) {
        self.bytes += text.len() as u64;
        self.lines += text.matches('\n').count();
        self.tail.push_str(text);
        match &self.full {
            FullOutput::InTail if self.tail.len() > MAX_ANSWER_BYTES || self.lines > MAX_LINES => {
                self.full = match create_output_file(&self.folder) {
                    Ok((path, file)) => FullOutput::OnDisk { path, file, bytes: 0 },
                    Err(error) => FullOutput::Lost(error.to_string()),
                };
                self.append_to_file(None);
            }
            FullOutput::InTail => return,
            _ => self.append_to_file(Some(text)),
        }
        // Cut rarely, and then much: each cut moves the rest.
        if self.tail.len() > 4 * MAX_ANSWER_BYTES {
            let from = self.tail.ceil_char_boundary(self.tail.len() - MAX_ANSWER_BYTES);
            self.tail.drain(..from);
        }
    }

    /// Appends a text to the file; `None` appends the whole tail.
    fn append_to_file(&mut self, text: Option<&str>) {
        let text = text.unwrap_or(&self.tail);
        let FullOutput::OnDisk { file, bytes, .. } = &mut self.full else { return };
        let room = usize::try_from(MAX_STORED_BYTES - *bytes).unwrap_or(usize::MAX).min(text.len());
        let text = &text[..text.floor_char_boundary(room)];
        // In the file, a line that overwrites another gets its own line.
        match file.write_all(text.replace('\r', "\n").as_bytes()) {
            Ok(()) => *bytes += text.len() as u64,
            Err(error) => self.full = FullOutput::Lost(error.to_string()),
        }
    }

    /// The end of the output, sanitized, at least as much as an answer shows.
    pub fn tail(&self) -> &str {
        &self.tail
    }

    /// The end of the output within the limits of an answer, each line as a terminal would show it
    /// after carriage returns.
    pub fn visible_text(&self) -> String {
        let end = self.end_of_tail();
        let lines = end.split_inclusive('\n').map(apply_carriage_returns);
        lines.collect()
    }

    fn end_of_tail(&self) -> &str {
        let from = self.tail.ceil_char_boundary(self.tail.len().saturating_sub(MAX_ANSWER_BYTES));
        let text = &self.tail[from..];
        // Begin with a whole line, if there is one.
        let begins_line = from == 0 || self.tail.as_bytes()[from - 1] == b'\n';
        let text = match text.find('\n') {
            Some(end) if !begins_line && end + 1 < text.len() => &text[end + 1..],
            _ => text,
        };
        let body = text.strip_suffix('\n').unwrap_or(text);
        match body.rmatch_indices('\n').nth(MAX_LINES - 1) {
            Some((cut, _)) => &text[cut + 1..],
            None => text,
        }
    }

    /// Says how much is not shown and where it is. `None` if everything is shown.
    pub fn notice(&self) -> Option<String> {
        let shown = self.end_of_tail();
        let (lines, bytes) = (shown.lines().count(), shown.len());
        let cut = format!(
            "only the last {lines} of {} lines ({bytes} of {} bytes) are shown",
            self.lines(),
            self.bytes
        );
        match &self.full {
            FullOutput::InTail => None,
            FullOutput::OnDisk { path, bytes, .. } if *bytes < self.bytes => {
                Some(format!("{cut}; the first {bytes} bytes are in {}", path.display()))
            }
            FullOutput::OnDisk { path, .. } => Some(format!("{cut}; all of them are in {}", path.display())),
            FullOutput::Lost(why) => Some(format!("{cut}; the rest could not be kept: {why}")),
        }
    }

    /// Whether the answer shows all of the output.
    pub fn is_whole(&self) -> bool {
        matches!(self.full, FullOutput::InTail)
    }

    /// How many lines the whole output has, an unfinished last one included.
    pub fn lines(&self) -> usize {
        self.lines + usize::from(!self.tail.is_empty() && !self.tail.ends_with('\n'))
    }

    /// How many bytes of sanitized text the whole output has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The file with the whole output. `None` if the answer shows all of it, or it could not be
    /// written.
    pub fn file(&self) -> Option<&Path> {
        match &self.full {
            FullOutput::OnDisk { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// What a terminal shows of a line that was overwritten after carriage returns.
fn apply_carriage_returns(line: &str) -> Cow<'_, str> {
    let body = line.strip_suffix('\n').unwrap_or(line);
    let end = &line[body.len()..];
    match body.trim_end_matches('\r').rsplit_once('\r') {
        Some((_, last)) => Cow::Owned(last.to_owned() + end),
        None if body.ends_with('\r') => Cow::Owned(body.trim_end_matches('\r').to_owned() + end),
        None => Cow::Borrowed(line),
    }
}

/// Creates `output-N.txt` in the folder with the first free number, readable by its owner only.
fn create_output_file(folder: &Path) -> io::Result<(PathBuf, File)> {
    use std::os::unix::fs::OpenOptionsExt;
    hardpan_files::create_private_folder(folder)?;
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
