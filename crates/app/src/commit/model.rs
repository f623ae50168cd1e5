//! [`MessageWriter`]: asks the model for a commit message, in one request if the diff fits, else by
//! way of summaries.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use hardpan_agent::Spending;
use hardpan_agent::session_ledger::{self, CacheBase, RequestBill};
use hardpan_context::{Target, fill_template};
use hardpan_prompt::{Block, ItemKind, Origin, Prompt, PromptMessage, Region, Role, Text, TokenCounter};
use hardpan_providers::{AnswerEvent, CapabilityCache, Client, ClientRequest};
use hardpan_session::RequestRecord;
use jiff::tz::TimeZone;

use super::message::CommitMessage;
use super::staged::{FilePatch, StagedChanges};
use crate::conversation_app::now;
use crate::learned_state::LearnedState;
use crate::provider_route::ProviderRoute;
use crate::request::TextFallbacks;
use crate::settings::Settings;
use crate::side_requests;
use crate::text::{dollars, safe, thousands};

/// Token limit of an answer. A message is short, but some models think before they write it.
const MAX_ANSWER_TOKENS: u32 = 4000;

/// Token limit of the diff in one request, whatever the window: small models do not read more with
/// care.
const MAX_DIFF_TOKENS: usize = 100_000;

/// Byte limit of one file's diff in a summary, some 12,000 tokens: longer diffs are lists or
/// generated files.
const MAX_FILE_DIFF_BYTES: usize = 40_000;

/// Limit of summary requests, about a million tokens; further files are given by name only.
const MAX_SUMMARY_REQUESTS: usize = 10;

/// How many files to list by name.
const MAX_LISTED_NAMES: usize = 500;

/// Writes a commit message with a model.
pub struct MessageWriter<'a> {
    target: Target,
    settings: &'a Settings,
    client: Client,
    capabilities: Arc<CapabilityCache>,
    counter: TokenCounter,
    spending: Spending,
    requests: usize,
    /// The bill of each request, stored for `hardpan cost`.
    records: Vec<RequestRecord>,
}

impl<'a> MessageWriter<'a> {
    /// A writer that asks `target`, at the address of `route`.
    pub fn new(mut target: Target, settings: &'a Settings, route: ProviderRoute) -> Self {
        target.max_tokens = target.max_tokens.min(MAX_ANSWER_TOKENS);
        let capabilities = Arc::new(LearnedState::load().refusals());
        let retry_policy = settings.config.retry.retry_policy();
        let client = Client::new(route.transport, route.endpoint, retry_policy, capabilities.clone());
        let counter = TokenCounter::new(target.vocabulary());
        MessageWriter {
            target,
            settings,
            client,
            capabilities,
            counter,
            spending: Spending::default(),
            requests: 0,
            records: Vec::new(),
        }
    }

    /// Stores what the requests taught and what they cost, for `hardpan cost`.
    pub fn finish(&mut self, folder: &Path) {
        LearnedState::load().save(&self.capabilities, None);
        side_requests::record_bills(folder, std::mem::take(&mut self.records));
    }

    /// Writes the message for the staged changes.
    pub async fn write(&mut self, staged: &StagedChanges) -> Result<CommitMessage> {
        let changes = self.describe_changes(staged).await?;
        let phrases = &self.settings.texts.phrases.commit;
        let recent =
            if staged.recent.is_empty() { "(none yet)".to_owned() } else { staged.recent.join("\n") };
        let values = [
            ("branch", staged.branch.as_str()),
            ("recent", recent.as_str()),
            ("files", &file_list(staged)),
            ("changes", &changes),
        ];
        let mut messages = vec![(Role::User, fill_template(&phrases.request, &values))];
        let mut answer = self.ask(&messages).await?;
        let problem = match CommitMessage::from_answer(&answer) {
            Ok(message) => return Ok(message),
            Err(problem) => problem,
        };
        eprintln!("hardpan: cannot use the message: {problem}; asking the model once more");
        // Providers reject empty messages.
        let repeated_answer = if answer.trim().is_empty() { "(nothing)".to_owned() } else { answer };
        messages.push((Role::Assistant, repeated_answer));
        messages.push((Role::User, fill_template(&phrases.again, &[("problem", &problem)])));
        answer = self.ask(&messages).await?;
        CommitMessage::from_answer(&answer).or_else(|problem| {
            let first = safe(answer.trim().lines().next().unwrap_or_default());
            bail!(
                "{} wrote no usable message: {problem} ({first:?}). Nothing was committed: write one yourself (git commit), or choose another model (--model, small_model in config.toml)",
                self.target.model.name()
            )
        })
    }

    /// The diff, or summaries of it if it is too long.
    async fn describe_changes(&mut self, staged: &StagedChanges) -> Result<String> {
        let phrases = &self.settings.texts.phrases.commit;
        let room = self.diff_budget(staged)?;
        let whole: String = staged.patches.iter().map(|patch| patch.text.as_str()).collect();
        // Saves counting what is certainly too long: few tokens have more than 8 bytes.
        if !staged.truncated && whole.len() <= room * 8 && self.tokens(&whole) <= room {
            return Ok(fill_template(&phrases.diff, &[("diff", whole.trim_end())]));
        }
        let groups = self.group_patches(&staged.patches, room);
        let (summarised, left) = groups.split_at(groups.len().min(MAX_SUMMARY_REQUESTS));
        eprintln!(
            "hardpan: the diff is too long for one request: summarising {} files first, in {}",
            summarised.iter().map(Vec::len).sum::<usize>(),
            requests(summarised.len())
        );
        let mut summaries = Vec::new();
        for group in summarised {
            let request = fill_template(&phrases.summarise, &[("diff", group.concat().trim_end())]);
            summaries.push(self.ask(&[(Role::User, request)]).await?.trim().to_owned());
        }
        let unread = left.iter().map(Vec::len).sum::<usize>();
        if unread > 0 || staged.truncated {
            let count = if staged.truncated { "some".to_owned() } else { unread.to_string() };
            summaries.push(fill_template(&phrases.unread, &[("count", &count)]));
            eprintln!("hardpan: the model sees {count} more files by name only");
        }
        // Ten answers always fit into one request.
        Ok(fill_template(&phrases.summaries, &[("summaries", &summaries.join("\n"))]))
    }

    /// How many tokens of diff fit into one request.
    fn diff_budget(&self, staged: &StagedChanges) -> Result<usize> {
        let around =
            self.tokens(&self.settings.texts.commit_message) + self.tokens(&file_list(staged)) + 1000;
        let room = (self.target.max_input_tokens() as usize).saturating_sub(around);
        if room < 1000 {
            bail!(
                "the context window of {} is too small for this commit: choose another model (--model)",
                self.target.model.name()
            );
        }
        Ok(room.min(MAX_DIFF_TOKENS))
    }

    fn tokens(&self, text: &str) -> usize {
        self.target.factor.scale(self.counter.count(&Text::new(text)))
    }

    /// Groups the patches into requests of at most `room` tokens, and cuts long ones.
    fn group_patches(&self, patches: &[FilePatch], room: usize) -> Vec<Vec<String>> {
        let mut groups: Vec<Vec<String>> = Vec::new();
        let mut used = room;
        for patch in patches {
            let text =
                cut(&patch.text, MAX_FILE_DIFF_BYTES.min(room), &self.settings.texts.phrases.commit.cut);
            let tokens = self.tokens(&text);
            if used + tokens > room {
                groups.push(Vec::new());
                used = 0;
            }
            used += tokens;
            groups.last_mut().into_iter().for_each(|group| group.push(text.clone()));
        }
        groups
    }

    async fn ask(&mut self, messages: &[(Role, String)]) -> Result<String> {
        let origin = |kind| Origin::rule(kind, "commit");
        let block = |text: &str| Block::text(Region::Log, Text::new(text), origin(ItemKind::History));
        let prompt = Prompt {
            model: self.target.model.id.as_str().into(),
            max_tokens: self.target.max_tokens,
            system: vec![Block::text(
                Region::Base,
                self.settings.texts.commit_message.clone(),
                origin(ItemKind::System),
            )],
            messages: messages
                .iter()
                .map(|(role, text)| PromptMessage::new(*role, vec![block(text)]))
                .collect(),
            ..Prompt::default()
        };
        let question = ClientRequest {
            prompt: &prompt,
            profile: &self.target.profile,
            provider: &self.target.provider,
            fallbacks: &TextFallbacks { texts: &self.settings.texts },
            now_ms: now().as_millisecond(),
        };
        let (sent, mut began) = (now(), None);
        let mut sink = |event: AnswerEvent| {
            began = began.or_else(|| Some(now()));
            if let AnswerEvent::Footnote(note) = event {
                eprintln!("hardpan: {}", safe(&note));
            }
        };
        let answer = self.client.send(&question, &mut sink).await?;
        self.requests += 1;
        if let Some(usage) = answer.usage.as_ref().map(|usage| &usage.tokens) {
            self.spending += Spending::from_usage(usage, &self.target);
            self.records.push(session_ledger::bill_standalone(&RequestBill {
                purpose: "commit",
                base: CacheBase::Standalone,
                target: &self.target,
                layout: "none",
                prompt: &prompt,
                measured: &self.counter.measure(&prompt).scaled(&self.target.factor),
                message: None,
                usage: Some(usage),
                sent,
                began: began.unwrap_or(sent),
                ended: now(),
                day: &session_ledger::day_of(sent, &TimeZone::system()),
            }));
        }
        if let Some(error) = &answer.error {
            bail!("the answer failed: {error}; nothing was committed");
        }
        Ok(answer.text())
    }

    /// The requests, their tokens and their cost in one line; none before the first request.
    pub fn bill_line(&self) -> Option<String> {
        if self.requests == 0 {
            return None;
        }
        let n = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
        let Spending { tokens, dollars: dollars_spent } = self.spending;
        Some(format!(
            "{} to {}: in {} (read {}, written {}), out {}; {}",
            requests(self.requests),
            safe(&self.target.model.name()),
            n(tokens.prompt()),
            n(tokens.cache_read),
            n(tokens.cache_written()),
            n(tokens.output),
            dollars(dollars_spent)
        ))
    }
}

/// The staged files, one per line.
fn file_list(staged: &StagedChanges) -> String {
    let files = staged.files.iter().take(MAX_LISTED_NAMES);
    let mut lines: Vec<String> = files.map(|file| format!("{} {}", file.status, file.path)).collect();
    if staged.files.len() > MAX_LISTED_NAMES {
        lines.push(format!("… {} more", staged.files.len() - MAX_LISTED_NAMES));
    }
    lines.join("\n")
}

fn requests(count: usize) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

/// The text, cut to `bytes` bytes, with a line that says so.
fn cut(text: &str, bytes: usize, phrase: &str) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes);
    let count = (text.len() - end).to_string();
    format!("{}\n{}\n", &text[..end], fill_template(phrase, &[("count", &count)]))
}
