//! What a person reads at the start, as values and then as lines: [`Opening`] is known at once,
//! [`Outlook`] is gathered behind the first frame.

mod other_agents; // how many sessions other agents have left on this machine

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hardpan_app::{ConversationApp, FolderFacts};
use hardpan_models::ThinkingSetting;
use hardpan_terminal::blocks::format::{age, dollars as format_dollars};
use jiff::Timestamp;

use crate::chat::commands::pluralize;
use crate::output::{cut, safe, thousands};
pub use other_agents::AgentSessions;

/// How long the lines behind the first frame wait for the symbol index.
const INDEX_TIME: Duration = Duration::from_secs(20);
/// Key variables that are named.
const NAMED_VARIABLES: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
/// Columns of the last conversation's prompt.
const ABOUT_COLUMNS: usize = 48;

/// What is known at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// The folder, with `~` for the home folder.
    pub folder: String,
    /// The model with its effort, and the layout; none if the offline assistant answers.
    pub model: Option<ModelLine>,
    /// Messages so far, in a conversation that goes on.
    pub messages: usize,
}

/// The model that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelLine {
    /// Provider and id.
    pub name: String,
    /// How hard it thinks, where the setting says so.
    pub effort: Option<String>,
    /// The layout of its prompts.
    pub layout: String,
}

impl Opening {
    pub fn of(app: &ConversationApp) -> Self {
        let agent = &app.agent;
        let target = agent.target();
        let effort = Some(agent.thinking()).filter(|setting| *setting != ThinkingSetting::default());
        let model = ModelLine {
            name: target.model.name(),
            effort: effort.map(|effort| effort.to_string()),
            layout: agent.layout().to_string(),
        };
        let home = std::env::var("HOME").unwrap_or_default();
        Opening {
            folder: short_folder(&app.folder, Path::new(&home)),
            model: (!app.is_offline(&target)).then_some(model),
            messages: agent.messages().len(),
        }
    }

    /// The first lines.
    pub fn lines(&self) -> Vec<String> {
        let version = env!("CARGO_PKG_VERSION");
        let so_far = match self.messages {
            0 => String::new(),
            count => format!(" · {} so far", pluralize(count, "message")),
        };
        let mut lines = vec![format!("hardpan {version} · {}{so_far}", safe(&self.folder))];
        match &self.model {
            Some(ModelLine { name, effort, layout }) => {
                let effort = effort.as_ref().map(|effort| format!(" {effort}")).unwrap_or_default();
                lines.push(format!("{}{effort} · {layout}", safe(name)));
            }
            None => lines.extend([
                "No API key found: an offline assistant answers. It searches this folder and its symbols, \
                 calls no model and costs nothing."
                    .to_owned(),
                format!("For a real model: /key, or set {}, …", NAMED_VARIABLES.join(", ")),
            ]),
        }
        lines
    }
}

/// The folder with `~` in place of the home folder.
fn short_folder(folder: &Path, home: &Path) -> String {
    match folder.strip_prefix(home) {
        Ok(rest) if home.as_os_str().is_empty() => rest.display().to_string(),
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => folder.display().to_string(),
    }
}

/// What is gathered behind the first frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outlook {
    /// Branch, files, instructions, names.
    pub folder: FolderFacts,
    /// Tokens and dollars of the first request; none if the offline assistant answers.
    pub first_request: Option<RequestPrice>,
    /// What keeping the cache warm costs each time, if the settings ask for it.
    pub ping_dollars: Option<f64>,
    /// The last conversation in this folder.
    pub last: Option<LastConversation>,
    /// Sessions of other agents, by agent.
    pub other_agents: Vec<AgentSessions>,
    /// Whether the offline assistant answers.
    pub is_offline: bool,
}

/// What a request would cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestPrice {
    pub tokens: usize,
    /// None if no price is known.
    pub dollars: Option<f64>,
}

/// A conversation that could go on.
#[derive(Clone, Debug, PartialEq)]
pub struct LastConversation {
    /// Its name, or its first prompt.
    pub about: String,
    pub age: Duration,
    pub dollars: f64,
}

impl Outlook {
    /// Gathers everything, which may take seconds.
    pub async fn gather(app: &Arc<ConversationApp>, now: Timestamp) -> Self {
        let is_offline = app.is_offline(&app.agent.target());
        let looked = app.clone();
        let gathered = tokio::task::spawn_blocking(move || Outlook {
            folder: looked.context.folder_facts(INDEX_TIME),
            last: last_conversation(&looked, now),
            other_agents: if is_offline { other_agents::count() } else { Vec::new() },
            is_offline,
            first_request: None,
            ping_dollars: None,
        });
        let Ok(mut outlook) = gathered.await else { return Outlook::default() };
        // Without the index, a request does not show what later ones do, and its price would be wrong.
        if !is_offline && outlook.folder.files.is_some() {
            outlook.first_request = app.preview_request("").await.ok().map(|preview| {
                let breakdown = preview.breakdown();
                let dollars = breakdown.price.known.then_some(breakdown.price.cold);
                RequestPrice { tokens: breakdown.total_tokens, dollars }
            });
            let price = &app.agent.target().model.price;
            let is_kept_warm = app.settings.config.keep_alive.unwrap_or(false) && price.is_known();
            let tokens = outlook.first_request.map(|request| request.tokens as f64);
            outlook.ping_dollars = tokens.filter(|_| is_kept_warm).map(|tokens| tokens * price.read() / 1e6);
        }
        outlook
    }

    /// The lines, each of which says something, for a terminal of so many columns.
    pub fn lines(&self, columns: usize) -> Vec<String> {
        let mut lines = Vec::new();
        lines.extend(self.folder_line());
        if let Some(RequestPrice { tokens, dollars }) = self.first_request {
            let price = dollars.map(|dollars| format!(", {}", format_dollars(dollars))).unwrap_or_default();
            lines.push(format!("first request about {} tokens{price}", thousands(tokens)));
        }
        if let Some(dollars) = self.ping_dollars {
            let price = format_dollars(dollars);
            lines.push(format!(
                "keep_alive is on: a pause costs {price} or more each time, while that saves money"
            ));
        }
        if let Some(LastConversation { about, age: time, dollars }) = &self.last {
            let cost = if *dollars > 0.0 { format!(", {}", format_dollars(*dollars)) } else { String::new() };
            let about = cut(&safe(about), ABOUT_COLUMNS);
            lines.push(format!("last time here: \"{about}\", {} ago{cost} · /resume", age(*time)));
        }
        if self.is_offline {
            let suggestions = self.suggestions();
            let separator = match suggestions.iter().map(|it| it.len() + 3).sum::<usize>() + 5 > columns {
                true => "\n     ",
                false => "   ",
            };
            lines.extend(format!("try  {}", suggestions.join(separator)).lines().map(str::to_owned));
        }
        lines.extend(self.audit_line());
        lines
    }

    fn folder_line(&self) -> Option<String> {
        let FolderFacts { branch, changed_files, files, instruction_files, skills, .. } = &self.folder;
        let mut parts = Vec::new();
        if let Some(branch) = branch {
            let changed = changed_files.filter(|count| *count > 0);
            let changed = changed.map(|count| format!(", {} changed", thousands(count))).unwrap_or_default();
            parts.push(format!("{}{changed}", safe(branch)));
        }
        parts.extend(files.map(|count| pluralize(count, "file")));
        let named = |path: &String| safe(path.rsplit('/').next().unwrap_or(path));
        let mut names: Vec<String> = instruction_files.iter().map(named).collect();
        names.dedup();
        parts.extend(names.into_iter().take(3));
        parts.extend((*skills > 0).then(|| pluralize(*skills, "skill")));
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    /// Three prompts that make sense in this folder.
    fn suggestions(&self) -> Vec<String> {
        let names: Vec<String> =
            self.folder.notable_names.iter().map(|notable| safe(&notable.name)).collect();
        match &names[..] {
            [first, second, ..] => {
                vec![format!("who uses {first}?"), format!("where is {second} defined?"), "/map".to_owned()]
            }
            [only] => vec![
                format!("who uses {only}?"),
                format!("where is {only} defined?"),
                "what is in this folder?".to_owned(),
            ],
            [] => vec![
                "what is in this folder?".to_owned(),
                "where are errors handled?".to_owned(),
                "what does README.md say?".to_owned(),
            ],
        }
    }

    fn audit_line(&self) -> Option<String> {
        let total: usize = self.other_agents.iter().map(|agent| agent.count).sum();
        let names: Vec<&str> = self.other_agents.iter().map(|agent| agent.name).collect();
        let names = match &names[..] {
            [] => return None,
            [only] => (*only).to_owned(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        };
        let at_least = if self.other_agents.iter().any(|agent| agent.is_cut) { "at least " } else { "" };
        let sessions = pluralize(total, "session");
        Some(format!("{at_least}{sessions} of {names} on this machine: hardpan audit --discover"))
    }
}

/// The last conversation of this folder besides the one that is open.
fn last_conversation(app: &ConversationApp, now: Timestamp) -> Option<LastConversation> {
    let (here, _) = app.agent.session();
    let last = app.store.list(Some(&app.folder)).into_iter().find(|found| found.id != here)?;
    let about = last.name.as_deref().or(last.first_prompt.as_deref())?.to_owned();
    let seconds = now.as_second() - last.last_activity?.as_second();
    let age = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    Some(LastConversation { about, age, dollars: last.dollars })
}

#[cfg(test)]
mod tests;
