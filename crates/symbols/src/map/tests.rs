use super::*;

fn index(files: &[(&str, &str)]) -> SymbolIndex {
    let mut index = SymbolIndex::default();
    for (path, text) in files {
        index.update(path, text.as_bytes());
    }
    index
}

fn fill(index: &mut SymbolIndex, files: &[(String, String)]) {
    for (path, text) in files {
        index.update(path, text.as_bytes());
    }
}

fn text(index: &SymbolIndex) -> String {
    index.map(&MapRequest::default()).blocks.iter().map(|block| &*block.text).collect()
}

/// A token for every four bytes, at least one.
fn count(text: &str) -> usize {
    text.len().div_ceil(4)
}

#[test]
fn counts_are_rounded_down_to_steps() {
    let steps: Vec<u32> =
        [0, 1, 2, 3, 4, 5, 9, 10, 19, 20, 49, 50, 99, 100, 199, 200, 499, 500, 1234, u32::MAX]
            .map(round_down)
            .into();
    assert_eq!(
        steps,
        [0, 1, 2, 3, 3, 5, 5, 10, 10, 20, 20, 50, 50, 100, 100, 200, 200, 500, 1000, 2_000_000_000]
    );
}

#[test]
fn the_notation_is_the_documented_one() {
    let index = index(&[
        ("Cargo.toml", "[package]\nname = \"net\""),
        ("src/clock.rs", "pub fn jitter() {}"),
        (
            "src/retry.rs",
            "use tokio::time;\nuse rand::random;\nuse crate::clock::jitter;\n#[derive(Debug, Clone)]\npub struct RetryPolicy { max_attempts: u32 }\n\
             impl RetryPolicy { pub fn next_delay(&self, attempt: u32) -> Option<Duration> { jitter() } }\n\
             pub async fn send_with_retry(client: &Client) -> Result<Response> { todo!() }",
        ),
        ("src/main.rs", "mod clock;\nmod retry;\nuse retry::RetryPolicy;\nfn main() { RetryPolicy::new() }"),
        ("tests/retry.rs", "use net::retry::RetryPolicy;\n#[test]\nfn it_waits() {}"),
        ("vendor/x.rs", "fn x() {}"),
    ]);
    assert_eq!(
        text(&index),
        "Cargo.toml:\nk package\n\
         src/clock.rs: ←2\nf jitter() ←1\n\
         src/main.rs:\ni→ src/clock.rs,src/retry.rs\nf main()\n\
         src/retry.rs: ←1\ni rand,tokio\ni→ src/clock.rs\nc RetryPolicy(Clone) ←1\n  v max_attempts\n  \
         m next_delay(&self, attempt)->Option<Duration> →jitter\naf send_with_retry(client)->Result<Response>\n\
         tests/retry.rs: tests src/retry.rs\n\
         vendor/x.rs: vendored\n"
    );
}

#[test]
fn folders_that_are_mentioned_often_have_short_names() {
    let folder = "a/very/long/folder/name/for/a/map";
    let files: Vec<(String, String)> =
        (0..9).map(|n| (format!("{folder}/m{n}.py"), format!("def f{n}(): ..."))).collect();
    let mut index = SymbolIndex::default();
    fill(&mut index, &files);
    index.update("@odd\nname.py", b"def odd(): ...");
    let map = index.map(&MapRequest::default());
    assert_eq!(map.memory.aliases, [folder]);
    assert!(map.legend.ends_with(&format!("\n@1={folder}\n\n")), "{}", map.legend);
    assert_eq!(&*map.blocks[0].text, "./@odd\\nname.py:\nf odd()\n");
    assert_eq!(&*map.blocks[1].text, "@1/m0.py:\nf f0()\n");
}

#[test]
fn a_budget_is_kept_and_what_is_left_out_is_counted() {
    let files: Vec<(String, String)> = (0..60)
        .map(|n| {
            (
                format!("src/m{n}.py"),
                format!("from core import core_thing\nclass C{n}:\n    def method_{n}(self): core_thing()\n"),
            )
        })
        .collect();
    let mut index = index(&[("core.py", "def core_thing(): ...\ndef other_thing(): ...")]);
    fill(&mut index, &files);
    let whole = index.map(&MapRequest::default());
    for tokens in [0, 10, 150, 200, 300, 500, 5000] {
        let budget = Some(TokenBudget { tokens, count_tokens: &count });
        let map = index.map(&MapRequest { budget, ..MapRequest::default() });
        assert!(count(&map.text()) <= tokens || map.blocks.is_empty(), "{} of {tokens}", count(&map.text()));
        assert_eq!(map.blocks.len() + map.left_out.files, 61);
        let is_definition =
            |line: &&str| ["c ", "f ", "m "].iter().any(|letter| line.trim_start().starts_with(letter));
        let lines = |map: &CodeMap| {
            map.blocks.iter().flat_map(|block| block.text.lines()).filter(is_definition).count()
        };
        assert_eq!(lines(&map) + map.left_out.definitions, lines(&whole), "{tokens}");
        if tokens == 300 {
            assert!(map.text().contains("f core_thing()"), "{}", map.text());
        }
    }
}

#[test]
fn the_focus_decides_what_a_small_budget_buys() {
    let files: Vec<(String, String)> =
        (0..60).map(|n| (format!("m{n}.py"), format!("def thing_{n}(): ...\n"))).collect();
    let mut index = SymbolIndex::default();
    fill(&mut index, &files);
    let focus = Focus { files: vec!["m41.py".into()], names: vec!["thing_17".into()] };
    let budget = Some(TokenBudget { tokens: 140, count_tokens: &count });
    let map = index.map(&MapRequest { budget, focus: Some(&focus), ..MapRequest::default() });
    assert!(map.text().contains("thing_17()") && map.text().contains("m41.py"), "{}", map.text());
}

#[test]
fn a_session_keeps_its_short_names_and_its_choice() {
    let files: Vec<(String, String)> =
        (0..40).map(|n| (format!("some/long/folder/m{n}.py"), format!("def thing_{n}(): ...\n"))).collect();
    let mut index = SymbolIndex::default();
    fill(&mut index, &files);
    let budget = Some(TokenBudget { tokens: 250, count_tokens: &count });
    let first = index.map(&MapRequest { budget, ..MapRequest::default() });
    index.update("some/long/folder/m0.py", b"def thing_0(new): ...\ndef more(): ...\n");
    index.update("other/long/folder/of/files.py", b"from some.long.folder.m1 import thing_1\n");
    let second = index.map(&MapRequest { budget, memory: Some(&first.memory), ..MapRequest::default() });
    assert_eq!((&second.legend, &second.memory), (&first.legend, &first.memory));
    let changed: Vec<&str> = first
        .blocks
        .iter()
        .zip(&second.blocks)
        .filter(|(a, b)| a.text != b.text)
        .map(|(_, block)| &*block.path)
        .collect();
    assert_eq!(
        changed,
        ["some/long/folder/m0.py", "some/long/folder/m1.py"],
        "the edited one, and the one with a new user"
    );
    let written = serde_json::to_string(&first.memory).unwrap();
    assert_eq!(serde_json::from_str::<MapMemory>(&written).unwrap(), first.memory);
}

#[test]
fn a_map_can_be_of_a_part() {
    let index = index(&[("a/x.py", "def x(): ..."), ("ab/y.py", "def y(): ..."), ("z.py", "def z(): ...")]);
    let of = |within: &[&str]| {
        let within: Vec<String> = within.iter().map(ToString::to_string).collect();
        let map = index.map(&MapRequest { scope: &within, ..MapRequest::default() });
        map.blocks.into_iter().map(|block| block.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(of(&["a"]), ["a/x.py"]);
    assert_eq!(of(&["a/", "z.py"]), ["a/x.py", "z.py"]);
    assert_eq!(of(&["."]).len(), 3);
}

#[test]
fn a_kept_map_takes_in_new_files_while_its_budget_lasts() {
    let count = |text: &str| text.len();
    let mut index = SymbolIndex::default();
    index.update("a.py", b"def first(): ...");
    let budget = |tokens| Some(TokenBudget { tokens, count_tokens: &count });
    let empty = index.map(&MapRequest { budget: budget(100_000), ..MapRequest::default() });
    let limit = empty.legend.len() + 100;
    let first = index.map(&MapRequest { budget: budget(limit), ..MapRequest::default() });
    index.update("b.py", b"def second(): ...");
    index.update("c.py", format!("def third_{}(): ...", "x".repeat(100)).as_bytes());
    let kept = Some(&first.memory);
    let second = index.map(&MapRequest { budget: budget(limit), memory: kept, ..MapRequest::default() });
    let paths = |map: &CodeMap| map.blocks.iter().map(|block| block.path.to_string()).collect::<Vec<_>>();
    assert_eq!(paths(&second), ["a.py", "b.py"], "c.py is too long for what is left");
    assert_eq!(second.blocks[0].text, first.blocks[0].text);
    index.remove("a.py");
    let kept = Some(&second.memory);
    let third = index.map(&MapRequest { budget: budget(limit), memory: kept, ..MapRequest::default() });
    assert_eq!(paths(&third), ["b.py"]);
}

#[test]
fn a_full_map_keeps_its_selection() {
    let count = |text: &str| text.len();
    let mut index = SymbolIndex::default();
    for number in 0..50 {
        index.update(&format!("file{number}.py"), format!("def function{number}(): ...").as_bytes());
    }
    let budget = Some(TokenBudget { tokens: 900, count_tokens: &count });
    let first = index.map(&MapRequest { budget, ..MapRequest::default() });
    assert!(first.left_out.files > 0 && !first.blocks.is_empty(), "{first:?}");
    index.update("file99.py", b"def f(): ...");
    let second = index.map(&MapRequest { budget, memory: Some(&first.memory), ..MapRequest::default() });
    assert_eq!(second.text(), first.text());
}
