//! Every language's hard cases, as the map shows them.
//!
//! Each folder below `golden/` is a small project; `expected.map` beside it is its map without the
//! legend's fixed lines. `HARDPAN_GOLDEN=write` writes what was found, to be read before it is
//! committed. A language whose grammar is not compiled in is left out: `--features giants` has them
//! all.

mod projects;

use hardpan_symbols::{FileSource, Languages, MapRequest, SymbolIndex};
use projects::{EXPECTED, ProjectFiles, read, root};

/// The short names and the blocks.
fn map(project: &ProjectFiles) -> String {
    let mut index = SymbolIndex::default();
    let paths: Vec<&String> = project.keys().collect();
    index.add_files(&paths, |path, _| FileSource::Content(project[path].clone()), |_| ());
    let text = index.map(&MapRequest::default()).text();
    text.lines().skip(2).skip_while(|line| line.is_empty()).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn every_project_has_the_map_that_is_written_down() {
    let write = std::env::var("HARDPAN_GOLDEN").is_ok_and(|value| value == "write");
    let mut wrong = Vec::new();
    let mut folders: Vec<_> = std::fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap().to_string();
        let mut project = ProjectFiles::new();
        read(&folder, "", &mut project);
        let is_known = |path: &String| Languages::builtin().detect(path).is_some();
        if !project.keys().any(is_known) {
            continue;
        }
        let found = map(&project);
        let expected = std::fs::read_to_string(folder.join(EXPECTED)).unwrap_or_default();
        if write {
            std::fs::write(folder.join(EXPECTED), &found).unwrap();
        } else if found != expected {
            wrong.push(format!("== {name}: expected\n{expected}== found\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_language_that_is_compiled_in_has_a_project() {
    let mut project = ProjectFiles::new();
    read(&root(), "", &mut project);
    let covered: Vec<_> = project.keys().filter_map(|path| Languages::builtin().detect(path)).collect();
    let missing: Vec<_> = Languages::builtin()
        .iter()
        .filter(|language| {
            let sample = language.extensions().first().map(|extension| format!("x.{extension}"));
            let id = sample.and_then(|sample| Languages::builtin().detect(&sample));
            id.is_some_and(|id| !covered.contains(&id))
        })
        .map(|language| language.name.clone())
        .collect();
    assert!(missing.is_empty(), "no golden project for {missing:?}");
}
