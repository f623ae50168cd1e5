//! [`ToolRegistry`]: the tools of an agent. They come from several sources, and can be added,
//! removed and switched on and off while the agent runs.
//!
//! The registry is in this crate and not in `agent`, so that whatever brings tools (a server, an
//! extension) needs to know nothing of the agent.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_context::LayoutName;
use hardpan_prompt::Tool as Declaration;
use serde::Serialize;
use thiserror::Error;

use crate::tool::Tool;

/// Who brought a tool: Hardpan itself, a server, an extension. Sources of the same name are the
/// same source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ToolSource(Arc<str>);

impl ToolSource {
    /// The tools that Hardpan brings itself.
    pub fn built_in() -> Self {
        ToolSource::named("built-in")
    }

    /// A source by its name, such as `mcp:github`.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        ToolSource(name.into())
    }
}

impl fmt::Display for ToolSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The tools of an agent, in the order in which the model sees them. Clones are the same registry.
///
/// A name keeps its place when its tool is removed and registered again, and it stays switched off:
/// a server that reconnects changes nothing in the next request.
#[derive(Clone)]
pub struct ToolRegistry(Arc<Mutex<Contents>>);

struct Contents {
    places: Vec<Place>,
    switched_off: BTreeSet<Arc<str>>,
    /// Declared, but calls are refused.
    suspended: BTreeSet<Arc<str>>,
    /// What requests declare; none if that is what is switched on.
    declared: Option<BTreeSet<Arc<str>>>,
    on_demand: OnDemandSources,
    /// Counts the changes.
    version: u64,
}

impl Default for ToolRegistry {
    /// A registry without tools. The names that layouts fill in are taken.
    fn default() -> Self {
        let own_tools = LayoutName::ALL.into_iter().filter_map(|name| name.layout().own_tool());
        let place =
            |name: &str| Place::new(name.into(), ToolSource::named("layout"), Occupant::FilledByLayout);
        let (places, switched_off) = (own_tools.map(place).collect(), BTreeSet::new());
        let (suspended, declared, version) = (BTreeSet::new(), None, 0);
        let on_demand = OnDemandSources::default();
        ToolRegistry(Arc::new(Mutex::new(Contents {
            places,
            switched_off,
            suspended,
            declared,
            on_demand,
            version,
        })))
    }
}

/// Sources whose tools requests do not declare, because another tool calls them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnDemandSources {
    /// The sources.
    pub sources: BTreeSet<ToolSource>,
    /// The tool that calls theirs. Without it, or while it is off, theirs are declared like all others.
    pub caller: Option<Arc<str>>,
}

/// A name's place in the order of tools.
struct Place {
    name: Arc<str>,
    source: ToolSource,
    occupant: Occupant,
    /// The built-in tool that another source has replaced. It comes back when that source goes.
    replaced: Option<Arc<dyn Tool>>,
}

impl Place {
    fn new(name: Arc<str>, source: ToolSource, occupant: Occupant) -> Self {
        Place { name, source, occupant, replaced: None }
    }

    fn is_taken_for(&self, source: &ToolSource) -> bool {
        match self.occupant {
            Occupant::Tool(_) => self.source != *source,
            Occupant::FilledByLayout => true,
            Occupant::Nothing => false,
        }
    }
}

enum Occupant {
    Tool(Arc<dyn Tool>),
    /// A layout declares the tool by itself and fills it in; it cannot be called.
    FilledByLayout,
    /// The tool was removed.
    Nothing,
}

/// Whether the model may use a registered tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolState {
    /// The model may call it.
    On,
    /// Its calls are refused, and it is left out of requests from the next fold on.
    Off,
}

/// A registered tool, as faces list it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolListing {
    /// The name that the model calls it by.
    pub name: Arc<str>,
    /// Who brought it.
    pub source: ToolSource,
    /// Whether the model may call it.
    pub state: ToolState,
    /// Whether requests declare it. The list of tools stays what it is while it is cached, so a tool that
    /// is on may have to wait, and one that is off may be declared still.
    pub is_declared: bool,
    /// Whether the model calls it through another tool, so that no request need declare it.
    pub is_on_demand: bool,
    /// One line about what it does.
    pub summary: Arc<str>,
}

/// Why a tool was not registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RegisterToolError {
    /// Another source has a tool of this name.
    #[error("{source_name} already has a tool named {name}: give this one another name")]
    NameTaken {
        /// The name that both want.
        name: Arc<str>,
        /// The source that has it.
        source_name: ToolSource,
    },
    /// No built-in tool has this name.
    #[error("there is no built-in tool named {name} to replace")]
    NotBuiltIn {
        /// The name as given.
        name: Arc<str>,
    },
    /// Providers would refuse the name.
    #[error("\"{name}\" cannot name a tool: use 1 to 64 letters, digits, _ and -")]
    InvalidName {
        /// The name as given.
        name: Arc<str>,
    },
}

/// No tool of this name can be switched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no tool named {name}; the tools are {}", known.join(", "))]
pub struct UnknownTool {
    /// The name as given.
    pub name: String,
    /// The tools that can be switched.
    pub known: Vec<Arc<str>>,
}

/// Why a call finds no tool to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolUnavailable {
    /// No tool ever had this name.
    Unknown,
    /// The tool is switched off.
    SwitchedOff,
    /// The tool is declared, but the model has switched it off for itself.
    Suspended,
    /// Its source took the tool away.
    Removed,
    /// A layout fills this tool in; it is never called.
    FilledByLayout,
}

impl ToolRegistry {
    /// A registry of Hardpan's own tools. Of two tools with one name the first is kept.
    pub fn built_in(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        let registry = ToolRegistry::default();
        for tool in tools {
            // Tests check that the built-in tools have valid names, each its own.
            let _ = registry.register(&ToolSource::built_in(), tool);
        }
        registry
    }

    /// Adds a tool from the next request on. A tool that its own source registers again replaces the
    /// former one, in its place.
    pub fn register(&self, source: &ToolSource, tool: Arc<dyn Tool>) -> Result<(), RegisterToolError> {
        let name = checked_name(&*tool)?;
        let mut contents = self.lock();
        contents.version += 1;
        let occupant = Occupant::Tool(tool);
        match contents.places.iter_mut().find(|place| place.name == name) {
            Some(place) if place.is_taken_for(source) => {
                Err(RegisterToolError::NameTaken { name, source_name: place.source.clone() })
            }
            Some(place) => {
                (place.source, place.occupant) = (source.clone(), occupant);
                Ok(())
            }
            None => {
                contents.places.push(Place::new(name, source.clone(), occupant));
                Ok(())
            }
        }
    }

    /// Puts a tool in the place of the built-in one of its name, which comes back when `source` goes.
    /// `make` gets that tool: what stands for it must ask for as much.
    pub fn replace_built_in(
        &self,
        source: &ToolSource,
        name: &str,
        make: impl FnOnce(Arc<dyn Tool>) -> Arc<dyn Tool>,
    ) -> Result<(), RegisterToolError> {
        let mut contents = self.lock();
        contents.version += 1;
        let place = contents.places.iter_mut().find(|place| &*place.name == name);
        let Some(place) = place else { return Err(RegisterToolError::NotBuiltIn { name: name.into() }) };
        let built_in = match (&place.replaced, &place.occupant) {
            (Some(_), Occupant::Tool(_)) if place.source != *source => {
                let (name, source_name) = (place.name.clone(), place.source.clone());
                return Err(RegisterToolError::NameTaken { name, source_name });
            }
            (Some(replaced), _) => replaced.clone(),
            (None, Occupant::Tool(tool)) if place.source == ToolSource::built_in() => tool.clone(),
            _ => return Err(RegisterToolError::NotBuiltIn { name: name.into() }),
        };
        place.occupant = Occupant::Tool(make(built_in.clone()));
        place.replaced = Some(built_in);
        place.source = source.clone();
        Ok(())
    }

    /// Whether a built-in tool has this name, or had it until another source replaced it.
    pub fn is_built_in(&self, name: &str) -> bool {
        let contents = self.lock();
        let place = contents.places.iter().find(|place| &*place.name == name);
        place.is_some_and(|place| {
            place.replaced.is_some()
                || place.source == ToolSource::built_in() && matches!(place.occupant, Occupant::Tool(_))
        })
    }

    /// Gives a source exactly these tools, in this order, from the next request on. Sources of this kind
    /// stand in the order of their names, whichever came first: requests of two conversations begin alike.
    /// Returns the tools that could not be registered.
    pub fn replace_source(&self, source: &ToolSource, tools: Vec<Arc<dyn Tool>>) -> Vec<RegisterToolError> {
        let mut contents = self.lock();
        contents.version += 1;
        let mut gone: Vec<Place> = Vec::new();
        for place in std::mem::take(&mut contents.places) {
            if place.source == *source { gone.push(place) } else { contents.places.push(place) }
        }
        let (mut refused, mut added) = (Vec::new(), Vec::new());
        for tool in tools {
            let name = match checked_name(&*tool) {
                Ok(name) => name,
                Err(error) => {
                    refused.push(error);
                    continue;
                }
            };
            gone.retain(|place| place.name != name);
            match contents.places.iter().chain(&added).find(|place| place.name == name) {
                Some(place) => {
                    let source_name = place.source.clone();
                    refused.push(RegisterToolError::NameTaken { name, source_name });
                }
                None => added.push(Place::new(name, source.clone(), Occupant::Tool(tool))),
            }
        }
        // What was there stays known, so that calls of it are told that it is gone.
        added.extend(gone.into_iter().map(|place| Place { occupant: Occupant::Nothing, ..place }));
        let kind = |source: &ToolSource| source.0.split(':').next().unwrap_or_default().to_owned();
        let is_later = |place: &Place| kind(&place.source) == kind(source) && place.source > *source;
        let last_of_kind = contents.places.iter().rposition(|place| kind(&place.source) == kind(source));
        let at = contents.places.iter().position(is_later).or(last_of_kind.map(|last| last + 1));
        let at = at.unwrap_or(contents.places.len());
        contents.places.splice(at..at, added);
        refused
    }

    /// Takes a tool of `source` away from the next request on. False if the source has no such tool.
    pub fn remove(&self, source: &ToolSource, name: &str) -> bool {
        self.remove_where(|place| place.source == *source && &*place.name == name) > 0
    }

    /// Takes all tools of a source away from the next request on, and returns how many there were.
    pub fn remove_source(&self, source: &ToolSource) -> usize {
        self.remove_where(|place| place.source == *source)
    }

    fn remove_where(&self, is_meant: impl Fn(&Place) -> bool) -> usize {
        let mut contents = self.lock();
        contents.version += 1;
        let tools = contents.places.iter_mut().filter(|place| matches!(place.occupant, Occupant::Tool(_)));
        let remove = |place: &mut Place| match place.replaced.take() {
            Some(built_in) => {
                (place.source, place.occupant) = (ToolSource::built_in(), Occupant::Tool(built_in));
            }
            None => place.occupant = Occupant::Nothing,
        };
        tools.filter(|place| is_meant(place)).map(remove).count()
    }

    /// Switches a tool on or off. Returns whether that changed anything.
    pub fn switch(&self, name: &str, state: ToolState) -> Result<bool, UnknownTool> {
        let mut contents = self.lock();
        let name = contents.known_name(name)?;
        contents.version += 1;
        Ok(match state {
            ToolState::On => contents.switched_off.remove(&name),
            ToolState::Off => contents.switched_off.insert(name),
        })
    }

    /// Refuses the calls of a tool that stays declared, or takes them again: unlike a switch, this
    /// leaves the cached beginning of requests as it is. Returns whether that changed anything.
    pub fn suspend(&self, name: &str, suspended: bool) -> Result<bool, UnknownTool> {
        let mut contents = self.lock();
        let name = contents.known_name(name)?;
        contents.version += 1;
        Ok(if suspended { contents.suspended.insert(name) } else { contents.suspended.remove(&name) })
    }

    /// The names of the tools whose calls are refused although they are declared.
    pub fn suspended(&self) -> BTreeSet<Arc<str>> {
        self.lock().suspended.clone()
    }

    /// Suspends exactly these names, as a stored conversation had them.
    pub fn restore_suspended(&self, names: BTreeSet<Arc<str>>) {
        let mut contents = self.lock();
        contents.version += 1;
        contents.suspended = names;
    }

    /// Another registry with the same tools in the same order, switched and suspended alike. `replace`
    /// may put another tool of the same name in a tool's place.
    pub fn copy_with(&self, replace: impl Fn(&ToolSource, &Arc<dyn Tool>) -> Arc<dyn Tool>) -> ToolRegistry {
        let contents = self.lock();
        let copy = |place: &Place| Place {
            name: place.name.clone(),
            source: place.source.clone(),
            replaced: place.replaced.clone(),
            occupant: match &place.occupant {
                Occupant::Tool(tool) => Occupant::Tool(replace(&place.source, tool)),
                Occupant::FilledByLayout => Occupant::FilledByLayout,
                Occupant::Nothing => Occupant::Nothing,
            },
        };
        ToolRegistry(Arc::new(Mutex::new(Contents {
            places: contents.places.iter().map(copy).collect(),
            switched_off: contents.switched_off.clone(),
            suspended: contents.suspended.clone(),
            declared: contents.declared.clone(),
            on_demand: contents.on_demand.clone(),
            version: contents.version,
        })))
    }

    /// Sets which sources' tools are not declared, because another tool calls them. Returns whether that
    /// changed anything.
    pub fn set_on_demand(&self, on_demand: OnDemandSources) -> bool {
        let mut contents = self.lock();
        let is_new = contents.on_demand != on_demand;
        if is_new {
            contents.version += 1;
            contents.on_demand = on_demand;
        }
        is_new
    }

    /// Which sources' tools are not declared, because another tool calls them.
    pub fn on_demand(&self) -> OnDemandSources {
        self.lock().on_demand.clone()
    }

    /// A number that is another one after every change.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// The names that are switched off, whether or not they have a tool now.
    pub fn switched_off(&self) -> BTreeSet<Arc<str>> {
        self.lock().switched_off.clone()
    }

    /// Switches exactly these names off, as a stored conversation had them. A tool that is
    /// registered later under one of them starts switched off.
    pub fn restore_switched_off(&self, names: BTreeSet<Arc<str>>) {
        let mut contents = self.lock();
        contents.version += 1;
        contents.switched_off = names;
    }

    /// All registered tools, on or off, in their order.
    pub fn list(&self) -> Vec<ToolListing> {
        let contents = self.lock();
        let listing = |(place, tool): (&Place, &Arc<dyn Tool>)| {
            let declaration = tool.declaration();
            ToolListing {
                name: place.name.clone(),
                source: place.source.clone(),
                state: contents.state(&place.name),
                is_declared: contents.is_declared(&place.name),
                is_on_demand: contents.is_on_demand(place),
                summary: declaration
                    .snippet
                    .clone()
                    .unwrap_or_else(|| first_sentence(&declaration.description)),
            }
        };
        contents.tools().map(listing).collect()
    }

    /// Notes which tools the requests of the conversation declare; `None` if that is always what is
    /// switched on.
    pub fn set_declared(&self, names: Option<BTreeSet<Arc<str>>>) {
        let mut contents = self.lock();
        if contents.declared != names {
            contents.version += 1;
            contents.declared = names;
        }
    }

    /// The tools that a request would declare if none were cached, in their order: those that are
    /// switched on and that no other tool calls.
    pub fn declarations(&self) -> Vec<Declaration> {
        let contents = self.lock();
        let is_on = |place: &Place| contents.state(&place.name) == ToolState::On;
        let offered = contents.tools().filter(|(place, _)| is_on(place) && !contents.is_on_demand(place));
        offered.map(|(_, tool)| tool.declaration().clone()).collect()
    }

    /// The tool that a call of this name runs.
    pub fn find(&self, name: &str) -> Result<Arc<dyn Tool>, ToolUnavailable> {
        let contents = self.lock();
        let place = contents.places.iter().find(|place| &*place.name == name);
        match &place.ok_or(ToolUnavailable::Unknown)?.occupant {
            Occupant::FilledByLayout => Err(ToolUnavailable::FilledByLayout),
            Occupant::Nothing => Err(ToolUnavailable::Removed),
            Occupant::Tool(_) if contents.state(name) == ToolState::Off => Err(ToolUnavailable::SwitchedOff),
            Occupant::Tool(_) if contents.suspended.contains(name) => Err(ToolUnavailable::Suspended),
            Occupant::Tool(tool) => Ok(tool.clone()),
        }
    }

    /// The tool of this name, switched on or off: to ask it about calls, not to run it.
    pub fn describe(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let contents = self.lock();
        contents.tools().find(|(place, _)| &*place.name == name).map(|(_, tool)| tool.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        // Every change is a single insert, replacement or removal, so the contents are consistent
        // after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn tools(&self) -> impl Iterator<Item = (&Place, &Arc<dyn Tool>)> {
        self.places.iter().filter_map(|place| match &place.occupant {
            Occupant::Tool(tool) => Some((place, tool)),
            Occupant::FilledByLayout | Occupant::Nothing => None,
        })
    }

    /// The name as registered; an error that lists the tools if there is none.
    fn known_name(&self, name: &str) -> Result<Arc<str>, UnknownTool> {
        let named = self.tools().find(|(place, _)| &*place.name == name);
        named.map(|(place, _)| place.name.clone()).ok_or_else(|| UnknownTool {
            name: name.to_owned(),
            known: self.tools().map(|(place, _)| place.name.clone()).collect(),
        })
    }

    fn state(&self, name: &str) -> ToolState {
        if self.switched_off.contains(name) { ToolState::Off } else { ToolState::On }
    }

    fn is_on_demand(&self, place: &Place) -> bool {
        let is_called = |caller: &Arc<str>| {
            self.tools().any(|(place, _)| place.name == *caller) && self.state(caller) == ToolState::On
        };
        self.on_demand.sources.contains(&place.source)
            && self.on_demand.caller.as_ref().is_some_and(is_called)
    }

    fn is_declared(&self, name: &str) -> bool {
        let is_offered =
            |(place, _): (&Place, &Arc<dyn Tool>)| &*place.name == name && !self.is_on_demand(place);
        let is_on = || self.state(name) == ToolState::On && self.tools().any(is_offered);
        self.declared.as_ref().map_or_else(is_on, |declared| declared.contains(name))
    }
}

/// The name of a tool, if providers take it.
fn checked_name(tool: &dyn Tool) -> Result<Arc<str>, RegisterToolError> {
    let name = tool.declaration().name.clone();
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    match is_plain && (1..=64).contains(&name.len()) {
        true => Ok(name),
        false => Err(RegisterToolError::InvalidName { name }),
    }
}

/// The first sentence of a description, without what it explains after a colon.
fn first_sentence(text: &str) -> Arc<str> {
    let line = text.lines().next().unwrap_or_default();
    let end = [". ", ": "].iter().filter_map(|end| line.find(end)).min().unwrap_or(line.len());
    line[..end].trim_end_matches('.').into()
}

#[cfg(test)]
mod tests;
