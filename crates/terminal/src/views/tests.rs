//! Every view drawn at every size, and what each key does in it.

mod clicks;

use std::time::Duration;

use super::*;
use crate::blocks::golden::drawings;
use crate::blocks::pickers::{
    ActPrice, Choice, GoingOn, ModelPrices, ModelRow, ModelState, PriceChoice, SessionRow, StepBack, TreeStep,
};
use crate::blocks::{
    CacheMark, CacheState, ContextColumns, ContextFacts, ContextRow, ContextView, Cost, FileDiff, LastUse,
    Layer, LayerAge,
};
use crate::keymap::KeyPress;
use crate::test_face::TestFace;
use crate::text::is_unsafe;

fn layer(name: &str, depth: usize, tokens: usize) -> Layer {
    Layer {
        name: name.into(),
        part: None,
        turns: None,
        depth,
        parts: vec![(tokens, CacheState::Read)],
        age: LayerAge::Requests(11),
        last: LastUse::Read(100),
        next: tokens as f64 / 1e7,
        amount: tokens as f64 / 4e5,
        holds: "files".into(),
        has_breakpoint: false,
    }
}

fn item(key: &str, tokens: usize) -> ContextItem {
    let name = key.split_once(':').map_or(key, |(_, name)| name);
    ContextItem { key: key.into(), layer: layer(name, 1, tokens), is_pinned: false, is_excluded: false }
}

fn context() -> ViewData {
    let mut pinned = item("file:src/fuzzy.ts", 3110);
    pinned.is_pinned = true;
    let mut gone = item("message:e7", 0);
    gone.is_excluded = true;
    let mark = CacheMark { is_older: false, tokens: 4040, note: "5 min".into() };
    let rows = vec![
        ContextRow::Layer(layer("tools", 0, 1140)),
        ContextRow::Layer(layer("system", 0, 2900)),
        ContextRow::Mark(mark),
        ContextRow::Layer(layer("BASE", 0, 8940)),
        ContextRow::Layer(layer("TAIL", 0, 240)),
        ContextRow::Layer(Layer {
            parts: Vec::new(),
            age: LayerAge::None,
            holds: "what you have left out".into(),
            ..layer("left out", 0, 0)
        }),
    ];
    let view = ContextView {
        layout: "strata".into(),
        model: "sonnet 5.5 high".into(),
        max_tokens: 1_000_000,
        next: 0.0096,
        cold: 0.119,
        is_price_unknown: false,
        columns: ContextColumns::STRATA,
        rows,
        chosen: 0,
        is_split: false,
        facts: ContextFacts::default(),
        notes: Vec::new(),
        keys: Vec::new(),
    };
    let items = vec![
        vec![item("tool:read", 600), item("tool:bash", 540)],
        vec![item("system", 2900)],
        vec![pinned, item("file:src/a\u{1b}[2Jb.ts", 2140)],
        vec![item("git", 240)],
        vec![gone],
    ];
    ViewData::Context(Box::new(ContextData { view, items }))
}

fn models() -> ViewData {
    let row = |name: &str, provider: &str, state| ModelRow {
        name: name.into(),
        provider: provider.into(),
        window: "1.0M".into(),
        prices: Some(ModelPrices { input: 2.0, read: 0.1, write: 2.5, output: 10.0 }),
        state,
    };
    let model =
        |name: &str, provider: &str, state| (format!("{provider}/{name}"), row(name, provider, state));
    ViewData::Models(ModelData {
        models: vec![
            model("sonnet-5.5", "anthropic", ModelState::Current(0.0096)),
            model("opus-5.5", "anthropic", ModelState::Switch { now: 0.173, then: 0.017 }),
            model("gpt-6.1-sol", "openai", ModelState::NoKey("OPENAI_API_KEY".into())),
        ],
        efforts: ["low", "medium", "high"].map(String::from).to_vec(),
        effort: 1,
        effort_keeps_cache: false,
    })
}

fn sessions() -> ViewData {
    let item = |id: &str, prompt: &str, folder: Option<&str>| SessionItem {
        id: id.into(),
        folder: folder.map(str::to_owned),
        row: SessionRow {
            age: Duration::from_secs(86_400),
            name: None,
            prompt: prompt.into(),
            agent: None,
            branch: "main".into(),
            turns: 9,
            cost: Cost { paid: 0.31, ..Cost::default() },
            going_on: GoingOn::Cold(0.12),
        },
    };
    let sessions = vec![
        item("s1", "cap the gap penalty \u{202e}evil", None),
        item("s2", "why does the retry test hang?", None),
        item("s3", "elsewhere", Some("/srv/other")),
    ];
    ViewData::Sessions(SessionData { is_everywhere: false, sessions })
}

fn tree() -> ViewData {
    let item = |number: &str, prompt: &str, is_here: bool| TreeItem {
        entry: format!("e{number}"),
        step: TreeStep {
            number: number.into(),
            depth: 0,
            is_last: is_here,
            open_branches: Vec::new(),
            prompt: prompt.into(),
            changes: "fuzzy.ts".into(),
            cost: 0.02,
            label: None,
            note: None,
            is_here,
        },
        back: (!is_here).then(|| StepBack {
            number: number.into(),
            files: vec!["fuzzy.ts".into()],
            next: 0.006,
            is_cached: true,
        }),
    };
    ViewData::Tree(TreeData { steps: vec![item("1", "where?", false), item("2", "also the docs", true)] })
}

fn choices(stays_open: bool) -> ViewData {
    let choice = |name: &str, is_current, price| {
        let choice = Choice {
            name: name.into(),
            meaning: format!("what {name} is"),
            is_on: stays_open.then_some(true),
            is_current,
            price,
        };
        (choice, format!("/layout {name}"))
    };
    let choices = vec![
        choice("strata", !stays_open, None),
        choice("tiers", false, Some(0.11)),
        choice("inline", false, None),
    ];
    ViewData::Choices(ChoiceData { title: "layout".into(), choices, stays_open })
}

fn price() -> ViewData {
    let choice = |key: &str, act: &str, price| PriceChoice {
        key: key.into(),
        act: act.into(),
        effect: "38,900 tokens are written again".into(),
        price,
        note: None,
    };
    let choices = vec![
        choice("n", "now", Some(0.093)),
        choice("f", "at the next free fold", Some(0.0)),
        choice("Esc", "leave it", None),
    ];
    let (question, about) = ("Exclude fuzzy.ts?".into(), "2,140 tokens".into());
    let commands =
        vec![Some("/exclude file:fuzzy.ts".into()), Some("/exclude file:fuzzy.ts free".into()), None];
    ViewData::Price(PriceData { price: ActPrice { question, about, choices, chosen: 1 }, commands })
}

fn diff() -> ViewData {
    let before = "fn main() {\n    one();\n}\n";
    ViewData::Diff(vec![
        FileDiff::new("src/a.rs", before, &before.replace("one()", "one(1)")),
        FileDiff::new("src/new\u{7}.rs", "", "fn b() {}\n"),
    ])
}

fn kinds() -> Vec<(&'static str, ViewKind, ViewData)> {
    vec![
        ("context", ViewKind::Context, context()),
        ("models", ViewKind::Model, models()),
        ("sessions", ViewKind::Sessions, sessions()),
        ("tree", ViewKind::Tree, tree()),
        ("layouts", ViewKind::Layout, choices(false)),
        ("tools", ViewKind::Tools, choices(true)),
        ("price", ViewKind::Price("/exclude file:fuzzy.ts".into()), price()),
        ("changes", ViewKind::Changes, diff()),
        ("lines", ViewKind::Help, ViewData::Lines(vec![Line::from("one"), Line::from("two")])),
    ]
}

fn press(view: &mut Box<dyn View>, key: &str, face: &TestFace) -> ViewOutcome {
    view.take_input(&InputEvent::Key(KeyPress::parse(key).unwrap()), face.now, &face.model)
}

#[test]
fn every_view_at_every_size() {
    for (name, kind, data) in kinds() {
        let drawn = drawings(|columns, rows, theme| {
            let size = (u16::try_from(columns).unwrap(), u16::try_from(rows).unwrap());
            let face = TestFace::with_theme(size.0, size.1, *theme);
            let mut view = open_view(kind.clone(), data.clone()).unwrap();
            if name == "context" {
                // Down to BASE, and open it: at any width, whether layers share rows or not.
                let keys: &[&str] = match columns {
                    100.. => &["down", "down", "enter", "down"],
                    // Neighbours share a row: the first Enter splits it.
                    _ => &["down", "enter", "enter", "down"],
                };
                for key in keys {
                    press(&mut view, key, &face);
                }
            }
            let frame = view.draw(&face.model);
            assert!(frame.rows.len() <= rows, "{name} {columns}");
            frame.rows
        });
        insta::assert_snapshot!(format!("view_{name}"), drawn);
    }
}

/// What a key does, in a word.
fn word(outcome: &ViewOutcome) -> String {
    let effect = |effect: &Effect| match effect {
        Effect::Open(kind) => format!("open {kind:?}"),
        Effect::Send(submission) => submission.text.clone(),
        other => format!("{other:?}"),
    };
    match outcome {
        ViewOutcome::Stay => "·".to_owned(),
        ViewOutcome::Close => "close".to_owned(),
        ViewOutcome::Effect(it) => effect(it),
        ViewOutcome::CloseWith(it) => format!("close, {}", effect(it)),
        ViewOutcome::Pass => "pass".to_owned(),
    }
}

#[test]
fn every_view_and_key() {
    let keys = [
        "enter",
        "esc",
        "q",
        "ctrl-c",
        "down enter",
        "tab",
        "n",
        "f",
        "u",
        "s",
        "p",
        "c",
        "x",
        "r",
        "w",
        "v",
        "D",
        "L",
        "right enter",
        "down right enter",
        "ctrl-d",
        "ctrl-d ctrl-d",
        "ctrl-d down ctrl-d",
        "ctrl-r a enter",
        "up enter",
        "pagedown",
        "G enter",
        "/",
        "space",
        "ctrl-d x ctrl-d",
    ];
    let mut table = String::new();
    for (name, kind, data) in kinds() {
        table.push_str(&format!("── {name}\n"));
        for sequence in keys {
            let face = TestFace::new(100, 32);
            let mut view = open_view(kind.clone(), data.clone()).unwrap();
            let mut last = ViewOutcome::Stay;
            for key in sequence.split(' ') {
                last = press(&mut view, key, &face);
            }
            table.push_str(&format!("{sequence:<20} {}\n", word(&last)));
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn every_act_on_the_context_is_priced_first() {
    let face = TestFace::new(100, 32);
    let open = || {
        let mut view = open_view(ViewKind::Context, context()).unwrap();
        for key in ["down", "down", "enter", "down"] {
            assert_eq!(press(&mut view, key, &face), ViewOutcome::Stay);
        }
        view
    };
    let expected = [
        ("p", ViewKind::Price("/unpin file:src/fuzzy.ts".into())),
        ("c", ViewKind::Price("/unpin file:src/fuzzy.ts".into())),
        ("x", ViewKind::Price("/exclude file:src/fuzzy.ts".into())),
        ("f", ViewKind::Price("/fold".into())),
        ("enter", ViewKind::Item("file:src/fuzzy.ts".into())),
        ("r", ViewKind::Item("file:src/fuzzy.ts".into())),
        ("w", ViewKind::Why),
        ("v", ViewKind::RequestBytes),
        ("D", ViewKind::RequestDiff),
        ("L", ViewKind::Layout),
    ];
    for (key, kind) in expected {
        assert_eq!(press(&mut open(), key, &face), ViewOutcome::Effect(Effect::Open(kind)), "{key}");
    }
    let mut view = open();
    press(&mut view, "down", &face);
    let close = ViewKind::Price("/exclude file:src/a\u{1b}[2Jb.ts free".into());
    assert_eq!(press(&mut view, "c", &face), ViewOutcome::Effect(Effect::Open(close)));
    let mut view = open();
    press(&mut view, "G", &face);
    let include = ViewKind::Price("/include message:e7".into());
    assert_eq!(press(&mut view, "r", &face), ViewOutcome::Effect(Effect::Open(include)));
    assert_eq!(press(&mut view, "x", &face), ViewOutcome::Stay, "it is left out already");
}

#[test]
fn typing_narrows_a_list_and_what_is_chosen_is_taken() {
    let face = TestFace::new(100, 32);
    let mut view = open_view(ViewKind::Model, models()).unwrap();
    for key in ["o", "p", "u"] {
        press(&mut view, key, &face);
    }
    let frame = view.draw(&face.model);
    assert_eq!(frame.cursor, Some((0, 12)));
    assert!(!frame.rows.iter().any(|row| row.to_string().contains("sonnet")));
    let switch = ViewKind::Price("/model anthropic/opus-5.5".into());
    assert_eq!(press(&mut view, "enter", &face), ViewOutcome::CloseWith(Effect::Open(switch)));
    press(&mut view, "ctrl-u", &face);
    for key in ["g", "p", "t"] {
        press(&mut view, key, &face);
    }
    assert_eq!(press(&mut view, "enter", &face), ViewOutcome::Stay, "it has no key");
    press(&mut view, "z", &face);
    assert!(view.draw(&face.model).rows.iter().any(|row| row.to_string().contains("nothing matches")));
}

#[test]
fn new_data_keeps_what_is_chosen() {
    let face = TestFace::new(100, 32);
    let mut view = open_view(ViewKind::Sessions, sessions()).unwrap();
    press(&mut view, "down", &face);
    let ViewData::Sessions(mut fewer) = sessions() else { unreachable!() };
    fewer.sessions.remove(0);
    view.take_data(ViewData::Sessions(fewer));
    assert_eq!(word(&press(&mut view, "enter", &face)), "close, /resume s2");
}

#[test]
fn a_question_is_told_in_the_last_row_of_every_view() {
    for (name, kind, data) in kinds() {
        let face = TestFace::new(40, 20);
        let mut view = open_view(kind, data).unwrap();
        let mut frame = view.draw(&face.model);
        mark_question(&mut frame, 20, &face.model.theme);
        assert_eq!(frame.rows.len(), 20, "{name}");
        assert!(frame.rows[19].to_string().starts_with("! asks"), "{name}");
        assert!(!frame.rows.iter().any(|row| row.to_string().contains(is_unsafe)), "{name}");
    }
}

#[test]
fn views_open_by_commands_without_arguments() {
    let mut face = TestFace::new(80, 24);
    for (line, kind) in [
        ("/model", ViewKind::Model),
        ("/resume", ViewKind::Sessions),
        ("/tree", ViewKind::Tree),
        ("/layout", ViewKind::Layout),
        ("/agent", ViewKind::Agent),
        ("/tools", ViewKind::Tools),
        ("/context", ViewKind::Context),
        ("/changes", ViewKind::Changes),
    ] {
        face.type_text(line);
        let effects = face.press("enter");
        assert!(effects.contains(&Effect::Open(kind)), "{line}: {effects:?}");
    }
    face.type_text("/model opus");
    assert!(matches!(face.press("enter").last(), Some(Effect::Send(_))));
}
