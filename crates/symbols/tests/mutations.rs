//! Property tests: every input, however damaged, has a valid outline.

mod projects;

use hardpan_symbols::{MapRequest, Outline, SymbolIndex};
use proptest::prelude::*;

/// The golden files by place, and how they are damaged.
fn damaged() -> impl Strategy<Value = (String, Vec<u8>)> {
    let mut tree = projects::ProjectFiles::new();
    projects::read(&projects::root(), "", &mut tree);
    let files: Vec<(String, Vec<u8>)> = tree.into_iter().collect();
    let cuts = prop::collection::vec(
        (any::<prop::sample::Index>(), 0..60usize, prop::collection::vec(any::<u8>(), 0..6)),
        0..4,
    );
    (prop::sample::select(files), cuts).prop_map(|((path, mut content), cuts)| {
        for (at, length, put) in cuts {
            let start = at.index(content.len() + 1);
            let end = content.len().min(start + length);
            content.splice(start..end, put);
        }
        (path, content)
    })
}

fn check(outline: &Outline) {
    for (at, definition) in outline.definitions.iter().enumerate() {
        assert!(!definition.name.contains(['\n', '\r']), "a name is one line: {:?}", definition.name);
        assert!(!definition.signature.contains('\n'), "a signature is one line: {:?}", definition.signature);
        assert!(definition.line > 0);
        assert!(
            definition
                .parent
                .is_none_or(|parent| parent as usize != at && (parent as usize) < outline.definitions.len())
        );
        assert!(definition.calls.iter().all(|call| (*call as usize) < outline.words.len()));
    }
    assert!(outline.words.is_sorted());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn damaged_files_have_sound_outlines((path, content) in damaged()) {
        let outline = Outline::parse(&path, &content);
        check(&outline);
        let mut index = SymbolIndex::default();
        index.update(&path, &content);
        let loaded = SymbolIndex::load(&index.save()).unwrap();
        prop_assert_eq!(loaded.outline(&path), Some(outline));
    }

    #[test]
    fn a_path_may_be_anything(path in any::<String>(), content in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut index = SymbolIndex::default();
        for path in [path.clone(), format!("{path}.rs"), format!("{path}/../a\n.py")] {
            index.update(&path, &content);
            index.update(&path, b"fn a() {}\ndef b(): pass\n");
        }
        let map = index.map(&MapRequest::default());
        prop_assert!(map.blocks.iter().all(|block| block.text.lines().next().is_some_and(|line| line.contains(':'))));
    }
}
