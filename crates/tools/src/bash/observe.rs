//! [`observe_files`]: what the output of a command shows of files. The command's text says what it
//! should be, and the files say whether it is.

use std::path::Path;

use hardpan_context::knowledge::{
    FileObservation, LineRanges, ObservationKind, OutputPiece, ShownLines, WorkingFolder, output_of_command,
};
use hardpan_workspace::read_open_text;
use tokio::task::spawn_blocking;

use super::output::CommandOutput;
use crate::Scope;
use crate::read::MAX_READ_BYTES;

/// What the model has seen of files in the output of a successful command. Nothing, unless the
/// output is what the files hold now.
pub(super) async fn observe_files(
    command: String,
    scope: &Scope,
    output: &CommandOutput,
) -> Vec<FileObservation> {
    let folder = |path: &Path| Some(WorkingFolder::new(path.to_str()?));
    let folders = folder(&scope.folder).zip(folder(&scope.root));
    let pieces = folders.and_then(|(folder, root)| output_of_command(&command, &folder, &root));
    let Some(pieces) = pieces else { return Vec::new() };
    let (scope, visible, is_whole) = (scope.clone(), output.visible_text(), output.is_whole());
    let work = move || compare(&pieces, &scope, &visible, is_whole).unwrap_or_default();
    spawn_blocking(work).await.unwrap_or_default()
}

/// A file that the command prints.
struct PrintedFile {
    workspace_path: String,
    text: String,
    /// The lines that the visible output shows.
    shown: LineRanges,
}

/// A line that the command should print, and the file and number that it has there.
struct ExpectedLine {
    text: String,
    source: Option<(usize, u64)>,
}

/// Compares the visible output, which is the end of the output if that is long, with what the
/// command should print. `None` if it is anything else.
fn compare(
    pieces: &[OutputPiece],
    scope: &Scope,
    visible: &str,
    is_whole: bool,
) -> Option<Vec<FileObservation>> {
    let mut files: Vec<PrintedFile> = Vec::new();
    let mut expected: Vec<ExpectedLine> = Vec::new();
    for piece in pieces {
        match piece {
            OutputPiece::Text(text) => expected.push(ExpectedLine { text: text.clone(), source: None }),
            OutputPiece::Lines(lines) => {
                let file = read_file(lines, scope)?;
                let known = files.iter().position(|known| known.workspace_path == file.workspace_path);
                let index = known.unwrap_or(files.len());
                expected.extend(expected_lines(lines, index, &file.text));
                files.extend(Some(file).filter(|_| known.is_none()));
            }
        }
    }
    let mut visible: Vec<&str> = visible.lines().collect();
    // The first line of an output that was cut may be the end of a longer one.
    if !is_whole && !visible.is_empty() && visible.len() <= expected.len() {
        let first = &expected[expected.len() - visible.len()];
        if first.text != visible[0] {
            visible.remove(0);
        }
    }
    let hidden = expected.len().checked_sub(visible.len())?;
    if is_whole && hidden > 0 || !expected[hidden..].iter().map(|line| &*line.text).eq(visible) {
        return None;
    }
    for (file, number) in expected[hidden..].iter().filter_map(|line| line.source) {
        files[file].shown.add(&LineRanges::span(number, number));
    }
    let shown = files.into_iter().filter(|file| !file.shown.is_empty());
    let observe = |PrintedFile { workspace_path, text, shown }| {
        FileObservation::of_text(&workspace_path, ObservationKind::Shown, &text, shown)
    };
    Some(shown.map(observe).collect())
}

/// The whole text of a file that the model may read.
fn read_file(lines: &ShownLines, scope: &Scope) -> Option<PrintedFile> {
    let place = scope.resolve_for_read(&lines.path).ok()?;
    let file = scope.guard().open(&place).ok()?;
    let read = read_open_text(&file, MAX_READ_BYTES).ok()?;
    let shown = LineRanges::default();
    read.truncation.is_none().then(|| PrintedFile {
        workspace_path: scope.workspace_path(&place),
        text: read.text,
        shown,
    })
}

/// The lines of a file that the command prints. `str::lines` takes CR LF for a line end, as the
/// output does.
fn expected_lines(lines: &ShownLines, file: usize, text: &str) -> Vec<ExpectedLine> {
    let Some((first, last)) = lines.span(text.lines().count() as u64) else { return Vec::new() };
    let skipped = usize::try_from(first - 1).unwrap_or(usize::MAX);
    let numbered = (first..=last).zip(text.lines().skip(skipped));
    let expected = |(number, line)| ExpectedLine {
        text: lines.printed_line(number, line),
        source: Some((file, number)),
    };
    numbered.map(expected).collect()
}
