//! Whatever others wrote, no line of a block steers the terminal.

use std::time::Duration;

use proptest::prelude::*;
use ratatui::text::Line;

use super::pickers::{
    ActPrice, Filter, GoingOn, ModelPicker, ModelRow, ModelState, PriceChoice, SessionPicker, SessionRow,
    StepBack, TreeStep, TreeView,
};
use super::*;
use crate::text::is_unsafe;
use crate::theme::{Palette, Theme};

/// Text with everything that steers terminals and readers.
fn foreign() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9 ._/-]{0,12}",
        1 => proptest::char::any().prop_map(String::from),
        3 => prop_oneof![
            Just("\u{1b}[31m"), Just("\u{1b}]0;title\u{7}"), Just("\u{1b}]8;;http://x\u{1b}\\"), Just("\u{9b}2J"),
            Just("\u{9d}52;c;aGk=\u{9c}"), Just("\u{202e}"), Just("\u{2066}"), Just("\u{200f}"), Just("\u{61c}"),
            Just("\u{2028}"), Just("\r"), Just("\n"), Just("\r\n"), Just("\t"), Just("\0"), Just("\u{7f}"),
            Just("\u{8}"), Just("\u{85}"), Just("שלום"), Just("👩\u{200d}💻"), Just("世界"), Just("```rust\n"), Just("| a | b |\n|--|--|\n"),
        ].prop_map(String::from),
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Every block, with the text in all places that others can fill.
fn all_blocks(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let second = Duration::from_secs(1);
    let s = || text.to_owned();
    let mut lines = render_markdown(text, columns, theme);
    let mut open = MarkdownRenderer::new(columns, *theme);
    lines.extend(open.push(text));
    lines.extend(open.open_tail());
    let reversed: String = text.chars().rev().collect();
    let diff = FileDiff::new("a.rs", text, &reversed);
    lines.extend(diff.unified(columns, theme));
    lines.extend(side_by_side(&diff, columns, theme).0);
    for state in [
        CallState::Waiting,
        CallState::Done { elapsed: second },
        CallState::Failed { elapsed: second, output: s() },
        CallState::Running { frame: Some(1), elapsed: second, line_count: 3, output: s() },
    ] {
        for subject in [Subject::Path(s()), Subject::Text(s())] {
            lines.extend(
                ToolCall { tool: s(), subject, facts: vec![s()], state: state.clone() }.lines(columns, theme),
            );
        }
    }
    lines.extend(command_lines(text, columns, theme));
    lines.extend(warning_lines(&[(s(), s())], columns, theme));
    lines.push(subagent_line(text, text, &[s()], columns, theme));
    lines.extend(prompt_lines(text, columns, theme));
    lines.extend(reasoning_tail(text, columns, theme));
    lines.push(Retry { reason: s(), wait: second, attempt: (1, 2), now: Some(s()) }.line(columns, theme));
    lines.extend(queue_lines(&[(Delivery::AtTheEnd, s())], columns, theme));
    let summary = RunSummary {
        end: RunEnd::Done,
        elapsed: second,
        requests: 1,
        changes: (1, 1, 1),
        cost: Cost::default(),
        read: None,
        paid_again: Some(PaidAgain { tokens: 1, dollars: 0.1, cause: s() }),
    };
    lines.extend(summary.lines(columns, theme));
    lines.push(StatusLine { mode: s(), model: s(), ..StatusLine::default() }.line(columns, theme));
    lines.extend(context(text).lines(columns, theme).fit(50));
    lines.extend(context(text).sidebar(33, theme));
    lines.extend(all_pickers(text, columns, theme));
    lines
}

fn context(text: &str) -> ContextView {
    let s = || text.to_owned();
    let layer = |depth| Layer {
        name: s(),
        part: Some(s()),
        turns: Some((1, 2)),
        depth,
        parts: vec![(10, CacheState::Read)],
        age: LayerAge::Text(s()),
        last: LastUse::Text(s()),
        next: 0.1,
        amount: 0.1,
        holds: s(),
        has_breakpoint: true,
    };
    let verdict = LastVerdict { request: 1, tokens: 1, dollars: 0.1, cause: s(), is_avoidable: true };
    ContextView {
        layout: s(),
        model: s(),
        max_tokens: 100,
        next: 0.1,
        cold: 0.1,
        is_price_unknown: false,
        columns: ContextColumns::STRATA,
        rows: vec![
            ContextRow::Layer(layer(0)),
            ContextRow::Layer(layer(1)),
            ContextRow::Mark(CacheMark { is_older: true, tokens: 5, note: s() }),
            ContextRow::Layer(layer(0)),
        ],
        chosen: 1,
        is_split: false,
        facts: ContextFacts { verdict: Some(verdict), kinds: vec![(s(), 1)], ..ContextFacts::default() },
        notes: vec![s()],
        keys: Vec::new(),
    }
}

fn all_pickers(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let s = || text.to_owned();
    let filter = || Filter { text: s() };
    let model = |state| ModelRow { name: s(), provider: s(), window: s(), prices: None, state };
    let models = ModelPicker {
        filter: filter(),
        models: vec![model(ModelState::NoKey(s())), model(ModelState::Current(0.1))],
        chosen: 0,
        efforts: vec![s()],
        effort: 0,
        effort_keeps_cache: false,
    };
    let session = SessionRow {
        age: Duration::from_secs(1),
        name: Some(s()),
        prompt: s(),
        agent: Some(s()),
        branch: s(),
        turns: 1,
        cost: Cost::default(),
        going_on: GoingOn::Unknown,
    };
    let sessions =
        SessionPicker { filter: filter(), is_everywhere: true, sessions: vec![session], chosen: 0 };
    let step = TreeStep {
        number: s(),
        depth: 1,
        is_last: true,
        open_branches: vec![true],
        prompt: s(),
        changes: s(),
        cost: 0.1,
        label: Some(s()),
        note: Some(s()),
        is_here: true,
    };
    let back = StepBack { number: s(), files: vec![s()], next: 0.1, is_cached: true };
    let tree = TreeView { steps: vec![step], chosen: 0, step_back: Some(back) };
    let choice =
        PriceChoice { key: "n".into(), act: "now".into(), effect: s(), price: None, note: Some(s()) };
    let price = ActPrice { question: s(), about: s(), choices: vec![choice], chosen: 0 };
    let views = [models.lines(columns, theme), sessions.lines(columns, theme), tree.lines(columns, theme)];
    views.iter().flat_map(|view| view.fit(20)).chain(price.lines(columns, theme)).collect()
}

#[test]
fn styles_in_every_palette() {
    let markdown = "# Title\n**hard** *soft* `code` ~~gone~~ <https://a.b>\n- item\n\n> quote\n\n```rust\nlet x = \"s\"; // why\n```\n";
    let diff = FileDiff::new("a.rs", "let a = 1; // one\nlet b = 2;\n", "let a = 10; // one\nlet b = 2;\n");
    let call = |state| ToolCall {
        tool: "bash".into(),
        subject: Subject::Text("make".into()),
        facts: vec!["exit 1".into()],
        state,
    };
    let failed = CallState::Failed { elapsed: Duration::from_secs(3), output: "error\n".into() };
    let status = StatusLine {
        mode: "all".into(),
        is_dangerous: true,
        model: "sonnet".into(),
        layers: vec![
            (3, CacheState::Read),
            (2, CacheState::Garbage),
            (1, CacheState::Written),
            (2, CacheState::Sent),
        ],
        warmth: Some(Warmth::Warm(Duration::from_secs(42))),
        ..StatusLine::default()
    };
    let draw = |theme: &Theme| {
        let mut lines = render_markdown(markdown, 80, theme);
        lines.extend(diff.unified(80, theme));
        lines.extend(call(failed.clone()).lines(80, theme));
        lines.extend(call(CallState::Done { elapsed: Duration::ZERO }).lines(80, theme));
        lines.push(status.line(80, theme));
        lines.extend(context("x").lines(80, theme).fit(24));
        lines
    };
    insta::assert_snapshot!("styles", golden::palettes(draw));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_line_of_any_block_steers_the_terminal(text in foreign(), columns in 20_usize..120) {
        for palette in [Palette::Ansi, Palette::Dark, Palette::None] {
            for line in all_blocks(&text, columns, &Theme { palette, ..Theme::default() }) {
                let shown = line.to_string();
                prop_assert!(!shown.contains(is_unsafe), "{:?}", shown);
            }
        }
    }
}
