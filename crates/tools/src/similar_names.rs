//! Suggestions for paths that do not exist: a model often misspells a name or its ending.

use std::cmp::Reverse;
use std::fs::Metadata;
use std::path::Path;

use hardpan_files::FileGuard;
use hardpan_workspace::{UnreadableReason, folder_names};

use crate::Scope;
use crate::limits::escape_line_ends;
use crate::tool::ToolOutcome;

/// The most names of a folder that are compared: beyond that, reading takes longer than another
/// call.
const MAX_COMPARED: usize = 10_000;
/// The most names that are suggested.
const MAX_SUGGESTIONS: usize = 3;
/// The least similarity of a suggested name (normalized Damerau-Levenshtein, in percent).
const MIN_SIMILARITY_PERCENT: usize = 60;

/// The failure of a call whose path does not exist, with similar names from the nearest existing
/// folder.
pub(crate) fn missing_path(scope: &Scope, path: &str, place: &Path) -> ToolOutcome {
    let mut above = place.ancestors().skip(1).zip(place.ancestors());
    let Some((folder, first_missing)) = above.find(|(folder, _)| folder.is_dir()) else {
        return ToolOutcome::failed(format!("{path} does not exist."));
    };
    let name = first_missing.file_name().unwrap_or_default().to_string_lossy();
    let shown = escape_line_ends(path);
    let near = similar_names(&scope.guard(), folder, &name);
    let what = if first_missing == place {
        format!("{shown} does not exist.")
    } else {
        format!("{shown} does not exist, nor does the folder {}.", scope.display_name(first_missing))
    };
    if near.is_empty() {
        return ToolOutcome::failed(format!("{what} Look for it with find, or list the folder with ls."));
    }
    let near: Vec<String> = near.iter().map(|name| scope.display_name(&folder.join(name))).collect();
    ToolOutcome::failed(format!("{what} Nearest names: {}", near.join(", ")))
}

/// The metadata of a file or folder; where there is none, the failure that [`missing_path`] makes.
pub(crate) fn require_existing(scope: &Scope, path: &str, place: &Path) -> Result<Metadata, ToolOutcome> {
    place.metadata().map_err(|error| match UnreadableReason::from(error) {
        UnreadableReason::Missing => missing_path(scope, path, place),
        reason => ToolOutcome::failed(format!("{} {}", scope.display_name(place), reason.model_text())),
    })
}

/// The names in a folder that are similar to `name`, the most similar first; none if the folder may
/// not be read.
pub(crate) fn similar_names(guard: &FileGuard, folder: &Path, name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let Ok(entries) = guard.open_folder(folder).map_err(Into::into).and_then(|folder| folder_names(&folder))
    else {
        return Vec::new();
    };
    let names = entries.take(MAX_COMPARED).filter_map(|(name, _)| name.into_string().ok()).map(|name| {
        let lower = name.to_lowercase();
        let same_stem = stem(&lower) == stem(&wanted) && !stem(&wanted).is_empty();
        let distance = strsim::normalized_damerau_levenshtein(&lower, &wanted);
        let percent = (distance * 100.0) as usize; // within 0 and 100
        (if same_stem { percent.max(90) } else { percent }, name)
    });
    let mut alike: Vec<(usize, String)> =
        names.filter(|(percent, _)| *percent >= MIN_SIMILARITY_PERCENT).collect();
    alike.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
    alike.truncate(MAX_SUGGESTIONS);
    alike.into_iter().map(|(_, name)| name).collect()
}

/// A name without its extension: someone who asks for `main.rs` may mean `main.py`.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hardpan_prompt::MessagePart;

    use super::*;

    #[test]
    fn the_nearest_names_are_told_or_the_folder_that_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src/parser")).unwrap();
        for name in ["src/main.rs", "src/mail.rs", "src/README.md", "src/lib.rs"] {
            fs::write(root.join(name), "").unwrap();
        }
        let scope = Scope::new(&root, &root);
        let told = |path: &str| missing_path(&scope, path, &root.join(path));
        let failed = |text: &str| ToolOutcome {
            content: vec![MessagePart::text(text)],
            details: None,
            is_error: true,
            file_observations: Vec::new(),
            ends_run: false,
        };
        let cases = [
            ("src/mian.rs", "src/mian.rs does not exist. Nearest names: src/main.rs, src/mail.rs"),
            ("src/readme.txt", "src/readme.txt does not exist. Nearest names: src/README.md"),
            ("scr/main.rs", "scr/main.rs does not exist, nor does the folder scr. Nearest names: src"),
            ("src/zzz", "src/zzz does not exist. Look for it with find, or list the folder with ls."),
        ];
        for (path, text) in cases {
            assert_eq!(told(path), failed(text));
        }
    }
}
