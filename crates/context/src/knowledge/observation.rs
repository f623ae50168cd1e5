//! [`FileObservation`]: what one message tells the model about one file.

use std::sync::Arc;

use hardpan_prompt::{Hash, Text};
use serde::{Deserialize, Serialize};

use super::line_ranges::LineRanges;

/// What one message, a tool call with its result, tells the model about one file. The tool says so
/// itself; it is stored with the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileObservation {
    /// Path relative to the workspace root, forward slashes; absolute outside of it.
    pub path: Arc<str>,
    /// How the model was told.
    pub kind: ObservationKind,
    /// Hash of the file's whole text, without a byte order mark. `None` if the file is too long to
    /// be read whole, or is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<Hash>,
    /// How many lines the file has, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// The lines of this content that the message shows.
    #[serde(default, skip_serializing_if = "LineRanges::is_empty")]
    pub shown: LineRanges,
    /// The file's whole text, to show later what has changed since. It is not stored.
    #[serde(skip)]
    pub text: Option<Text>,
}

/// How a message tells the model about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKind {
    /// The result shows the file, or lines of it.
    Shown,
    /// The call contains the whole new content.
    Written,
    /// The call changed a part of the file.
    Edited,
    /// The result shows the whole difference between this content and the one that the model knew.
    Diffed,
    /// The call contains the whole content that the file had already.
    Confirmed,
}

impl ObservationKind {
    /// Whether the result tells it, and not the call.
    pub fn is_in_result(self) -> bool {
        match self {
            ObservationKind::Shown | ObservationKind::Diffed => true,
            ObservationKind::Written | ObservationKind::Edited | ObservationKind::Confirmed => false,
        }
    }
}

/// The longest text that an observation keeps.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

impl FileObservation {
    /// An observation of a file whose whole text is known. `shown` are the lines that the message
    /// shows of it; lines beyond its end do not count.
    pub fn of_text(path: &str, kind: ObservationKind, text: &str, mut shown: LineRanges) -> Self {
        let kept = (text.len() <= MAX_KEPT_BYTES).then(|| Text::new(text));
        let hash = kept.as_ref().map_or_else(|| Hash::of(text.as_bytes()), Text::hash);
        let lines = count_lines(text);
        shown.remove(&LineRanges::span(lines + 1, u64::MAX));
        FileObservation { path: path.into(), kind, hash: Some(hash), lines: Some(lines), shown, text: kept }
    }

    /// An observation of a file whose content nobody can name: too long, or no text.
    pub fn of_unknown(path: &str, shown: LineRanges) -> Self {
        let kind = ObservationKind::Shown;
        FileObservation { path: path.into(), kind, hash: None, lines: None, shown, text: None }
    }

    /// Whether this message alone shows every line.
    pub(crate) fn shows_all(&self) -> bool {
        self.lines.is_some_and(|lines| self.shown.covers(&LineRanges::all(lines)))
    }
}

impl PartialEq for FileObservation {
    /// The text is not compared: the hash stands for it, and a stored observation has none.
    fn eq(&self, other: &Self) -> bool {
        let FileObservation { path, kind, hash, lines, shown, text: _ } = self;
        (path, kind, hash, lines, shown)
            == (&other.path, &other.kind, &other.hash, &other.lines, &other.shown)
    }
}

/// How many lines a text has; the last one need not end with a line end.
pub fn count_lines(text: &str) -> u64 {
    text.split_inclusive('\n').count() as u64
}
