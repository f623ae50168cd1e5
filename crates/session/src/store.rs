//! The sessions of a data folder.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use hardpan_prompt::Hash;
use jiff::Timestamp;
use serde::Serialize;
use thiserror::Error;

use crate::disk::{LogError, lock};
use crate::record::Record;
use crate::said::{role, texts};
use crate::session::Session;
use crate::skim::Summary;

/// So many characters of a folder's name stand in the name of the folder of its sessions.
const SLUG_LIMIT: usize = 40;

/// So many characters of the line in which something was found are shown, so many of them before it.
const EXCERPT: usize = 120;
const EXCERPT_BEFORE: usize = 40;

/// The sessions below one folder: `<folder's name>-<its hash>/<time>-<id>.jsonl`.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
}

/// Why a session cannot be found.
#[derive(Debug, Error)]
pub enum StoreError {
    /// Several sessions could be meant.
    #[error("\"{text}\" could be any of {}: name one by more of its id", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        text: String,
        /// The ids of those, with their names.
        candidates: Vec<String>,
    },
    /// None could be meant.
    #[error("there is no session \"{text}\"{}; `hardpan sessions --all` lists all", did_you_mean(nearest))]
    Unknown {
        /// What was asked for.
        text: String,
        /// Ids and names that are spelled alike, best first.
        nearest: Vec<String>,
    },
}

/// A message in which something was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Match {
    /// The session.
    pub summary: Summary,
    /// The message's entry.
    pub entry: String,
    /// Who says it, as the file has it.
    pub role: &'static str,
    /// A part of the line in which it was found.
    pub excerpt: String,
}

impl Store {
    /// The store in this folder, which need not be there yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Store { folder: folder.into() }
    }

    /// Where the sessions that began in `cwd` are.
    pub fn folder_of(&self, cwd: &Path) -> PathBuf {
        let name = cwd.file_name().map_or_else(|| "root".into(), OsStr::to_string_lossy);
        let hash = Hash::of(cwd.as_os_str().as_encoded_bytes()).to_string();
        self.folder.join(format!("{}-{}", slug(&name), &hash[..8]))
    }

    /// Where a new session goes.
    pub fn new_path(&self, cwd: &Path, time: Timestamp, id: &str) -> PathBuf {
        let time = time.strftime("%Y%m%dT%H%M%SZ");
        self.folder_of(cwd).join(format!("{time}-{}.jsonl", slug(id)))
    }

    /// The sessions that began in `cwd`, or all of them; the one last written to first.
    pub fn list(&self, cwd: Option<&Path>) -> Vec<Summary> {
        let mut found: Vec<Summary> = self.files(cwd).iter().filter_map(|path| Summary::of(path)).collect();
        found.sort_by(|a, b| (b.last_activity, &b.path).cmp(&(a.last_activity, &a.path)));
        found
    }

    /// The session of `cwd` that was last written to.
    pub fn latest(&self, cwd: &Path) -> Option<Summary> {
        let modified = |path: &PathBuf| fs::metadata(path).and_then(|data| data.modified()).ok();
        let mut files = self.files(Some(cwd));
        files.sort_by_cached_key(|path| (modified(path), path.clone()));
        files.iter().rev().find_map(|path| Summary::of(path))
    }

    /// The session that `text` means: a path, an id or its beginning, a name or a part of it. One that began in `cwd`
    /// is preferred to one of another folder.
    pub fn find(&self, cwd: Option<&Path>, text: &str) -> Result<Summary, StoreError> {
        // A name may be that of a file by chance.
        let is_path = text.ends_with(".jsonl") || text.contains(std::path::is_separator);
        let path = cwd.unwrap_or(Path::new("")).join(text);
        if is_path
            && path.is_file()
            && let Some(summary) = Summary::of(&path)
        {
            return Ok(summary);
        }
        let (all, wanted) = (self.list(None), text.to_lowercase());
        let here = cwd.map(|cwd| self.folder_of(cwd));
        let name = |summary: &Summary| summary.name.as_deref().map(str::to_lowercase);
        let ways: [&dyn Fn(&Summary) -> bool; 4] = [
            &|summary| *summary.id == *text,
            &|summary| name(summary).is_some_and(|name| name == wanted),
            &|summary| !text.is_empty() && summary.id.starts_with(text),
            &|summary| !text.is_empty() && name(summary).is_some_and(|name| name.contains(&wanted)),
        ];
        for way in ways {
            for near in [true, false] {
                let is_meant =
                    |summary: &&Summary| (summary.path.parent() == here.as_deref()) == near && way(summary);
                let meant: Vec<&Summary> = all.iter().filter(is_meant).collect();
                match meant.as_slice() {
                    [] => {}
                    [only] => return Ok((*only).clone()),
                    several => {
                        let candidates = several.iter().map(|summary| title(summary)).collect();
                        return Err(StoreError::Ambiguous { text: text.into(), candidates });
                    }
                }
            }
        }
        Err(StoreError::Unknown { text: text.into(), nearest: nearest(&wanted, &all) })
    }

    /// The messages that hold all of these words in their texts, in any case of letters; newest session first.
    pub fn search(&self, cwd: Option<&Path>, words: &[String]) -> Vec<Match> {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let mut matches = Vec::new();
        for summary in self.list(cwd) {
            // The list tells that it is damaged; there is nothing to search.
            let Ok(session) = Session::open(&summary.path) else { continue };
            for entry in &session.entries {
                let Record::Message(message) = &entry.record else { continue };
                let Some(excerpt) = excerpt(&texts(&message.body), &words) else { continue };
                let (entry, role) = (entry.id.to_string(), role(&message.body));
                matches.push(Match { summary: summary.clone(), entry, role, excerpt });
            }
        }
        matches
    }

    /// Deletes a session and what was cut off from it. One that another process writes to is refused.
    pub fn delete(&self, summary: &Summary) -> Result<(), LogError> {
        let path = &summary.path;
        let failed = |error: io::Error| LogError::of(path, "it cannot be deleted", &error);
        let file = File::open(path).map_err(failed)?;
        lock(&file, path)?;
        fs::remove_file(path).map_err(failed)?;
        let Some((folder, name)) = path.parent().zip(path.file_name()) else { return Ok(()) };
        let torn = format!("{}.torn-", name.to_string_lossy());
        for beside in fs::read_dir(folder).into_iter().flatten().flatten() {
            if beside.file_name().to_string_lossy().starts_with(&torn) {
                fs::remove_file(beside.path()).map_err(failed)?;
            }
        }
        if folder.parent() == Some(&self.folder) {
            // It stays where other sessions are in it.
            let _ = fs::remove_dir(folder);
        }
        Ok(())
    }

    /// The session files of one folder, or of all.
    fn files(&self, cwd: Option<&Path>) -> Vec<PathBuf> {
        let folders = match cwd {
            Some(cwd) => vec![self.folder_of(cwd)],
            None => entries(&self.folder).collect(),
        };
        let is_session = |path: &PathBuf| path.extension() == Some(OsStr::new("jsonl")) && path.is_file();
        folders.iter().flat_map(|folder| entries(folder)).filter(is_session).collect()
    }
}

/// What is in a folder; nothing where there is none.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// A name that is safe in a path, on every system.
fn slug(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let slug: String = name.chars().take(SLUG_LIMIT).map(plain).collect();
    if slug.is_empty() { "none".into() } else { slug }
}

/// How a session is called in a message.
fn title(summary: &Summary) -> String {
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

/// Up to three names and ids that are spelled like this, best first.
fn nearest(wanted: &str, all: &[Summary]) -> Vec<String> {
    let names = all.iter().flat_map(|summary| summary.name.iter().chain([&summary.id]));
    let likeness = |name: &str| strsim::normalized_damerau_levenshtein(wanted, &name.to_lowercase());
    let mut alike: Vec<(f64, &str)> = names.map(|name| (likeness(name), &**name)).collect();
    // Half the letters may be wrong.
    alike.retain(|(likeness, _)| *likeness >= 0.5);
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    alike.dedup();
    alike.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Where the first word is, if all are there.
fn excerpt(texts: &[&str], words: &[String]) -> Option<String> {
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
    let shown: String = line.chars().skip(start).take(EXCERPT).collect();
    let is_cut = line.chars().count() > start + EXCERPT;
    Some(format!("{}{}{}", if start > 0 { "…" } else { "" }, shown.trim(), if is_cut { "…" } else { "" }))
}

#[cfg(test)]
mod tests;
