use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tree_sitter::Parser;

use super::*;
use crate::language::Languages;

/// Pattern, and what each of its captures stands on, as bytes.
type MatchSet = BTreeSet<(usize, Vec<(Capture, usize, usize)>)>;

fn insert(all: &mut MatchSet, place: usize, captures: impl Iterator<Item = (Capture, usize, usize)>) {
    let captures: Vec<_> = captures.filter(|(capture, ..)| !matches!(capture, Capture::Private(_))).collect();
    if !captures.is_empty() {
        all.insert((place, captures));
    }
}

/// What tree-sitter finds when it looks everywhere.
fn matches_by_tree_sitter(query: &Query, tree: &Tree, source: &str) -> MatchSet {
    let mut found = MatchSet::new();
    let mut cursor = QueryCursor::new();
    let mut matches = cursor.matches(query, tree.root_node(), source.as_bytes());
    while let Some(next) = matches.next() {
        let meaning = |index: u32| Capture::from_name(query.capture_names()[index as usize]);
        let captures = next
            .captures()
            .iter()
            .filter_map(|c| Some((meaning(c.index)?, c.node.start_byte(), c.node.end_byte())));
        insert(&mut found, next.pattern_index, captures);
    }
    found
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn looking_where_patterns_begin_finds_what_looking_everywhere_finds() {
    let mut paths = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"), &mut paths);
    let languages = Languages::builtin();
    let (mut compared, mut queries) = (0, BTreeMap::new());
    for path in paths {
        let Some(language) = languages.detect(path.to_str().unwrap()).and_then(|id| languages.get(id)) else {
            continue;
        };
        let whole = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        let grammar = hardpan_grammars::language(language.grammar()).unwrap();
        let compile = || Query::new(&grammar, &language.joined_queries().unwrap()).unwrap();
        let query = queries.entry(language.name.clone()).or_insert_with(compile);
        let compiled = language.compiled_grammar().unwrap();
        let mut parser = Parser::new();
        parser.set_language(&grammar).unwrap();
        // Also with the end cut off: errors have patterns too.
        for source in [&whole[..], &whole[..whole.floor_char_boundary(whole.len() * 2 / 3)]] {
            let tree = parser.parse(source, None).unwrap();
            let mut found = MatchSet::new();
            compiled.matcher.for_each_match(
                &tree,
                source,
                &mut MatchBuffers::default(),
                |(place, captures)| {
                    insert(
                        &mut found,
                        place,
                        captures.iter().map(|(c, node)| (*c, node.start_byte(), node.end_byte())),
                    );
                },
            );
            let expected = matches_by_tree_sitter(query, &tree, source);
            let missing: Vec<_> = expected.difference(&found).collect();
            let mut surplus: Vec<_> = found.difference(&expected).collect();
            // Where two children have one field, tree-sitter may stop at the first: Scala's lists of parameters.
            surplus.retain(|_| language.name != "scala");
            assert!(missing.is_empty() && surplus.is_empty(), "{}: {missing:?} {surplus:?}", path.display());
            compared += expected.len();
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn every_pattern_of_rust_is_a_shape() {
    let languages = Languages::builtin();
    let rust = languages.find_by_name("rust").and_then(|id| languages.get(id)).unwrap();
    let others = &rust.compiled_grammar().unwrap().matcher.fallback.places;
    assert!(others.is_empty(), "{others:?} are left to tree-sitter, which takes its time");
}
