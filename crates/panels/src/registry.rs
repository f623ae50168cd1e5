//! [`PanelRegistry`]: the panels of a conversation.

mod listing; // PanelListing: a panel, as faces list it
mod saved; // SavedPanels: what a session stores about them

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_prompt::{Hash, Item, ItemKind, Text};
use hardpan_tools::Tool;
use jiff::Timestamp;
use serde_json::Value;

use crate::ids::PanelIds;
use crate::paging::page_of;
use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshContext, RefreshStrategy};
pub use listing::PanelListing;
use saved::SavedPanel;
pub use saved::SavedPanels;

/// Brings back a panel of a kind with many, from its key and what it saved; `None` if that is not
/// possible any more.
pub type PanelOpener = Arc<dyn Fn(&str, Option<&Value>) -> Option<Arc<dyn Panel>> + Send + Sync>;

/// The panels of one conversation: their ids, what is shown of them, and what is stored.
///
/// A panel is rendered when its revision changed, and counts as changed when its bytes did.
#[derive(Default)]
pub struct PanelRegistry(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    entries: Vec<Entry>,
    ids: PanelIds,
    /// The files that the model opened, in order: paths relative to the root of the workspace.
    files: Vec<Arc<str>>,
    openers: BTreeMap<Box<str>, PanelOpener>,
    /// What is stored for panels that are not there now: a kind that is switched off keeps its state.
    absent: BTreeMap<Arc<str>, SavedPanel>,
}

struct Entry {
    panel: Arc<dyn Panel>,
    id: Arc<str>,
    is_hidden: bool,
    page: usize,
    rendered: Option<Rendered>,
    /// The content that was last shown, and since when it is that.
    hash: Option<Hash>,
    changed_at_ms: i64,
    refreshed_at: Option<Timestamp>,
    /// How often it was rendered.
    renderings: u64,
}

struct Rendered {
    revision: u64,
    page: usize,
    pages: usize,
    body: Option<Text>,
}

impl Entry {
    fn new(panel: Arc<dyn Panel>, id: Arc<str>, saved: &SavedPanel) -> Self {
        panel.restore(saved.state.as_ref());
        let SavedPanel { hidden: is_hidden, page, hash, changed_at_ms, .. } = *saved;
        let page = page.max(1);
        let (rendered, refreshed_at, renderings) = (None, None, 0);
        Entry { panel, id, is_hidden, page, rendered, hash, changed_at_ms, refreshed_at, renderings }
    }

    /// The content as it is now. Notes the time if it is not what was shown before.
    fn render(&mut self, now: Timestamp) -> Option<&Text> {
        let revision = self.panel.revision();
        let is_current =
            self.rendered.as_ref().is_some_and(|last| last.revision == revision && last.page == self.page);
        if !is_current {
            self.renderings += 1;
            let page = self.panel.render().map(|content| page_of(&content, self.page));
            if let Some(page) = &page {
                self.page = page.number;
            }
            let pages = page.as_ref().map_or(0, |page| page.count);
            let body = page.map(|page| Text::new(page.text));
            let hash = body.as_ref().map(Text::hash);
            let body = match self.rendered.take() {
                Some(last) if last.body.as_ref().map(Text::hash) == hash => last.body,
                _ => body,
            };
            if hash != self.hash {
                (self.hash, self.changed_at_ms) = (hash, now.as_millisecond());
            }
            self.rendered = Some(Rendered { revision, page: self.page, pages, body });
        }
        self.rendered.as_ref().and_then(|rendered| rendered.body.as_ref())
    }

    fn item(&mut self, now: Timestamp) -> Option<Item> {
        let body = self.render(now)?.clone();
        Some(Item {
            key: format!("panel:{}", self.panel.key()).into(),
            id: self.id.clone(),
            kind: ItemKind::Panel,
            title: self.panel.title().into(),
            body,
            changed_at_ms: self.changed_at_ms,
            volatility: self.panel.volatility(),
            tier: None,
            unchanged_responses: None,
            shown_by: None,
        })
    }

    fn save(&self) -> SavedPanel {
        SavedPanel {
            hidden: self.is_hidden,
            page: if self.page > 1 { self.page } else { 0 },
            hash: self.hash,
            changed_at_ms: self.changed_at_ms,
            state: self.panel.save(),
        }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        match self.panel.strategy() {
            RefreshStrategy::Watched => true,
            RefreshStrategy::Timed { seconds } => self.refreshed_at.is_none_or(|last| {
                let age = now.as_second().saturating_sub(last.as_second());
                // A clock that was set back makes it old, too.
                !(0..i64::from(seconds)).contains(&age)
            }),
            RefreshStrategy::Derived | RefreshStrategy::Streaming | RefreshStrategy::Static => false,
        }
    }
}

/// The kind that a key names: `console` of `console:1`.
fn kind_of(key: &str) -> &str {
    key.split_once(':').map_or(key, |(kind, _)| kind)
}

impl Contents {
    fn add(&mut self, panel: Arc<dyn Panel>) -> Arc<str> {
        let key: Arc<str> = panel.key().into();
        if let Some(known) = self.entries.iter().find(|entry| entry.panel.key() == &*key) {
            return known.id.clone();
        }
        let id = panel.fixed_id().map_or_else(|| self.ids.assign(&key), Into::into);
        let saved = self.absent.remove(&key).unwrap_or_default();
        self.entries.push(Entry::new(panel, id.clone(), &saved));
        // By number, so that requests do not depend on the order of opening.
        self.entries.sort_by_key(|entry| entry.id[1..].parse::<u32>().unwrap_or(u32::MAX));
        id
    }

    /// The entry that an id, a key or a title names.
    fn find(&mut self, name: &str) -> Result<&mut Entry, ActionError> {
        let name = name.trim();
        let at = self.entries.iter().position(|entry| {
            entry.id.eq_ignore_ascii_case(name) || entry.panel.key() == name || entry.panel.title() == name
        });
        match at {
            Some(at) => Ok(&mut self.entries[at]),
            None => {
                let file = self.ids.key_of(name).and_then(|key| key.strip_prefix("file:"));
                if let Some(path) = file.filter(|path| self.files.iter().any(|open| **open == **path)) {
                    return Err(ActionError::OpenFile { id: name.to_owned(), path: path.to_owned() });
                }
                let known = self.entries.iter().map(|entry| entry.id.to_string()).collect();
                Err(ActionError::NotFound { what: "panel", name: name.to_owned(), known })
            }
        }
    }
}

impl PanelRegistry {
    /// Adds a panel and returns its id. A panel with a key that is there already is not added.
    pub fn add(&self, panel: Arc<dyn Panel>) -> Arc<str> {
        self.lock().add(panel)
    }

    /// Says how the panels of a kind with many come back after a resume.
    pub fn register_opener(&self, kind: &str, opener: PanelOpener) {
        self.lock().openers.insert(kind.into(), opener);
    }

    /// The id of an open file or of anything else that is shown beside the panels. It stays.
    pub fn assign_id(&self, key: &str) -> Arc<str> {
        self.lock().ids.assign(key)
    }

    /// The key that an id was assigned to: `file:src/a.rs`.
    pub fn key_of(&self, id: &str) -> Option<Arc<str>> {
        self.lock().ids.key_of(id).cloned()
    }

    /// Keeps a file in view, named relative to the root of the workspace. Returns its id.
    pub fn open_file(&self, path: &str) -> Arc<str> {
        let mut contents = self.lock();
        if !contents.files.iter().any(|open| **open == *path) {
            contents.files.push(path.into());
        }
        contents.ids.assign(&format!("file:{path}"))
    }

    /// Takes a file out of view. False if the model has not opened it.
    pub fn close_file(&self, path: &str) -> bool {
        let mut contents = self.lock();
        let before = contents.files.len();
        contents.files.retain(|open| **open != *path);
        contents.files.len() < before
    }

    /// The files that the model opened, in order.
    pub fn open_files(&self) -> Vec<Arc<str>> {
        self.lock().files.clone()
    }

    /// The panel with a key.
    pub fn get(&self, key: &str) -> Option<Arc<dyn Panel>> {
        let contents = self.lock();
        contents.entries.iter().find(|entry| entry.panel.key() == key).map(|entry| entry.panel.clone())
    }

    /// Whether there is no panel.
    pub fn is_empty(&self) -> bool {
        self.lock().entries.is_empty()
    }

    /// Lets the panels that are watched or timed read what they show. Takes its time.
    pub fn refresh(&self, context: &RefreshContext<'_>) {
        let due: Vec<Arc<dyn Panel>> = {
            let mut contents = self.lock();
            let due = contents.entries.iter_mut().filter(|entry| entry.is_due(context.now));
            due.map(|entry| {
                entry.refreshed_at = Some(context.now);
                entry.panel.clone()
            })
            .collect()
        };
        // Not under the lock: a request that is only shown need not wait for it.
        due.iter().for_each(|panel| panel.refresh(context));
    }

    /// The panels as items of a request, by their ids. Those without content and hidden ones are none.
    pub fn items(&self, now: Timestamp) -> Vec<Item> {
        let mut contents = self.lock();
        let shown = contents.entries.iter_mut().filter(|entry| !entry.is_hidden);
        shown.filter_map(|entry| entry.item(now)).collect()
    }

    /// How often panels were rendered so far, for tests and measurements.
    pub fn renderings(&self) -> u64 {
        self.lock().entries.iter().map(|entry| entry.renderings).sum()
    }

    /// All panels, for a person.
    pub fn list(&self, now: Timestamp) -> Vec<PanelListing> {
        let mut contents = self.lock();
        let listing = |entry: &mut Entry| {
            let bytes = entry.render(now).map_or(0, |body| body.len());
            PanelListing {
                id: entry.id.clone(),
                key: entry.panel.key().to_owned(),
                title: entry.panel.title(),
                hidden: entry.is_hidden,
                page: entry.page,
                pages: entry.rendered.as_ref().map_or(0, |rendered| rendered.pages),
                bytes,
            }
        };
        contents.entries.iter_mut().map(listing).collect()
    }

    /// The content of a panel as requests show it, for a person.
    pub fn content(&self, name: &str, now: Timestamp) -> Result<Option<Text>, ActionError> {
        let mut contents = self.lock();
        Ok(contents.find(name)?.render(now).cloned())
    }

    /// Hides a panel, or shows it again.
    pub fn set_hidden(&self, name: &str, hidden: bool) -> Result<Arc<str>, ActionError> {
        let mut contents = self.lock();
        let entry = contents.find(name)?;
        entry.is_hidden = hidden;
        Ok(entry.id.clone())
    }

    /// Turns to a page, from 1; past the end, the last one. Returns its number and how many there are.
    pub fn turn_page(&self, name: &str, page: usize, now: Timestamp) -> Result<(usize, usize), ActionError> {
        let mut contents = self.lock();
        let entry = contents.find(name)?;
        entry.page = page.max(1);
        entry.render(now);
        Ok((entry.page, entry.rendered.as_ref().map_or(0, |rendered| rendered.pages)))
    }

    /// Closes a panel of a kind with many. Its id is not given to another one.
    pub fn close(&self, name: &str) -> Result<Arc<str>, ActionError> {
        let closed = {
            let mut contents = self.lock();
            let entry = contents.find(name)?;
            let id = entry.id.clone();
            if entry.panel.fixed_id().is_some() {
                return Err(ActionError::Fixed { id: id.to_string() });
            }
            let at = contents.entries.iter().position(|entry| entry.id == id);
            at.map(|at| contents.entries.remove(at))
        };
        let Some(closed) = closed else { return Ok(name.into()) };
        closed.panel.close();
        Ok(closed.id)
    }

    /// The actions of all panels, in the order of their ids.
    pub fn actions(&self) -> Vec<PanelAction> {
        let contents = self.lock();
        let mut actions: Vec<PanelAction> = Vec::new();
        for action in contents.entries.iter().flat_map(|entry| entry.panel.actions()) {
            if !actions.iter().any(|known| known.name == action.name) {
                actions.push(*action);
            }
        }
        actions
    }

    /// The panel that an action belongs to, with the action.
    pub fn panel_for(&self, action: &str) -> Option<(Arc<dyn Panel>, PanelAction)> {
        let contents = self.lock();
        contents.entries.iter().find_map(|entry| {
            let found = entry.panel.actions().iter().find(|known| known.name == action)?;
            Some((entry.panel.clone(), *found))
        })
    }

    /// Carries out an action of the panel that has it.
    pub fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let unknown = || ActionError::UnknownAction { action: call.action.to_owned() };
        let (panel, _) = self.panel_for(call.action).ok_or_else(unknown)?;
        panel.act(call)
    }

    /// The tools that panels bring besides the tool `panel`.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.lock().entries.iter().flat_map(|entry| entry.panel.tools()).collect()
    }

    /// What a session must store.
    pub fn save(&self) -> SavedPanels {
        let contents = self.lock();
        let mut panels = contents.absent.clone();
        for entry in &contents.entries {
            let saved = entry.save();
            // A panel of a kind with many must come back, also if it has nothing to say for itself.
            if saved != SavedPanel::default() || entry.panel.fixed_id().is_none() {
                panels.insert(entry.panel.key().into(), saved);
            }
        }
        SavedPanels { ids: contents.ids.clone(), files: contents.files.clone(), panels }
    }

    /// Takes over what a session stored. Panels of the conversation before are closed.
    pub fn restore(&self, saved: SavedPanels) {
        let closed: Vec<Entry> = {
            let mut contents = self.lock();
            let SavedPanels { ids, files, panels } = saved;
            (contents.ids, contents.files, contents.absent) = (ids, files, panels);
            let (fixed, closed): (Vec<Entry>, Vec<Entry>) = std::mem::take(&mut contents.entries)
                .into_iter()
                .partition(|entry| entry.panel.fixed_id().is_some());
            fixed.into_iter().for_each(|entry| drop(contents.add(entry.panel)));
            closed
        };
        closed.iter().for_each(|entry| entry.panel.close());
        self.reopen();
    }

    /// Opens the stored panels of the kinds that have an opener.
    fn reopen(&self) {
        let stored: Vec<(Arc<str>, Option<Value>, PanelOpener)> = {
            let contents = self.lock();
            let stored = contents.absent.iter().filter_map(|(key, saved)| {
                let opener = contents.openers.get(kind_of(key))?;
                Some((key.clone(), saved.state.clone(), opener.clone()))
            });
            stored.collect()
        };
        for (key, state, opener) in stored {
            // Not under the lock: an opener may start something.
            match opener(&key, state.as_ref()) {
                Some(panel) => drop(self.add(panel)),
                None => drop(self.lock().absent.remove(&key)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
