//! [`Approver`]: decides whether a tool call may run. The rules in the settings decide first, then
//! the user, whom a [`UserPrompter`] asks.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use hardpan_agent::approval::{
    ApprovalRule, EXTENSION_KEYS, EXTENSION_MODELS, RuleCoverage, RuleParseError, SERVER_SAMPLING,
    SERVER_TOOLS,
};
use hardpan_agent::events::{Dialog, DialogAnswer};
use hardpan_agent::{ApprovalDecision, ApprovalHandler, ApprovalRequest, FetchedPage};
use hardpan_economy::format::format_dollars;
use hardpan_files::{create_private_folder, read_small_text};
use hardpan_prompt::DeniedBy;
use hardpan_tools::{CallSubject, Scope, SubjectKind, ToolRegistry};
use serde_json::Value;

use crate::attachment_price::{AttachmentPrice, DEFAULT_ASK_ABOVE};
use crate::audit_log::{AllowedBy, AuditLog};
use crate::dialog_line::{answer_of, question_text};
use crate::notice::{Notice, NoticeSink};
use crate::repository_programs::names_programs;
use crate::settings::{PagesMode, Settings};

/// The longest list of rules that is read, in bytes.
const MAX_RULE_BYTES: u64 = 4 * 1024 * 1024;

/// A way to ask the user: in the terminal, or over RPC.
pub trait UserPrompter: Send + Sync {
    /// Asks whether a call may run. `rule` is what an answer for longer would allow; none if no
    /// rule describes the call, so that only a yes for this call is offered.
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict>;

    /// Asks for a line of text. None if the user gave none, or is no longer there.
    fn ask_text<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>>;

    /// Asks for a line that nobody may see, such as a key. None if the user gave none, or if this face
    /// cannot hide what is typed.
    fn ask_secret<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Asks what an extension wants to know. None if the user gave no answer. Dropping the future takes
    /// the question back.
    fn ask_dialog<'a>(&'a self, owner: &'a str, dialog: &'a Dialog) -> BoxFuture<'a, Option<DialogAnswer>> {
        Box::pin(async move {
            let line = self.ask_text(&question_text(owner, dialog)).await?;
            answer_of(dialog, line)
        })
    }

    /// What extensions read as `ctx.mode`.
    fn mode(&self) -> &'static str {
        "tui"
    }

    /// Asks whether something is to be sent that costs more than `limit` dollars. `subject` is what it
    /// is, as the beginning of a sentence.
    fn confirm_price(&self, subject: &str, price: AttachmentPrice, limit: f64) -> BoxFuture<'_, bool> {
        let limit = format_dollars(limit);
        let question = format!(
            "{subject} costs {price}, more than {limit} (`ask_above` in config.toml). Send it? y or n"
        );
        Box::pin(async move { self.ask_text(&question).await.is_some_and(|answer| is_yes(&answer)) })
    }
}

/// Whether an answer in words is a yes.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// The user's answer to an approval question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalVerdict {
    /// Allow this call.
    Once,
    /// Allow calls that the rule covers, until this process ends.
    Session,
    /// Allow calls that the rule covers, and store the rule.
    Always,
    /// Allow this call with other arguments, which the person wrote.
    Changed(Value),
    /// Deny it. The model reads the reason.
    No(String),
}

/// How long something that an extension asked for is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrantTime {
    /// This once.
    Once,
    /// Until the conversation ends.
    Conversation,
    /// For good.
    Always,
}

/// How a call is allowed.
enum Allowance {
    /// As it is: who allowed it, and by which rule.
    As { by: AllowedBy, rule: Option<String> },
    /// With arguments that the person wrote, and what the model reads about that.
    Changed { question: ApprovalRequest, note: String },
}

/// What happens to calls that no rule decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ApprovalMode {
    /// Ask the user; deny if nobody is there.
    #[default]
    AskUser,
    /// Allow everything that no rule denies (`--yes`).
    AllowAll,
}

/// Whether rules may allow commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandRules {
    /// As they allow any other call.
    #[default]
    Apply,
    /// Nothing restricts commands, so the user decides about each one: a rule only knows how a command
    /// begins. `--yes` still allows them.
    AskAlways,
}

/// A rule of the settings that cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("{list}: {source}")]
pub struct InvalidRule {
    /// The list that contains it.
    pub list: RuleList,
    /// What is wrong, and how to write it.
    pub source: RuleParseError,
}

/// A list of permission rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleList {
    /// What `config.toml` allows.
    Allow,
    /// What `config.toml` denies.
    Deny,
    /// What the user allowed for good when asked.
    Allowed,
}

impl fmt::Display for RuleList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RuleList::Allow => "`allow` in config.toml",
            RuleList::Deny => "`deny` in config.toml",
            RuleList::Allowed => "`allowed` in the config folder",
        })
    }
}

/// The rules, and the user to ask where no rule decides.
pub struct Approver {
    allowed: Mutex<Vec<ApprovalRule>>,
    denied: Vec<ApprovalRule>,
    mode: ApprovalMode,
    command_rules: CommandRules,
    pages: PagesMode,
    /// Dollars that a page may cost without a question.
    ask_above: f64,
    scope: Scope,
    tools: ToolRegistry,
    prompter: Option<Arc<dyn UserPrompter>>,
    /// Stores the rules that the user allowed for good: `allowed` in the config folder.
    file: Option<PathBuf>,
    notices: Arc<dyn NoticeSink>,
    log: Arc<AuditLog>,
}

impl Approver {
    /// Reads the rules of the settings, and those that the user allowed for good.
    pub fn new(
        settings: &Settings,
        scope: Scope,
        tools: ToolRegistry,
        mode: ApprovalMode,
        prompter: Option<Arc<dyn UserPrompter>>,
        notices: Arc<dyn NoticeSink>,
        log: Arc<AuditLog>,
    ) -> Result<Self, InvalidRule> {
        let file = settings.user_folders.config.as_ref().map(|folder| folder.join("allowed"));
        let kept =
            file.as_ref().and_then(|file| read_small_text(file, MAX_RULE_BYTES).ok()).unwrap_or_default();
        let kept = kept.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let place = workspace_name(&scope);
        let kept = kept.filter_map(|line| match line.split_once('\t') {
            Some((rule, folder)) => (folder == place).then_some(rule),
            None => Some(line),
        });
        let parse = |list: RuleList, rule: &str| -> Result<ApprovalRule, InvalidRule> {
            let invalid = |source| InvalidRule { list, source };
            let rule: ApprovalRule = rule.parse().map_err(invalid)?;
            // A tool that is not there yet may act on anything; most act on files.
            let kind = tools.describe(rule.tool()).map_or(SubjectKind::File, |tool| tool.subject_kind());
            rule.check_subject(kind).map_err(invalid)?;
            Ok(if list == RuleList::Allowed { rule.narrowed() } else { rule })
        };
        let config = &settings.config;
        let allow = config.allow.iter().map(|rule| parse(RuleList::Allow, rule));
        let allowed =
            allow.chain(kept.map(|rule| parse(RuleList::Allowed, rule))).collect::<Result<_, _>>()?;
        let denied = config.deny.iter().map(|rule| parse(RuleList::Deny, rule)).collect::<Result<_, _>>()?;
        let (allowed, command_rules) = (Mutex::new(allowed), CommandRules::default());
        let pages = config.pages.unwrap_or_default();
        let ask_above = config.ask_above.unwrap_or(DEFAULT_ASK_ABOVE);
        Ok(Approver {
            allowed,
            denied,
            mode,
            command_rules,
            pages,
            ask_above,
            scope,
            tools,
            prompter,
            file,
            notices,
            log,
        })
    }

    /// Sets whether rules may allow commands.
    pub fn with_command_rules(self, command_rules: CommandRules) -> Self {
        Approver { command_rules, ..self }
    }

    /// The rules whose tool is not registered: most likely misspelled, and without effect.
    pub fn rules_for_unknown_tools(&self) -> Vec<String> {
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |rule: &&ApprovalRule| {
            self.tools.describe(rule.tool()).is_none()
                && ![SERVER_TOOLS, SERVER_SAMPLING, EXTENSION_MODELS, EXTENSION_KEYS].contains(&rule.tool())
        };
        let idle = allowed.iter().chain(&self.denied).filter(is_idle);
        idle.map(ToString::to_string).collect()
    }

    /// The path relative to the workspace; none if it must not be written.
    fn workspace_path(&self, path: &str) -> Option<String> {
        self.scope.resolve_for_write(path).ok().map(|place| self.scope.workspace_path(&place))
    }

    /// The line of the `allowed` file for a rule. `./build.sh` is a different program in another
    /// workspace and `src/a.rs` a different file, so such a rule names its workspace. A host is the
    /// same everywhere.
    fn rule_line(&self, rule: &ApprovalRule, subject: &CallSubject) -> String {
        match subject {
            CallSubject::Url(_) => format!("{rule}\n"),
            CallSubject::Command(_)
            | CallSubject::File(_)
            | CallSubject::ServerTool(_)
            | CallSubject::Other => {
                format!("{rule}\t{}\n", workspace_name(&self.scope))
            }
        }
    }

    fn allow(&self, rule: &ApprovalRule, subject: &CallSubject, keep: bool) {
        self.allowed.lock().unwrap_or_else(PoisonError::into_inner).push(rule.clone());
        if keep && let Some(file) = &self.file {
            use std::io::Write;
            let add = || {
                file.parent().map_or(Ok(()), create_private_folder)?;
                let mut options = std::fs::OpenOptions::new();
                #[cfg(unix)]
                std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
                let mut list = options.create(true).append(true).open(file)?;
                list.write_all(self.rule_line(rule, subject).as_bytes())
            };
            if let Err(error) = add() {
                self.notices.notice(Notice::RuleNotStored { path: file.clone(), error });
            }
        }
    }
}

/// Whether a rule allows reading with git, which runs what the settings of a repository name.
fn is_about_git(rule: &ApprovalRule) -> bool {
    matches!(rule.coverage(), RuleCoverage::Reading { command } if command.starts_with("git "))
}

/// A text as TOML writes it. A rule has no control characters.
fn toml_string(text: &str) -> String {
    if text.contains(['"', '\\']) && !text.contains('\'') {
        return format!("'{text}'");
    }
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The workspace as the `allowed` file names it.
fn workspace_name(scope: &Scope) -> String {
    let root = scope.root.canonicalize().unwrap_or_else(|_| scope.root.clone());
    // Escaped, because a folder's name may contain a line end.
    root.to_string_lossy().escape_default().to_string()
}

impl ApprovalHandler for Approver {
    fn ask_user<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        match &self.prompter {
            Some(prompter) => prompter.ask_text(question),
            None => Box::pin(std::future::ready(None)),
        }
    }

    fn approve_page<'a>(&'a self, question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        if self.pages != PagesMode::On || self.denying_rule(question).is_some() {
            return self.approve(question);
        }
        self.log.allowed(question, AllowedBy::Rule, Some("pages = \"on\"".into()));
        Box::pin(std::future::ready(ApprovalDecision::Allow))
    }

    fn accept_page<'a>(&'a self, page: &'a FetchedPage) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async move {
            let dollars = page.dollars.filter(|_| self.mode != ApprovalMode::AllowAll).unwrap_or(0.0);
            if dollars <= self.ask_above {
                return ApprovalDecision::Allow;
            }
            let price = AttachmentPrice { tokens: page.tokens, dollars };
            let Some(prompter) = &self.prompter else {
                let limit = format_dollars(self.ask_above);
                let reason = format!(
                    "it costs {price}, more than {limit} (`ask_above` in config.toml), and nobody is there to ask; --yes sends it"
                );
                return ApprovalDecision::Deny { by: DeniedBy::Default, reason };
            };
            match prompter.confirm_price(&format!("The page {}", page.url), price, self.ask_above).await {
                true => ApprovalDecision::Allow,
                false => ApprovalDecision::Deny { by: DeniedBy::Person, reason: format!("it costs {price}") },
            }
        })
    }

    fn approve<'a>(&'a self, question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async move {
            match self.decide(question).await {
                Ok(Allowance::As { by, rule }) => {
                    self.log.allowed(question, by, rule);
                    ApprovalDecision::Allow
                }
                Ok(Allowance::Changed { question, note }) => {
                    self.log.allowed(&question, AllowedBy::Person, None);
                    ApprovalDecision::AllowChanged { args: question.args, note }
                }
                Err((by, reason)) => {
                    self.log.denied(question, &reason);
                    ApprovalDecision::Deny { by, reason }
                }
            }
        })
    }
}

impl Approver {
    /// The tools that run commands.
    fn command_tools(&self) -> Vec<Arc<str>> {
        let names = self.tools.list().into_iter().map(|tool| tool.name);
        let runs_commands = |name: &Arc<str>| {
            self.tools.describe(name).is_some_and(|tool| tool.subject_kind() == SubjectKind::Command)
        };
        names.filter(runs_commands).collect()
    }

    /// The rule of the settings that denies a call.
    fn denying_rule(&self, question: &ApprovalRequest) -> Option<&ApprovalRule> {
        // What no command may do, a console may not, either.
        let mut names = vec![question.tool_name.clone()];
        if matches!(question.subject, CallSubject::Command(_)) {
            names.extend(self.command_tools());
        }
        self.denied.iter().find(|rule| {
            let denies_as = |name| rule.denies(name, &question.subject, |path| self.workspace_path(path));
            names.iter().any(|name| denies_as(name))
        })
    }

    /// A call with arguments that the person wrote; `Err` if the settings deny it in this form.
    fn changed(&self, question: &ApprovalRequest, args: Value) -> Result<Allowance, (DeniedBy, String)> {
        let subject = match self.tools.describe(&question.tool_name) {
            Some(tool) => tool.subject(&args),
            None => CallSubject::Other,
        };
        let question = ApprovalRequest { args, subject, ..question.clone() };
        if let Some(rule) = self.denying_rule(&question) {
            return Err((DeniedBy::Rule, format!("the settings deny it ({rule})")));
        }
        let note = format!("[The person changed this call. It ran with: {}]", question.args);
        Ok(Allowance::Changed { question, note })
    }

    /// Decides about what an extension asks for. Rules of the settings apply; an answer of the person is
    /// the extension's alone, and the caller remembers it: `is_granted` says that there was one. The error
    /// is why it is denied.
    pub(crate) async fn approve_for_extension(
        &self,
        question: &ApprovalRequest,
        is_granted: bool,
    ) -> Result<GrantTime, String> {
        let decided = self.decide_for_extension(question, is_granted).await;
        match &decided {
            Ok((by, _)) => self.log.allowed(question, *by, None),
            Err(reason) => self.log.denied(question, reason),
        }
        decided.map(|(_, time)| time)
    }

    async fn decide_for_extension(
        &self,
        question: &ApprovalRequest,
        is_granted: bool,
    ) -> Result<(AllowedBy, GrantTime), String> {
        if let Some(rule) = self.denying_rule(question) {
            return Err(format!("the settings deny it ({rule})"));
        }
        if is_granted {
            return Ok((AllowedBy::Person, GrantTime::Once));
        }
        let covers = |rule: &ApprovalRule| {
            rule.covers(&question.tool_name, &question.subject, |path| self.workspace_path(path))
        };
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if allowed.iter().any(covers) {
            return Ok((AllowedBy::Rule, GrantTime::Once));
        }
        if self.mode == ApprovalMode::AllowAll {
            return Ok((AllowedBy::Yes, GrantTime::Once));
        }
        let Some(prompter) = &self.prompter else {
            return Err("nobody is there to ask; `hardpan extensions allow` can allow it".into());
        };
        let rule =
            ApprovalRule::for_call(&question.tool_name, &question.subject, |path| self.workspace_path(path));
        match prompter.ask_approval(question, rule.as_ref()).await {
            ApprovalVerdict::Once => Ok((AllowedBy::Person, GrantTime::Once)),
            ApprovalVerdict::Session => Ok((AllowedBy::Person, GrantTime::Conversation)),
            ApprovalVerdict::Always => Ok((AllowedBy::Person, GrantTime::Always)),
            // There is nothing in it to change.
            ApprovalVerdict::Changed(_) => Err("it cannot be changed".into()),
            ApprovalVerdict::No(reason) => Err(reason),
        }
    }

    /// Decides about a call. `Ok` says how it is allowed; `Err` who denied it, and why.
    async fn decide(&self, question: &ApprovalRequest) -> Result<Allowance, (DeniedBy, String)> {
        let covers = |rule: &ApprovalRule| {
            rule.covers(&question.tool_name, &question.subject, |path| self.workspace_path(path))
                && !(is_about_git(rule) && names_programs(&self.scope.root))
        };
        if let Some(rule) = self.denying_rule(question) {
            let reason = format!("the settings deny it ({rule})");
            return Err((DeniedBy::Rule, reason));
        }
        // A copy, because comparing looks at files.
        let allowed = self.allowed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_asked_always = question.handler_reason.is_some()
            || self.command_rules == CommandRules::AskAlways
                && matches!(question.subject, CallSubject::Command(_));
        if let Some(rule) = allowed.iter().find(|rule| !is_asked_always && covers(rule)) {
            return Ok(Allowance::As { by: AllowedBy::Rule, rule: Some(rule.to_string()) });
        }
        if self.mode == ApprovalMode::AllowAll && question.handler_reason.is_none() {
            return Ok(Allowance::As { by: AllowedBy::Yes, rule: None });
        }
        let rule =
            ApprovalRule::for_call(&question.tool_name, &question.subject, |path| self.workspace_path(path));
        let rule = rule.filter(|_| !is_asked_always);
        let Some(prompter) = &self.prompter else {
            if let Some(reason) = &question.handler_reason {
                return Err((
                    DeniedBy::Default,
                    format!("a person has to decide, and nobody is there to ask: {reason}"),
                ));
            }
            let rule = rule.map_or_else(String::new, |rule| {
                format!(", or with allow = [{}] in config.toml", toml_string(&rule.to_string()))
            });
            let reason = format!("nobody is there to ask; it can be allowed with --yes{rule}");
            return Err((DeniedBy::Default, reason));
        };
        match prompter.ask_approval(question, rule.as_ref()).await {
            ApprovalVerdict::Once => Ok(Allowance::As { by: AllowedBy::Person, rule: None }),
            ApprovalVerdict::Session | ApprovalVerdict::Always if rule.is_none() => {
                Ok(Allowance::As { by: AllowedBy::Person, rule: None })
            }
            ApprovalVerdict::Changed(args) => self.changed(question, args),
            verdict @ (ApprovalVerdict::Session | ApprovalVerdict::Always) => {
                let keep = verdict == ApprovalVerdict::Always;
                rule.iter().for_each(|rule| self.allow(rule, &question.subject, keep));
                Ok(Allowance::As { by: AllowedBy::Person, rule: rule.map(|rule| rule.to_string()) })
            }
            ApprovalVerdict::No(reason) => Err((DeniedBy::Person, reason)),
        }
    }
}
