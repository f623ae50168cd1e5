use proptest::prelude::*;

use super::*;

fn index(files: &[(&str, &str)]) -> SymbolIndex {
    let mut index = SymbolIndex::default();
    let paths: Vec<&str> = files.iter().map(|(path, _)| *path).collect();
    let content =
        |path: &str| files.iter().find(|(known, _)| *known == path).map(|(_, text)| text.as_bytes().to_vec());
    index.add_files(
        &paths,
        |path, _| content(path).map_or(FileSource::Unreadable, FileSource::Content),
        |_| (),
    );
    index
}

fn users(index: &SymbolIndex, name: &str) -> Vec<String> {
    index.find_definitions(name).into_iter().flat_map(|place| place.used_by).collect()
}

#[test]
fn a_use_leads_to_the_file_that_is_imported() {
    let index = index(&[
        ("a.py", "def run(): ..."),
        ("b.py", "def run(): ..."),
        ("main.py", "from b import run\nrun()"),
        ("other.py", "run = 1\nprint(run)"),
    ]);
    let places = index.find_definitions("run");
    assert_eq!(
        places.iter().map(|place| (place.path.as_str(), place.used_by.len())).collect::<Vec<_>>(),
        [("a.py", 0), ("b.py", 1)]
    );
    assert_eq!(places[1].used_by, ["main.py"]);
    assert_eq!(index.mentions("run"), ["main.py", "other.py"]);
}

#[test]
fn what_is_passed_on_is_seen_through() {
    let index = index(&[
        ("pkg/__init__.py", "from .inner import thing"),
        ("pkg/inner.py", "def thing(): ..."),
        ("main.py", "from pkg import thing\nthing()"),
    ]);
    assert_eq!(users(&index, "thing"), ["main.py", "pkg/__init__.py"]);
}

#[test]
fn a_package_needs_no_import() {
    let index = index(&[
        ("a/x.go", "package a\nfunc Run() {}"),
        ("a/y.go", "package a\nfunc g() { Run() }"),
        ("b/z.go", "package b\nfunc h() { Run() }"),
    ]);
    assert_eq!(users(&index, "Run"), ["a/y.go"]);
}

#[test]
fn a_use_of_a_method_counts_where_its_type_is_spoken_of() {
    let index = index(&[
        ("clock.py", "class Clock:\n    def tick(self): ...\n    def wind_up(self): ..."),
        ("near.py", "from clock import Clock\nClock().tick()"),
        ("far.py", "import clock\nother.tick(); other.wind_up()"),
    ]);
    assert_eq!(users(&index, "tick"), ["near.py"]);
    assert_eq!(users(&index, "wind_up"), ["far.py"], "two words are enough");
}

#[test]
fn only_a_name_of_two_words_leads_anywhere_without_evidence() {
    let index = index(&[
        ("a.ts", "export function retryLater() {}\nexport function retry() {}"),
        ("b.ts", "retryLater(); retry()"),
        ("c.py", "retryLater()"),
    ]);
    assert_eq!(users(&index, "retryLater"), ["b.ts"]);
    assert_eq!(users(&index, "retry"), Vec::<String>::new());
}

#[test]
fn tests_are_users_but_do_not_count() {
    let index = index(&[
        ("a.py", "def run(): ..."),
        ("b.py", "from a import run"),
        ("test_a.py", "from a import run\nrun()"),
    ]);
    assert_eq!(users(&index, "run"), ["b.py", "test_a.py"]);
    assert_eq!(index.uses_of(0, index.names.find_id("run").unwrap()), 1);
    assert_eq!(index.report(|path| path == "a.py").files[0].references, 1);
}

#[test]
fn a_known_outline_is_as_good_as_the_file() {
    let files = [("a.py", "def run(): ..."), ("b.py", "from a import run\nrun()")];
    let fresh = index(&files);
    let mut known = SymbolIndex::default();
    let read =
        |path: &str, _| FileSource::Cached(fresh.hash(path).unwrap(), Box::new(fresh.outline(path).unwrap()));
    known.add_files(&["b.py", "a.py"], read, |_| ());
    assert_eq!(state(&known), state(&fresh));
}

#[test]
fn many_changes_at_once_give_a_fresh_index() {
    let mut known = index(&[
        ("a.py", "def run(): ..."),
        ("b.py", "from a import run\nrun()"),
        ("gone.py", "from a import run\ndef stop(): run()"),
        ("same.py", "from gone import stop\nstop()"),
    ]);
    let now = [
        ("a.py", "def walk(): ..."),
        ("b.py", "from a import walk\nwalk()"),
        ("new.py", "from b import x"),
        ("same.py", "from gone import stop\nstop()"),
    ];
    let read = |path: &str, _| {
        let (_, text) = now.iter().find(|(name, _)| *name == path)?;
        (path != "same.py").then(|| FileSource::Content(text.as_bytes().to_vec()))
    };
    known.update_many(&["a.py", "b.py", "new.py", "same.py"], &["gone.py".to_owned()], read, |_| ());
    assert_eq!(state(&known), state(&index(&now)));
}

/// Everything that can be seen of an index, by path.
fn state(index: &SymbolIndex) -> Vec<String> {
    let mut lines = Vec::new();
    for (id, file) in index.files_by_path() {
        let path = |id: FileId| index.by_id(id).map_or("gone", |file| &*file.path).to_string();
        let mut edges: Vec<_> =
            index.edges_of(id).iter().map(|edge| (path(edge.to), edge.count, edge.weight)).collect();
        edges.sort();
        let mut sites: Vec<_> =
            file.sites.iter().map(|name| (index.name_text(*name), index.uses_of(id, *name))).collect();
        sites.sort_unstable();
        let mut visible: Vec<_> = file.visible.iter().map(|id| path(*id)).collect();
        visible.sort();
        lines.push(format!(
            "{} used {} edges {edges:?} sites {sites:?} sees {visible:?}",
            file.path,
            index.used_by(id)
        ));
    }
    lines
}

const PATHS: [&str; 9] = [
    "go.mod",
    "a/x.go",
    "a/y.go",
    "b/z.go",
    "pkg/__init__.py",
    "pkg/inner.py",
    "pkg/deep/__init__.py",
    "main.py",
    "test_main.py",
];
const LINES: [&str; 17] = [
    "def thing(): ...",
    "def other_thing(): ...",
    "class Thing: ...",
    "from pkg import thing",
    "from .inner import thing, Thing",
    "from pkg.inner import *",
    "thing(); other_thing()",
    "Thing()",
    "from .deep import other_thing",
    "func Run() { other_thing() }",
    "import \"example.com/m/a\"",
    "module example.com/m",
    "class Clock:\n    def tick(self): ...",
    "class Other:\n    def tick(self): thing()",
    "def use(): thing(); Clock().tick()",
    "def wind(c): c.tick()",
    "def tick(): ...",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_sequence_of_edits_gives_what_starting_anew_gives(
        edits in prop::collection::vec((0..PATHS.len(), prop::option::weighted(0.85, prop::collection::vec(0..LINES.len(), 0..6))), 1..25)
    ) {
        let mut index = SymbolIndex::default();
        let mut files: BTreeMap<&str, String> = BTreeMap::new();
        let mut map = crate::CodeMap::default();
        for (path, lines) in edits {
            match lines {
                Some(lines) => {
                    let mut text: String = if PATHS[path].ends_with(".go") { "package a\n".into() } else { String::new() };
                    text.extend(lines.into_iter().flat_map(|line| [LINES[line], "\n"]));
                    index.update(PATHS[path], text.as_bytes());
                    files.insert(PATHS[path], text);
                }
                None => {
                    index.remove(PATHS[path]);
                    files.remove(PATHS[path]);
                }
            }
            // What is taken from the map before is what would be drawn anew.
            map = index.map(&crate::MapRequest { previous: Some(&map), ..Default::default() });
        }
        let anew: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let anew = self::index(&anew);
        prop_assert_eq!(state(&index), state(&anew));
        prop_assert_eq!(map.text(), anew.map(&crate::MapRequest::default()).text());
    }
}

#[test]
fn a_saved_index_is_the_same_index() {
    let mut fresh = index(&[
        ("a.py", "class Clock:\n    async def now(self, zone=None) -> int: ...\ndef run(): ...\n"),
        ("b.py", "from a import Clock, run\nimport requests\nrun(Clock().now())\n"),
        ("test_b.py", "from b import *\n"),
        ("Cargo.toml", "[package]\nname = \"a-b\"\n"),
        (
            "src/lib.rs",
            "pub mod a;\npub use a::{B, C};\n#[derive(Clone)] pub struct D { e: u8 }\nimpl D { fn f(&self) { g() } }\n",
        ),
        ("src/a.rs", "pub struct B;\npub fn g() {}\n"),
        ("pkg/one.go", "package pkg\nfunc One() { Two() }\n"),
        ("pkg/two.go", "package pkg\nfunc Two() {}\n"),
        ("x.min.js", ""),
    ]);
    let mut loaded = SymbolIndex::load(&fresh.save()).unwrap();
    assert_eq!(state(&loaded), state(&fresh));
    // It can be worked with as if it had never been away.
    for index in [&mut fresh, &mut loaded] {
        index.update("b.py", b"from a import run\nimport flask\nrun()\n");
        index.update("0.py", b"from b import run\nrun()\n");
        index.remove("pkg/two.go");
    }
    assert_eq!(state(&loaded), state(&fresh));
    assert_eq!(state(&SymbolIndex::load(&loaded.save()).unwrap()), state(&fresh));
    assert_eq!(loaded.save(), fresh.save());
}

proptest! {
    #[test]
    fn damaged_bytes_are_refused_or_read_and_never_more(places: [(usize, u8); 2], cut in 0..9usize) {
        let fresh = index(&[
            ("a.py", "from .b import c\nclass A(B):\n    x = 1\n    async def f(self, a, b=1) -> int:\n        return go(a)\n"),
            ("b.py", "def go(a): ...\n"),
            ("src/lib.rs", "pub mod a;\npub use a::{B, C};\nimpl D { fn f(&self) { g() } }\n"),
            ("Cargo.toml", "[package]\nname = \"a-b\"\n"),
        ]);
        let mut bytes = fresh.save();
        for (at, byte) in places {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        bytes.truncate(bytes.len() - cut);
        if let Ok(mut index) = SymbolIndex::load(&bytes) {
            index.map(&crate::MapRequest::default());
            index.update("a.py", b"def go(): c()\n");
            // Whatever was read can be stored and read again.
            let again = SymbolIndex::load(&index.save());
            prop_assert_eq!(again.map(|again| state(&again)).ok(), Some(state(&index)));
        }
    }
}
