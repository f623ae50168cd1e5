//! What a face has in the place of components.

use super::*;

/// What `ctx.ui.custom` gives for a factory, and what was noted meanwhile.
async fn run_custom(factory: &str) -> (Value, Vec<String>) {
    let source = format!(
        "import {{ Container, Editor, Input, SelectList, SettingsList, Text, matchesKey }} from '@mariozechner/pi-tui'; import {{ BorderedLoader, DynamicBorder }} from '@mariozechner/pi-coding-agent';\nexport default (pi) => {{ pi.on('x', async (event, ctx) => (await ctx.ui.custom({factory})) ?? 'nothing'); }};"
    );
    let test = load(&source).await;
    let before = test.host.notes().len();
    let value = test.call(json!({})).await.unwrap();
    let noted = test.host.notes().into_iter().skip(before).filter(|note| note.starts_with("ui.")).collect();
    (value, noted)
}

#[tokio::test]
async fn lists_and_fields_of_components_become_questions() {
    let list = "(tui, theme, keys, done) => { const box = new Container(); box.addChild(new DynamicBorder((s) => theme.fg('accent', s))); box.addChild(new Text(theme.bold('Which one?'))); const list = new SelectList([{ value: 'a', label: 'A' }, { value: 'b', label: 'B', description: 'second' }], 5, {}); list.onSelect = (item) => done(item.value); list.onCancel = () => done(null); box.addChild(list); return { render: (w) => box.render(w), invalidate: () => box.invalidate(), handleInput: (data) => list.handleInput(data) }; }";
    assert_eq!(run_custom(list).await, (json!("b"), vec![]));
    let field =
        "(tui, theme, keys, done) => { const field = new Input(); field.onSubmit = done; return field; }";
    assert_eq!(run_custom(field).await.0, json!("typed after \"Choose\""));
    // The second row is "Done" here.
    let settings = "(tui, theme, keys, done) => new SettingsList([{ id: 'x', label: 'X', currentValue: 'on', values: ['on', 'off'] }], 5, {}, () => {}, () => done('closed'))";
    assert_eq!(run_custom(settings).await.0, json!("closed"));
}

#[tokio::test]
async fn what_a_component_would_draw_is_shown_and_waiting_goes_on() {
    let drawn = "(tui, theme, keys, done) => ({ render: (width) => ['', theme.fg('accent', 'Escape closes two todos'), '\\u001b[1m- milk\\u001b[0m'], invalidate() {}, handleInput(data) { if (matchesKey(data, 'escape')) done('closed'); } })";
    let note = r#"ui.notify {"text":"Escape closes two todos\n- milk","level":"info"}"#.to_owned();
    assert_eq!(run_custom(drawn).await, (json!("closed"), vec![note]));
    let still = "() => ({ render: () => ['A line'], invalidate() {} })";
    let note = r#"ui.notify {"text":"A line","level":"info"}"#.to_owned();
    assert_eq!(run_custom(still).await, (json!("nothing"), vec![note]));
    let never = "() => ({ render: () => [], invalidate() {} })";
    assert_eq!(run_custom(never).await, (json!("nothing"), vec![]));
    let waiting = "(tui, theme, keys, done) => { const loader = new BorderedLoader(tui, theme, 'Thinking'); loader.onAbort = () => done(null); setTimeout(() => done(loader.signal.aborted ? 'aborted' : 'thought'), 30); return loader; }";
    assert_eq!(run_custom(waiting).await, (json!("thought"), vec![]));
}

#[tokio::test]
async fn a_component_with_keys_of_its_own_is_asked_key_by_key() {
    // The title, which is the first line that is no border and no row, names the key that is pressed.
    let confirming = "(tui, theme, keys, done) => { const asked = ['Down', 'Tab', 'Enter']; const pressed = []; return { render: () => ['────', '> yes', asked[0]], handleInput(data) { pressed.push(data); asked.shift(); if (matchesKey(data, 'enter')) done(pressed); } }; }";
    let notes = ["Down", "Tab", "Enter"]
        .map(|key| format!(r#"ui.notify {{"text":"────\n> yes\n{key}","level":"info"}}"#));
    assert_eq!(run_custom(confirming).await, (json!(["\u{1b}[B", "\t", "\r"]), notes.to_vec()));
    let typed = "(tui, theme, keys, done) => { let typed = ''; return { render: () => [typed === '' ? 'Type … the name' : 'Enter it'], handleInput(data) { if (matchesKey(data, 'enter')) done(typed); else typed += data; } }; }";
    assert_eq!(run_custom(typed).await.0, json!("typed after \"Text\""));
    // One that never ends is left after some time.
    let endless = "() => ({ render: () => ['Up and up'], handleInput() {} })";
    assert_eq!(run_custom(endless).await.0, json!("nothing"));
    // One that ends by itself takes its question away.
    let late = "(tui, theme, keys, done) => { setTimeout(() => done('late'), 30); return { render: () => ['Not answered'], handleInput() {} }; }";
    assert_eq!(run_custom(late).await.0, json!("late"));
}

#[tokio::test]
async fn what_is_typed_filters_the_list_of_a_component() {
    let filtering = "(tui, theme, keys, done) => { const field = new Input(); const all = ['apple', 'typed after \"Fruit\"']; const shown = () => all.filter((name) => name.includes(field.getValue())); field.onSubmit = () => done(shown()[0] ?? null); return { render: () => ['Fruit', ...field.render(), ...shown().map((name) => '- ' + name)], handleInput: (data) => field.handleInput(data) }; }";
    let note =
        "ui.notify {\"text\":\"Fruit\\n>\\n- apple\\n- typed after \\\"Fruit\\\"\",\"level\":\"info\"}"
            .to_owned();
    assert_eq!(run_custom(filtering).await, (json!("typed after \"Fruit\""), vec![note]));
    // Keys that the field does not get are not typed.
    let deaf = "(tui, theme, keys, done) => { const field = new Input(); field.onSubmit = (text) => done(['as a whole', text]); return { render: () => ['Name'], handleInput() {} }; }";
    assert_eq!(run_custom(deaf).await.0, json!(["as a whole", "typed after \"Name\""]));
}

#[tokio::test]
async fn hints_name_the_keys_of_actions() {
    let expression = "await (async () => { const { keyText, keyHint, rawKeyHint } = await import('@earendil-works/pi-coding-agent'); return [keyText('app.tools.expand'), keyHint('tui.select.cancel', 'to close'), rawKeyHint('esc', 'to close'), keyHint('x', 'y')]; })()";
    assert_eq!(evaluate(expression).await, json!(["ctrl+o", "escape to close", "esc to close", "x y"]));
}

#[tokio::test]
async fn a_widget_of_components_is_shown_as_its_lines_whenever_it_asks() {
    let test = load("import { Text } from '@mariozechner/pi-tui';\nexport default (pi) => { pi.on('x', async (event, ctx) => { let n = 1; let screen; ctx.ui.setWidget('w', (tui, theme) => { screen = tui; return { render: () => new Text(theme.fg('dim', 'count ' + n)).render(80), invalidate() {} }; }); n = 2; screen.requestRender(); await new Promise((r) => setTimeout(r, 5)); }); };").await;
    test.call(json!({})).await.unwrap();
    test.host.wait_for(r#"ui.widget {"key":"w","lines":[" count 1"]}"#).await;
    test.host.wait_for(r#"ui.widget {"key":"w","lines":[" count 2"]}"#).await;
}
