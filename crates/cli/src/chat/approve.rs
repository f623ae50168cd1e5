//! Who is asked before something is changed: the rules in the settings first, then the person.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use futures_util::future::BoxFuture;
use hardpan_agent::approval::Rule;
use hardpan_agent::{Approval, Approve, Approved};
use hardpan_tools::Scope;

use super::screen;
use crate::output::safe;
use crate::settings::Settings;

/// Somebody who can be asked.
pub trait Ask: Send + Sync {
    /// Asks whether a call may run. `rule` is what would be allowed for longer, where that can be said.
    fn ask<'a>(&'a self, question: &'a Approval, rule: Option<&'a Rule>) -> BoxFuture<'a, Verdict>;

    /// Asks for a line of text; none where the person gave up, or is not there any more.
    fn input<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>>;
}

/// What the person says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// This once.
    Once,
    /// Calls like this, in this conversation.
    Session,
    /// Calls like this, from now on.
    Always,
    /// No, and why.
    No(String),
}

/// Whether anything is asked at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// What no rule allows is asked about.
    Normal,
    /// Everything is allowed (`--yes`): for places where nothing can be harmed.
    Never,
}

/// The rules, and who is asked where they say nothing.
pub struct Approver {
    allowed: Mutex<Vec<Rule>>,
    denied: Vec<Rule>,
    asking: Asking,
    scope: Scope,
    person: Option<Arc<dyn Ask>>,
    /// Where what is always allowed is kept.
    file: Option<PathBuf>,
}

impl Approver {
    /// The rules of the settings, and of what was always allowed before.
    pub fn new(
        settings: &Settings,
        scope: Scope,
        asking: Asking,
        person: Option<Arc<dyn Ask>>,
    ) -> Result<Self> {
        let file = settings.folder.as_ref().map(|folder| folder.join("allowed"));
        let kept = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        let kept = kept.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let place = place(&scope);
        let kept = kept.filter_map(|line| match line.split_once('\t') {
            Some((rule, folder)) => (folder == place).then_some(rule),
            None => Some(line),
        });
        let config = settings.config.allow.iter().map(String::as_str);
        let parse = |rule: &str| rule.parse::<Rule>().map_err(anyhow::Error::from);
        let mut allowed =
            config.map(parse).collect::<Result<Vec<Rule>>>().context("`allow` in config.toml")?;
        allowed.extend(
            kept.map(parse).collect::<Result<Vec<Rule>>>().context("`allowed` in the config folder")?,
        );
        let denied = settings
            .config
            .deny
            .iter()
            .map(|rule| parse(rule))
            .collect::<Result<_>>()
            .context("`deny` in config.toml")?;
        Ok(Approver { allowed: Mutex::new(allowed), denied, asking, scope, person, file })
    }

    /// The rules for tools that are not among these: most likely misspelled, and of no effect.
    pub fn idle(&self, tools: &[&str]) -> Vec<String> {
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = allowed.iter().chain(&self.denied).filter(|rule| !tools.contains(&rule.tool()));
        idle.map(ToString::to_string).collect()
    }

    /// The path below the workspace, where it may be written at all.
    fn key(&self, path: &str) -> Option<String> {
        self.scope.to_write(path).ok().map(|place| self.scope.key(&place))
    }

    /// The line that keeps a rule. `./build.sh` is another program in another workspace, `src/a.rs` another file: such a rule
    /// holds where it was allowed. A host is the same everywhere.
    fn kept(&self, rule: &Rule) -> String {
        if rule.tool() == "fetch" { format!("{rule}\n") } else { format!("{rule}\t{}\n", place(&self.scope)) }
    }

    fn allow(&self, rule: &Rule, keep: bool) {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).push(rule.clone());
        if keep && let Some(file) = &self.file {
            use std::io::Write;
            let add = || {
                file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
                let mut list = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
                list.write_all(self.kept(rule).as_bytes())
            };
            if let Err(error) = add() {
                let file = file.display();
                screen::tell(&safe(&format!(
                    "hardpan: {file} cannot be written: {error}; allowed for this conversation only"
                )));
            }
        }
    }
}

/// The workspace, as the list of rules names it.
fn place(scope: &Scope) -> String {
    let root = scope.root.canonicalize().unwrap_or_else(|_| scope.root.clone());
    // In one line, whatever its name is.
    root.to_string_lossy().escape_default().to_string()
}

impl Approve for Approver {
    fn input<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        match &self.person {
            Some(person) => person.input(question),
            None => Box::pin(std::future::ready(None)),
        }
    }

    fn approve<'a>(&'a self, question: &'a Approval) -> BoxFuture<'a, Approved> {
        Box::pin(async move {
            let covers =
                |rule: &Rule| rule.covers(&question.tool_name, &question.args, |path| self.key(path));
            let denies =
                |rule: &Rule| rule.denies(&question.tool_name, &question.args, |path| self.key(path));
            if let Some(rule) = self.denied.iter().find(|rule| denies(rule)) {
                return Approved::No(format!("the settings deny it ({rule})"));
            }
            let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner).iter().any(covers);
            if allowed || self.asking == Asking::Never {
                return Approved::Yes;
            }
            let rule = Rule::like(&question.tool_name, &question.args, |path| self.key(path));
            let Some(person) = &self.person else {
                let rule = rule.map_or_else(String::new, |rule| {
                    format!(", or with allow = [\"{rule}\"] in config.toml")
                });
                return Approved::No(format!("nobody is there to ask; it can be allowed with --yes{rule}"));
            };
            match person.ask(question, rule.as_ref()).await {
                Verdict::Once => Approved::Yes,
                Verdict::Session | Verdict::Always if rule.is_none() => Approved::Yes,
                verdict @ (Verdict::Session | Verdict::Always) => {
                    rule.iter().for_each(|rule| self.allow(rule, verdict == Verdict::Always));
                    Approved::Yes
                }
                Verdict::No(reason) => Approved::No(reason),
            }
        })
    }
}
