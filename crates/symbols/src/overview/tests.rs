use super::*;

fn index(files: &[(&str, &str)]) -> SymbolIndex {
    let mut index = SymbolIndex::default();
    for (path, text) in files {
        index.update(path, text.as_bytes());
    }
    index
}

fn request<'a>(tokens: usize, count_tokens: &'a (dyn Fn(&str) -> usize + Sync)) -> OverviewRequest<'a> {
    OverviewRequest { folder: "", focus: None, budget: TokenBudget { tokens, count_tokens }, kept: None }
}

/// Three bytes are about a token.
fn count(text: &str) -> usize {
    text.len().div_ceil(3)
}

fn shop() -> SymbolIndex {
    let mut files = vec![
        ("README.md".to_owned(), "# Shop\n".to_owned()),
        ("shop/__init__.py".to_owned(), String::new()),
        ("shop/main.py".to_owned(), "from shop.net.client import Client\ndef main(): Client()\n".to_owned()),
        (
            "shop/net/client.py".to_owned(),
            "class Client:\n    def ask(self): ...\ndef _hidden(): ...\n".to_owned(),
        ),
        ("tests/test_client.py".to_owned(), "from shop.net.client import Client\n".to_owned()),
    ];
    for number in 0..40 {
        let text = format!("from shop.net.client import Client\ndef order{number}(): Client()\n");
        files.push((format!("shop/orders/order{number:02}.py"), text));
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    index(&files)
}

#[test]
fn a_small_tree_is_named_whole_and_costs_little() {
    let index = index(&[
        ("README.md", "# A\n"),
        ("src/a.py", "def a(): ...\nclass B: ...\n"),
        ("src/b.py", "from a import a\n"),
    ]);
    let overview = index.overview(&request(1000, &count));
    insta::assert_snapshot!(overview.text, @r"
    ./
     README.md
    src/
     a.py: a, B
     b.py
    ");
    assert_eq!(overview.unnamed_files, 0);
}

#[test]
fn a_large_tree_shows_folders_entry_points_and_what_is_used_most() {
    let overview = shop().overview(&request(60, &count));
    insta::assert_snapshot!(overview.text, @r"
    ./ +1
     README.md
    shop/ +1
     main.py: main
    shop/net/
     client.py: Client
    shop/orders/ +20
     order00.py: order0
     order01.py: order1
     order02.py: order2
    ");
    assert!(count(&overview.text) <= 60);
    let folder = shop().overview(&OverviewRequest { folder: "shop/net", ..request(60, &count) });
    assert_eq!((folder.text.as_str(), folder.unnamed_files), ("shop/net/\n client.py: Client\n", 0));
    assert_eq!(SymbolIndex::default().overview(&request(60, &count)), Overview::default());
}

#[test]
fn a_kept_overview_changes_only_by_what_is_gone_or_worth_naming() {
    let mut index = shop();
    let first = index.overview(&request(60, &count));
    let known: BTreeSet<String> = index.paths().map(str::to_owned).collect();
    let kept = Some(KeptOverview { memory: &first.memory, known_files: &known });
    // Nobody uses it: not worth a line.
    index.update("shop/orders/zzz.py", b"def last(): ...");
    assert_eq!(index.overview(&OverviewRequest { kept, ..request(60, &count) }).text, first.text);
    // Everyone uses it.
    index.update("shop/core.py", b"class Core: ...");
    for number in 0..40 {
        let text = format!("from shop.core import Core\ndef order{number}(): Core()\n");
        index.update(&format!("shop/orders/order{number:02}.py"), text.as_bytes());
    }
    index.remove("shop/net/client.py");
    let grown = index.overview(&OverviewRequest { kept, ..request(60, &count) });
    let expected = first
        .text
        .replace("shop/net/\n client.py: Client\n", "")
        .replace(" main.py", " core.py: Core\n main.py");
    assert_eq!(grown.text, expected);
}
