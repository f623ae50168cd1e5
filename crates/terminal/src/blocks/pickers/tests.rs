//! Drawings of pickers, tree, help and prices.

use std::time::Duration;

use super::*;
use crate::blocks::conversation::Cost;
use crate::blocks::golden::drawings;

fn model(name: &str, prices: [f64; 4], state: ModelState) -> ModelRow {
    let [input, read, write, output] = prices;
    let prices = Some(ModelPrices { input, read, write, output });
    ModelRow { name: name.into(), provider: "anthropic".into(), window: "1M".into(), prices, state }
}

#[test]
fn the_models() {
    let mut other = model("gpt-6.1-sol", [0.0; 4], ModelState::NoKey("OPENAI_API_KEY".into()));
    other.provider = "openai".into();
    let picker = ModelPicker {
        filter: Filter { text: "op".into() },
        models: vec![
            model("sonnet 5.5", [2.0, 0.1, 2.5, 10.0], ModelState::Current(0.0096)),
            model("opus 5.5", [4.0, 0.2, 5.0, 20.0], ModelState::Switch { now: 0.173, then: 0.017 }),
            model("opus 5", [5.0, 0.5, 6.25, 25.0], ModelState::Switch { now: 0.217, then: 0.030 }),
            other,
        ],
        chosen: 1,
        efforts: ["low", "medium", "high", "xhigh", "max"].map(String::from).to_vec(),
        effort: 2,
        effort_keeps_cache: true,
    };
    insta::assert_snapshot!(
        "models",
        drawings(|columns, rows, theme| picker.lines(columns, theme).fit(rows))
    );
}

#[test]
fn the_sessions() {
    let session = |seconds, prompt: &str, branch: &str, turns, paid, going_on| SessionRow {
        age: Duration::from_secs(seconds),
        name: None,
        prompt: prompt.into(),
        agent: None,
        branch: branch.into(),
        turns,
        cost: Cost { paid, ..Cost::default() },
        going_on,
    };
    let mut named = session(3 * 86_400, "review of the sandbox rules", "main", 41, 2.1, GoingOn::Cold(0.61));
    named.name = Some("audit".into());
    let mut foreign =
        session(4 * 86_400, "port the parser to winnow", "winnow", 22, 1.02, GoingOn::Copy(0.38));
    foreign.agent = Some("Codex".into());
    let picker = SessionPicker {
        filter: Filter { text: "gap".into() },
        is_everywhere: false,
        sessions: vec![
            session(
                48,
                "cap the gap penalty in fuzzyMatch",
                "main",
                14,
                0.48,
                GoingOn::Warm(0.0096, Duration::from_secs(252)),
            ),
            session(86_400, "why does the retry test hang?", "fix-retry", 9, 0.31, GoingOn::Cold(0.12)),
            named,
            foreign,
        ],
        chosen: 0,
    };
    insta::assert_snapshot!(
        "sessions",
        drawings(|columns, rows, theme| picker.lines(columns, theme).fit(rows))
    );
}

#[test]
fn the_tree() {
    let step = |number: &str, depth, is_last, prompt: &str, changes: &str, cost| TreeStep {
        number: number.into(),
        depth,
        is_last,
        open_branches: vec![number == "3a"],
        prompt: prompt.into(),
        changes: changes.into(),
        cost,
        label: None,
        note: None,
        is_here: false,
    };
    let mut labelled = step("2", 0, false, "cap the gap penalty in fuzzyMatch", "fuzzy.ts +1 −1", 0.05);
    labelled.label = Some("before refactor".into());
    let mut left = step("3a", 1, false, "use a table instead", "fuzzy.ts +31 −12", 0.09);
    left.note = Some("left yesterday".into());
    let mut here = step("3b", 0, true, "also check the docs", "README.md +2", 0.03);
    here.is_here = true;
    let view = TreeView {
        steps: vec![step("1", 0, false, "where are retries decided?", "", 0.02), labelled, left, here],
        chosen: 1,
        step_back: Some(StepBack {
            number: "2".into(),
            files: vec!["fuzzy.ts".into(), "README.md".into()],
            next: 0.006,
            is_cached: true,
        }),
    };
    insta::assert_snapshot!("tree", drawings(|columns, rows, theme| view.lines(columns, theme).fit(rows)));
}

#[test]
fn the_price_before_the_act() {
    let choice = |key: &str, act: &str, effect: &str, price, note: Option<&str>| PriceChoice {
        key: key.into(),
        act: act.into(),
        effect: effect.into(),
        price,
        note: note.map(str::to_owned),
    };
    let price = ActPrice {
        question: "Exclude packages/tui/test/fuzzy.test.ts?".into(),
        about: "2,140 tokens in BASE".into(),
        choices: vec![
            choice("n", "now", "38,900 tokens after it are written again", Some(0.093), None),
            choice(
                "f",
                "at the next free fold",
                "in about 3 requests, or in 4:12",
                Some(0.0),
                Some("until then it costs $0.0002 a request"),
            ),
            choice("Esc", "leave it", "\"now\" would pay off after 436 requests", None, None),
        ],
        chosen: 1,
    };
    insta::assert_snapshot!("price", drawings(|columns, _, theme| price.lines(columns, theme)));
}

#[test]
fn help() {
    let keys = |text: &str| -> Vec<(String, String)> {
        text.split(',')
            .filter_map(|key| key.split_once(' '))
            .map(|(key, what)| (key.into(), what.into()))
            .collect()
    };
    let groups = [
        ("write".to_owned(), keys("Enter send,Alt-Enter newline,@ file,/ command,! shell,!! mine")),
        ("look".to_owned(), keys("F2 context,Ctrl-T full screen,Ctrl-O last tool")),
    ];
    insta::assert_snapshot!("help", drawings(|columns, _, theme| help_lines(&groups, columns, theme)));
}

#[test]
fn choices() {
    let choice = |name: &str, meaning: &str, price| Choice {
        name: name.into(),
        meaning: meaning.into(),
        price,
        ..Choice::default()
    };
    let layouts = ChoicePicker {
        title: "layout".into(),
        filter: Filter::default(),
        choices: vec![
            Choice {
                is_current: true,
                ..choice("strata", "what is stable first; garbage is folded where it pays", Some(0.0096))
            },
            choice("tiers", "by how long each piece has been unchanged, in four tiers", Some(0.11)),
        ],
        chosen: 1,
    };
    let tools = ChoicePicker {
        title: "tools".into(),
        filter: Filter { text: "e".into() },
        choices: vec![
            Choice { is_on: Some(true), ..choice("read", "reads a file", None) },
            Choice { is_on: Some(false), ..choice("fetch", "gets a page from the web", None) },
        ],
        chosen: 0,
    };
    insta::assert_snapshot!(
        "layouts",
        drawings(|columns, rows, theme| layouts.lines(columns, theme).fit(rows))
    );
    insta::assert_snapshot!("tools", drawings(|columns, rows, theme| tools.lines(columns, theme).fit(rows)));
}
