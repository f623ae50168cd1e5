//! What a name that does not exist may have meant.

use std::cmp::Reverse;
use std::fs::Metadata;
use std::path::Path;

use hardpan_workspace::Reason;

use crate::Scope;
use crate::limits::one_line;
use crate::tool::Outcome;

/// How many names of a folder are compared: reading on would take longer than asking again.
const COMPARED: usize = 10_000;
/// How many are told.
const TOLD: usize = 3;
/// How much of a name, in percent, must be the same.
const ALIKE: usize = 60;

/// The failure of a call that names something which does not exist, with the names nearest to it.
pub(crate) fn missing(scope: &Scope, path: &str, place: &Path) -> Outcome {
    let mut above = place.ancestors().skip(1).zip(place.ancestors());
    let Some((folder, first_missing)) = above.find(|(folder, _)| folder.is_dir()) else {
        return Outcome::failed(format!("{path} does not exist."));
    };
    let name = first_missing.file_name().unwrap_or_default().to_string_lossy();
    let shown = one_line(path);
    let near = if scope.bounds().holds(folder) { nearest(folder, &name) } else { Vec::new() };
    let what = if first_missing == place {
        format!("{shown} does not exist.")
    } else {
        format!("{shown} does not exist, nor does the folder {}.", scope.shown(first_missing))
    };
    if near.is_empty() {
        return Outcome::failed(format!("{what} Look for it with find, or list the folder with ls."));
    }
    let near: Vec<String> = near.iter().map(|name| scope.shown(&folder.join(name))).collect();
    Outcome::failed(format!("{what} Nearest names: {}", near.join(", ")))
}

/// Fails where there is no such file or folder.
pub(crate) fn existing(scope: &Scope, path: &str, place: &Path) -> Result<Metadata, Outcome> {
    place.metadata().map_err(|error| match Reason::from(error) {
        Reason::Missing => missing(scope, path, place),
        reason => Outcome::failed(format!("{} {reason}", scope.shown(place))),
    })
}

/// The names in a folder that are most like one, the likest first.
fn nearest(folder: &Path, name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let names =
        entries.take(COMPARED).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).map(|name| {
            let lower = name.to_lowercase();
            let same_stem = stem(&lower) == stem(&wanted) && !stem(&wanted).is_empty();
            let distance = strsim::normalized_damerau_levenshtein(&lower, &wanted);
            let percent = (distance * 100.0) as usize; // within 0 and 100
            (if same_stem { percent.max(90) } else { percent }, name)
        });
    let mut alike: Vec<(usize, String)> = names.filter(|(percent, _)| *percent >= ALIKE).collect();
    alike.sort_by(|a, b| (Reverse(a.0), &a.1).cmp(&(Reverse(b.0), &b.1)));
    alike.truncate(TOLD);
    alike.into_iter().map(|(_, name)| name).collect()
}

/// A name without its ending: `main.rs` may have been `main.py`.
fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hardpan_prompt::Part;

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
        let told = |path: &str| missing(&scope, path, &root.join(path));
        let failed = |text: &str| Outcome { content: vec![Part::text(text)], details: None, is_error: true };
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
