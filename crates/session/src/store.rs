//! [`SessionStore`]: the sessions of a data folder, to list, find, search and delete.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hardpan_files::RegularFile;
use hardpan_prompt::Hash;
use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::log_error::{LogAction, LogError};
use crate::message_text::{body_texts, role_name};
use crate::record::Record;
use crate::session::Session;
use crate::session_file::lock_file;
use crate::summary::SessionSummary;

/// Longest part of a folder name that is used in a path, in characters.
const SLUG_LIMIT: usize = 40;

/// Length of a search excerpt in characters, and how much of it precedes the match.
const EXCERPT_LIMIT: usize = 120;
const EXCERPT_BEFORE: usize = 40;

/// What the folder of a session's sub-agents has for an extension, beside the session's file.
pub const TASKS_EXTENSION: &str = "tasks";

/// How deep sub-agents are looked for.
const MAX_TASK_DEPTH: usize = 8;

/// The sessions below one folder: `<folder's name>-<its hash>/<time>-<id>.jsonl`.
#[derive(Clone, Debug)]
pub struct SessionStore {
    folder: PathBuf,
}

/// Why a session could not be found by what the user typed.
#[derive(Debug, Error)]
pub enum SessionLookupError {
    /// Several sessions match.
    #[error("\"{text}\" matches several sessions: {}; give more of the id", candidates.join(", "))]
    Ambiguous {
        /// What the user typed.
        text: String,
        /// Ids of the matching sessions, with their names.
        candidates: Vec<String>,
    },
    /// No session matches.
    #[error("there is no session \"{text}\"{}; `hardpan sessions --all` lists all", did_you_mean(nearest))]
    Unknown {
        /// What the user typed.
        text: String,
        /// Ids and names with a similar spelling, best first.
        nearest: Vec<String>,
    },
}

/// A message that contains the searched words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchMatch {
    /// Summary of the session it is in.
    pub summary: SessionSummary,
    /// Id of the message's entry.
    pub entry: String,
    /// Role of the message, as the file spells it.
    pub role: &'static str,
    /// The text around the first match, on one line.
    pub excerpt: String,
}

impl SessionStore {
    /// The store in this folder, which need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        SessionStore { folder: folder.into() }
    }

    /// Folder of the sessions that were started in `cwd`.
    pub fn folder_of(&self, cwd: &Path) -> PathBuf {
        let name = cwd.file_name().map_or_else(|| "root".into(), OsStr::to_string_lossy);
        let hash = Hash::of(cwd.as_os_str().as_encoded_bytes()).to_string();
        self.folder.join(format!("{}-{}", slug(&name), &hash[..8]))
    }

    /// Whether a file lies in this store, links followed.
    pub fn contains(&self, path: &Path) -> bool {
        match (self.folder.canonicalize(), path.canonicalize()) {
            (Ok(folder), Ok(path)) => path.starts_with(folder),
            _ => false,
        }
    }

    /// Path for a new session.
    pub fn new_path(&self, cwd: &Path, time: Timestamp, id: &str) -> PathBuf {
        let time = time.strftime("%Y%m%dT%H%M%SZ");
        self.folder_of(cwd).join(format!("{time}-{}.jsonl", slug(id)))
    }

    /// Lists the sessions that were started in `cwd`, or all of them; the most recently written
    /// first.
    pub fn list(&self, cwd: Option<&Path>) -> Vec<SessionSummary> {
        let mut found: Vec<SessionSummary> =
            self.session_files(cwd).iter().filter_map(|path| SessionSummary::read_file(path)).collect();
        found.sort_by(|a, b| (b.last_activity, &b.path).cmp(&(a.last_activity, &a.path)));
        found
    }

    /// The most recently written session of `cwd`.
    pub fn latest(&self, cwd: &Path) -> Option<SessionSummary> {
        let modified = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
        let mut files = self.session_files(Some(cwd));
        files.sort_by_cached_key(|path| (modified(path), path.clone()));
        files.iter().rev().find_map(|path| SessionSummary::read_file(path))
    }

    /// Finds a session by path, id, beginning of the id, name or part of the name. Sessions of
    /// `cwd` are preferred to those of other folders.
    pub fn find(&self, cwd: Option<&Path>, text: &str) -> Result<SessionSummary, SessionLookupError> {
        // Without this check, a session name could match a file by chance.
        let is_path = text.ends_with(".jsonl") || text.contains(std::path::is_separator);
        let path = cwd.unwrap_or(Path::new("")).join(text);
        if is_path
            && path.is_file()
            && let Some(summary) = SessionSummary::read_file(&path)
        {
            return Ok(summary);
        }
        let (all, wanted) = (self.list(None), text.to_lowercase());
        let here = cwd.map(|cwd| self.folder_of(cwd));
        let name = |summary: &SessionSummary| summary.name.as_deref().map(str::to_lowercase);
        let criteria: [&dyn Fn(&SessionSummary) -> bool; 4] = [
            &|summary| *summary.id == *text,
            &|summary| name(summary).is_some_and(|name| name == wanted),
            &|summary| !text.is_empty() && summary.id.starts_with(text),
            &|summary| !text.is_empty() && name(summary).is_some_and(|name| name.contains(&wanted)),
        ];
        for matches_criterion in criteria {
            for near in [true, false] {
                let is_candidate = |summary: &&SessionSummary| {
                    (summary.path.parent() == here.as_deref()) == near && matches_criterion(summary)
                };
                let candidates: Vec<&SessionSummary> = all.iter().filter(is_candidate).collect();
                match candidates.as_slice() {
                    [] => {}
                    [only] => return Ok((*only).clone()),
                    several => {
                        let candidates = several.iter().map(|summary| display_name(summary)).collect();
                        return Err(SessionLookupError::Ambiguous { text: text.into(), candidates });
                    }
                }
            }
        }
        let tasks: Vec<SessionSummary> =
            self.task_sessions().into_iter().filter(|summary| summary.id.starts_with(text)).collect();
        match tasks.as_slice() {
            [only] if !text.is_empty() => return Ok(only.clone()),
            [_, _, ..] if !text.is_empty() => {
                let candidates = tasks.iter().map(display_name).collect();
                return Err(SessionLookupError::Ambiguous { text: text.into(), candidates });
            }
            _ => {}
        }
        Err(SessionLookupError::Unknown { text: text.into(), nearest: nearest_names(&wanted, &all) })
    }

    /// Finds the messages whose texts contain all of these words, ignoring case; newest session
    /// first.
    pub fn search(&self, cwd: Option<&Path>, words: &[String]) -> Vec<SearchMatch> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let mut matches = Vec::new();
        for summary in self.list(cwd) {
            // The list already reports damaged sessions; there is nothing to search.
            let Ok(session) = Session::open(&summary.path) else { continue };
            for entry in &session.entries {
                let Record::Message(message) = &entry.record else { continue };
                let Some(excerpt) = excerpt_around(&body_texts(&message.body), &words) else { continue };
                let (entry, role) = (entry.id.to_string(), role_name(&message.body));
                matches.push(SearchMatch { summary: summary.clone(), entry, role, excerpt });
            }
        }
        matches
    }

    /// Deletes a session and the files with what was cut off from it. A session that another
    /// process writes to is not deleted.
    pub fn delete(&self, summary: &SessionSummary) -> Result<(), LogError> {
        let path = &summary.path;
        let failed = |error: io::Error| LogError::io(path, LogAction::Delete, error);
        let file = RegularFile::open(path).map_err(|reason| failed(reason.into()))?;
        lock_file(&file.file, path)?;
        fs::remove_file(path).map_err(failed)?;
        let Some((folder, name)) = path.parent().zip(path.file_name()) else { return Ok(()) };
        let torn = format!("{}.torn-", name.to_string_lossy());
        for beside in fs::read_dir(folder).into_iter().flatten().flatten() {
            if beside.file_name().to_string_lossy().starts_with(&torn) {
                fs::remove_file(beside.path()).map_err(failed)?;
            }
        }
        match fs::remove_dir_all(path.with_extension(TASKS_EXTENSION)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        if folder.parent() == Some(&self.folder) {
            // Fails, as it should, while other sessions are in it.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// The sessions of all sub-agents, which lists leave out.
    fn task_sessions(&self) -> Vec<SessionSummary> {
        let is_tasks =
            |path: &PathBuf| path.extension() == Some(OsStr::new(TASKS_EXTENSION)) && path.is_dir();
        let mut folders: Vec<PathBuf> =
            folder_entries(&self.folder).flat_map(|it| folder_entries(&it)).collect();
        let mut found = Vec::new();
        for _ in 0..MAX_TASK_DEPTH {
            folders =
                folders.into_iter().filter(is_tasks).flat_map(|folder| folder_entries(&folder)).collect();
            let is_session =
                |path: &&PathBuf| path.extension() == Some(OsStr::new("jsonl")) && path.is_file();
            found
                .extend(folders.iter().filter(is_session).filter_map(|path| SessionSummary::read_file(path)));
        }
        found
    }

    /// The session files of one working directory, or of all.
    fn session_files(&self, cwd: Option<&Path>) -> Vec<PathBuf> {
        let folders = match cwd {
            Some(cwd) => vec![self.folder_of(cwd)],
            None => folder_entries(&self.folder).collect(),
        };
        let is_session = |path: &PathBuf| path.extension() == Some(OsStr::new("jsonl")) && path.is_file();
        folders.iter().flat_map(|folder| folder_entries(folder)).filter(is_session).collect()
    }
}

/// The paths in a folder; none if it does not exist.
fn folder_entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Makes a name safe in a path on every system.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let slug: String = name.chars().take(SLUG_LIMIT).map(plain).collect();
    if slug.is_empty() { "none".into() } else { slug }
}

/// Id and name of a session, for error messages.
fn display_name(summary: &SessionSummary) -> String {
    match &summary.name {
        Some(name) => format!("{} ({name})", summary.id),
        None => summary.id.to_string(),
    }
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!(" (did you mean {}?)", names.join(" or ")),
    }
}

/// Up to three names and ids with a similar spelling, best first.
fn nearest_names(wanted: &str, all: &[SessionSummary]) -> Vec<String> {
    let names = all.iter().flat_map(|summary| summary.name.iter().chain([&summary.id]));
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(wanted, &name.to_lowercase());
    let mut alike: Vec<(f64, &str)> = names.map(|name| (likeness(name), &**name)).collect();
    // Half the letters may be wrong.
    alike.retain(|(likeness, _)| *likeness >= 0.5);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    alike.dedup();
    alike.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// The text around the first word, if all words occur.
fn excerpt_around(texts: &[&str], words: &[String]) -> Option<String> {
    let lower: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    if !words.iter().all(|word| lower.iter().any(|text| text.contains(word.as_str()))) {
        return None;
    }
    let word = words.first()?;
    let lines = texts.iter().flat_map(|text| text.lines());
    let (line, at) = lines
        .filter_map(|line| {
            let lower = line.to_lowercase();
            // In characters: lower case may have other lengths in bytes.
            lower.find(word.as_str()).map(|at| (line, lower[..at].chars().count()))
        })
        .next()?;
    let start = at.saturating_sub(EXCERPT_BEFORE);
    let shown: String = line.chars().skip(start).take(EXCERPT_LIMIT).collect();
    let is_cut = line.chars().count() > start + EXCERPT_LIMIT;
    Some(format!("{}{}{}", if start > 0 { "…" } else { "" }, shown.trim(), if is_cut { "…" } else { "" }))
}

#[cfg(test)]
mod tests;
