//! Same tree, same bytes: whatever the number of threads, the order of the files and the state of
//! the cache.

mod projects;

use hardpan_symbols::{FileSource, Focus, MapRequest, SymbolIndex, TokenBudget};
use projects::ProjectFiles;

/// All golden projects side by side, many times over, so that there is more than one batch.
fn tree() -> ProjectFiles {
    let mut files = ProjectFiles::new();
    for copy in 0..8 {
        projects::read(&projects::root(), &format!("copy{copy}"), &mut files);
    }
    files
}

/// Everything that comes out, as text.
fn shown(index: &SymbolIndex) -> String {
    let focus = Focus {
        files: vec!["copy1/rust/src/lib.rs".into()],
        names: vec!["RetryPolicy".into(), "Order".into()],
    };
    let budget = Some(TokenBudget { tokens: 2000, count_tokens: &|text| text.len().div_ceil(4) });
    let whole = index.map(&MapRequest::default());
    let small = index.map(&MapRequest { focus: Some(&focus), budget, ..MapRequest::default() });
    let ranks: Vec<u64> = index.ranks(&focus).into_iter().map(f64::to_bits).collect();
    let report = serde_json::to_string(&index.report(|_| true)).expect("a report is JSON");
    format!("{}\n{}\n{ranks:?}\n{:?}\n{report}", whole.text(), small.text(), index.clusters())
}

fn build(tree: &ProjectFiles, order: &[&String], threads: usize, cached: bool) -> String {
    let mut index = SymbolIndex::default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
    pool.install(|| {
        index.add_files(order, |path, _| FileSource::Content(tree[path].clone()), |_| ());
        if cached {
            index = SymbolIndex::load(&index.save()).expect("just saved");
        }
    });
    shown(&index)
}

/// Moves everything to another place; the same every time.
fn shuffled<'a>(paths: &[&'a String], seed: usize) -> Vec<&'a String> {
    let mut order = paths.to_vec();
    let mut state = seed as u64 + 1;
    for at in (1..order.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order
}

#[test]
fn twenty_runs_give_the_same_bytes() {
    let tree = tree();
    let paths: Vec<&String> = tree.keys().collect();
    let expected = build(&tree, &paths, 1, false);
    assert!(expected.len() > 100_000, "there is something to compare");
    for run in 0..20 {
        let found = build(&tree, &shuffled(&paths, run), 1 + run % 4, run % 2 == 1);
        assert!(found == expected, "run {run} differs");
    }
}

#[test]
fn files_that_come_one_by_one_give_the_same_bytes() {
    let tree = tree();
    let paths: Vec<&String> =
        tree.keys().filter(|path| path.starts_with("copy1/") || path.starts_with("copy2/")).collect();
    let part: ProjectFiles = paths.iter().map(|path| ((*path).clone(), tree[*path].clone())).collect();
    let expected = build(&part, &paths, 2, false);
    for run in 0..3 {
        let mut index = SymbolIndex::default();
        for path in shuffled(&paths, run) {
            index.update(path, b"fn something_else() {}");
            index.update(path, &tree[path]);
        }
        index.update("copy1/gone.py", b"def gone(): ...");
        index.remove("copy1/gone.py");
        assert!(shown(&index) == expected, "run {run} differs");
        let loaded = SymbolIndex::load(&index.save()).expect("just saved");
        assert!(shown(&loaded) == expected, "run {run}, loaded, differs");
        assert_eq!(loaded.save(), index.save(), "how it came about is not to be seen");
    }
}
