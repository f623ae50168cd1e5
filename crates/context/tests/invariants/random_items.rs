//! Random context items (files, the symbol map, the tree, pages, panels) and random changes to
//! them.

use hardpan_context::{FileEntry, ItemEntry, PageEntry, SnapshotFile, SymbolEntry, SymbolsEntry, TreeEntry};
use hardpan_prompt::{ItemKind, MessageId, Text, Tier, Volatility};

use crate::random_session::key_of;
use crate::random_text;
use crate::rng::TestRng;

const PATHS: [&str; 8] = [
    "src/a.rs",
    "src/b.rs",
    "src/deep/er/c.rs",
    "README.md",
    "with space.txt",
    "windows\\path.rs",
    "ünïcode/文.md",
    "quote\"and`tick`.js",
];

/// Ids that a person may give a panel: among them some that are one and the same once made valid,
/// and ours.
const IDS: [&str; 14] = [
    "P1",
    "P2",
    "P7",
    "P10",
    "chat",
    "footer",
    "H1",
    "a b",
    "a_b",
    "a/b",
    "",
    "é",
    "001",
    "a-very-long-id-that-goes-on-and-on-and-on-until-no-provider-takes-it",
];

/// Adds random items of every kind to a snapshot.
pub fn add_items(rng: &mut TestRng, file: &mut SnapshotFile) {
    let ids: Vec<MessageId> = file.messages.iter().map(|message| message.id.clone()).collect();
    for path in PATHS {
        if rng.one_in(4) {
            let entry = new_file(rng, path, &ids);
            file.files.push(entry);
        }
    }
    if rng.one_in(2) {
        let entries = PATHS.iter().filter(|_| rng.one_in(3)).copied().collect::<Vec<_>>();
        let entries = entries.into_iter().map(|path| symbols(rng, path)).collect();
        file.symbols = Some(SymbolsEntry {
            legend: rng.rarely(2, |rng| Text::new(random_text::file_text(rng))),
            entries,
        });
    }
    if rng.one_in(2) {
        let files = PATHS.iter().filter(|_| !rng.one_in(4)).map(ToString::to_string).collect();
        file.tree = Some(TreeEntry { files, last_refresh_ms: moment(rng) });
    }
    let pages = if rng.one_in(2) { 0 } else { rng.between(1, 5) };
    file.pages = (0..pages).map(|number| page(rng, number)).collect();
    let panels = rng.below(5);
    for _ in 0..panels {
        add_item(rng, file, &ids);
    }
}

/// Few different times, so that ties are common.
fn moment(rng: &mut TestRng) -> i64 {
    1_771_509_600_000 + 1000 * rng.below(4) as i64
}

fn tier(rng: &mut TestRng) -> Option<Tier> {
    (!rng.one_in(3)).then(|| *rng.pick(&Tier::ALL))
}

fn volatility(rng: &mut TestRng) -> Option<Volatility> {
    let all = [Volatility::Static, Volatility::Slow, Volatility::Active, Volatility::Tail, Volatility::Tail];
    rng.rarely(3, |rng| *rng.pick(&all))
}

fn shown_by(rng: &mut TestRng, ids: &[MessageId]) -> Option<MessageId> {
    match rng.below(8) {
        0 | 1 if !ids.is_empty() => Some(rng.pick(ids).clone()),
        2 => Some(MessageId::from("gone")),
        _ => None,
    }
}

fn new_file(rng: &mut TestRng, path: &str, ids: &[MessageId]) -> FileEntry {
    let content = (!rng.one_in(8)).then(|| Text::new(random_text::file_text(rng)));
    FileEntry {
        path: path.to_owned(),
        reason: content.is_none().then(|| "permission denied".to_owned()).filter(|_| rng.one_in(2)),
        content,
        code: None,
        id: rng.rarely(6, |rng| (*rng.pick(&IDS)).into()),
        last_refresh_ms: moment(rng),
        tier: tier(rng),
        unchanged_responses: rng.rarely(2, |rng| rng.below(15) as u32),
        volatility: volatility(rng),
        shown_by: shown_by(rng, ids),
    }
}

fn symbols(rng: &mut TestRng, path: &str) -> SymbolEntry {
    SymbolEntry {
        path: path.to_owned(),
        content: random_text::file_text(rng).into(),
        tier: tier(rng),
        unchanged_responses: None,
    }
}

fn page(rng: &mut TestRng, number: usize) -> PageEntry {
    PageEntry {
        url: format!("https://example.org/{number}?q=a b"),
        title: rng.rarely(2, random_text::line),
        content: random_text::file_text(rng),
        symbol_map: rng.rarely(4, random_text::line),
        last_refresh_ms: moment(rng),
    }
}

/// Adds a panel, or now and then an item of another kind; nothing if its key is taken.
fn add_item(rng: &mut TestRng, file: &mut SnapshotFile, ids: &[MessageId]) {
    let id = *rng.pick(&IDS);
    let (kind, key) = match rng.below(14) {
        0 => (ItemKind::File, Some("file:given/whole.rs")),
        1 => (ItemKind::Symbols, Some("symbols:given/whole.rs")),
        2 => (ItemKind::Page, Some("url:https://example.org/given")),
        3 => (ItemKind::Tree, Some("tree:second")),
        4 => (ItemKind::Legend, Some("legend:second")),
        5 => (*rng.pick(&[ItemKind::System, ItemKind::History, ItemKind::Tool]), Some("odd")),
        _ => (ItemKind::Panel, None),
    };
    let entry = ItemEntry {
        id: id.into(),
        key: key.map(Into::into),
        kind,
        header: random_text::line(rng).into(),
        content: random_text::file_text(rng).into(),
        last_refresh_ms: moment(rng),
        tier: tier(rng),
        unchanged_responses: None,
        volatility: volatility(rng),
        shown_by: shown_by(rng, ids),
    };
    if file.items.iter().all(|other| key_of(other) != key_of(&entry)) {
        file.items.push(entry);
    }
}

/// Changes, adds, removes and opens random items, as happens between two requests.
pub fn change_items(rng: &mut TestRng, file: &mut SnapshotFile) {
    let ids: Vec<MessageId> = file.messages.iter().map(|message| message.id.clone()).collect();
    for entry in &mut file.files {
        if let Some(content) = entry.content.as_mut().filter(|_| rng.one_in(3)) {
            *content = Text::new(random_text::changed_text(rng, content));
            entry.last_refresh_ms += 1000;
            // Either the last message shows the change, or it came from outside.
            entry.shown_by = ids.last().filter(|_| rng.one_in(3)).cloned();
        }
        if rng.one_in(12) {
            entry.volatility = volatility(rng);
        }
    }
    for entry in &mut file.items {
        if !rng.one_in(3) {
            continue;
        }
        entry.content = Text::new(random_text::changed_text(rng, &entry.content));
        entry.last_refresh_ms += 1000;
    }
    for entry in file.symbols.iter_mut().flat_map(|symbols| &mut symbols.entries) {
        if rng.one_in(4) {
            entry.content = Text::new(random_text::changed_text(rng, &entry.content));
        }
    }
    if let Some(tree) = file.tree.as_mut().filter(|_| rng.one_in(3)) {
        tree.files.push(format!("src/new{}.rs", rng.below(9)));
    }
    file.files.retain(|_| !rng.one_in(8));
    file.items.retain(|_| !rng.one_in(8));
    file.pages.retain(|_| !rng.one_in(8));
    for path in PATHS {
        if rng.one_in(8) && file.files.iter().all(|entry| entry.path != path) {
            let entry = new_file(rng, path, &ids);
            file.files.push(entry);
        }
    }
    if rng.one_in(4) {
        add_item(rng, file, &ids);
    }
}
