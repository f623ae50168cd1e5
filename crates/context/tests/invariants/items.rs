//! Random context: files, the symbol map, the tree, pages and panels; and how it changes.

use hardpan_context::{FileEntry, ItemEntry, PageEntry, SnapshotFile, SymbolEntry, SymbolsEntry, TreeEntry};
use hardpan_prompt::{Kind, MessageId, Text, Tier, Volatility};

use crate::dice::Dice;
use crate::session::key_of;
use crate::words;

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

/// Ids that a person may give a panel: among them some that are one and the same once made valid, and ours.
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

/// Fills in everything keyed.
pub fn fill(dice: &mut Dice, file: &mut SnapshotFile) {
    let ids: Vec<MessageId> = file.messages.iter().map(|message| message.id.clone()).collect();
    for path in PATHS {
        if dice.one_in(4) {
            let entry = new_file(dice, path, &ids);
            file.files.push(entry);
        }
    }
    if dice.one_in(2) {
        let entries = PATHS.iter().filter(|_| dice.one_in(3)).copied().collect::<Vec<_>>();
        let entries = entries.into_iter().map(|path| symbols(dice, path)).collect();
        file.symbols =
            Some(SymbolsEntry { legend: dice.rarely(2, |dice| Text::new(words::body(dice))), entries });
    }
    if dice.one_in(2) {
        let files = PATHS.iter().filter(|_| !dice.one_in(4)).map(ToString::to_string).collect();
        file.tree = Some(TreeEntry { files, last_refresh_ms: moment(dice) });
    }
    let pages = if dice.one_in(2) { 0 } else { dice.between(1, 5) };
    file.pages = (0..pages).map(|number| page(dice, number)).collect();
    let panels = dice.below(5);
    for _ in 0..panels {
        add_item(dice, file, &ids);
    }
}

/// Few different times, so that ties are common.
fn moment(dice: &mut Dice) -> i64 {
    1_771_509_600_000 + 1000 * dice.below(4) as i64
}

fn tier(dice: &mut Dice) -> Option<Tier> {
    (!dice.one_in(3)).then(|| *dice.pick(&Tier::ALL))
}

fn volatility(dice: &mut Dice) -> Option<Volatility> {
    let all = [Volatility::Still, Volatility::Calm, Volatility::Lively, Volatility::Tail, Volatility::Tail];
    dice.rarely(3, |dice| *dice.pick(&all))
}

fn said_by(dice: &mut Dice, ids: &[MessageId]) -> Option<MessageId> {
    match dice.below(8) {
        0 | 1 if !ids.is_empty() => Some(dice.pick(ids).clone()),
        2 => Some(MessageId::from("gone")),
        _ => None,
    }
}

fn new_file(dice: &mut Dice, path: &str, ids: &[MessageId]) -> FileEntry {
    let content = (!dice.one_in(8)).then(|| Text::new(words::body(dice)));
    FileEntry {
        path: path.to_owned(),
        reason: content.is_none().then(|| "permission denied".to_owned()).filter(|_| dice.one_in(2)),
        content,
        id: dice.rarely(6, |dice| (*dice.pick(&IDS)).into()),
        last_refresh_ms: moment(dice),
        tier: tier(dice),
        n: dice.rarely(2, |dice| dice.below(15) as u32),
        volatility: volatility(dice),
        said_by: said_by(dice, ids),
    }
}

fn symbols(dice: &mut Dice, path: &str) -> SymbolEntry {
    SymbolEntry { path: path.to_owned(), content: words::body(dice).into(), tier: tier(dice), n: None }
}

fn page(dice: &mut Dice, number: usize) -> PageEntry {
    PageEntry {
        url: format!("https://example.org/{number}?q=a b"),
        title: dice.rarely(2, words::line),
        content: words::body(dice),
        symbol_map: dice.rarely(4, words::line),
        last_refresh_ms: moment(dice),
    }
}

/// A panel, or now and then something else given whole; nothing if its key is taken.
fn add_item(dice: &mut Dice, file: &mut SnapshotFile, ids: &[MessageId]) {
    let id = *dice.pick(&IDS);
    let (kind, key) = match dice.below(14) {
        0 => (Kind::File, Some("file:given/whole.rs")),
        1 => (Kind::Symbols, Some("symbols:given/whole.rs")),
        2 => (Kind::Page, Some("url:https://example.org/given")),
        3 => (Kind::Tree, Some("tree:second")),
        4 => (Kind::Legend, Some("legend:second")),
        5 => (*dice.pick(&[Kind::System, Kind::History, Kind::Tool]), Some("odd")),
        _ => (Kind::Panel, None),
    };
    let entry = ItemEntry {
        id: id.into(),
        key: key.map(Into::into),
        kind,
        header: words::line(dice).into(),
        content: words::body(dice).into(),
        last_refresh_ms: moment(dice),
        tier: tier(dice),
        n: None,
        volatility: volatility(dice),
        said_by: said_by(dice, ids),
    };
    if file.items.iter().all(|other| key_of(other) != key_of(&entry)) {
        file.items.push(entry);
    }
}

/// Changes, adds, removes and opens.
pub fn change(dice: &mut Dice, file: &mut SnapshotFile) {
    let ids: Vec<MessageId> = file.messages.iter().map(|message| message.id.clone()).collect();
    for entry in &mut file.files {
        if let Some(content) = entry.content.as_mut().filter(|_| dice.one_in(3)) {
            *content = Text::new(words::changed(dice, content));
            entry.last_refresh_ms += 1000;
            // What changed it is the newest message that could have, or something outside.
            entry.said_by = ids.last().filter(|_| dice.one_in(3)).cloned();
        }
        if dice.one_in(12) {
            entry.volatility = volatility(dice);
        }
    }
    for entry in &mut file.items {
        if !dice.one_in(3) {
            continue;
        }
        entry.content = Text::new(words::changed(dice, &entry.content));
        entry.last_refresh_ms += 1000;
    }
    for entry in file.symbols.iter_mut().flat_map(|symbols| &mut symbols.entries) {
        if dice.one_in(4) {
            entry.content = Text::new(words::changed(dice, &entry.content));
        }
    }
    if let Some(tree) = file.tree.as_mut().filter(|_| dice.one_in(3)) {
        tree.files.push(format!("src/new{}.rs", dice.below(9)));
    }
    file.files.retain(|_| !dice.one_in(8));
    file.items.retain(|_| !dice.one_in(8));
    file.pages.retain(|_| !dice.one_in(8));
    for path in PATHS {
        if dice.one_in(8) && file.files.iter().all(|entry| entry.path != path) {
            let entry = new_file(dice, path, &ids);
            file.files.push(entry);
        }
    }
    if dice.one_in(4) {
        add_item(dice, file, &ids);
    }
}
