//! [`MessageWriter`]: asks the model for a commit message, in one request if the diff fits, else by
//! way of summaries.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_agent::Spending;
use hardpan_agent::session_ledger::{self, CacheBase, RequestBill};
use hardpan_context::{FoundSecret, Redactions, Target, fill_template};
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{Block, ItemKind, Origin, Prompt, PromptMessage, Region, Role, Text, TokenCounter};
use hardpan_providers::{CapabilityCache, Client, ClientEvent, ClientRequest};
use hardpan_session::RequestRecord;
use jiff::tz::TimeZone;

use super::CommitNotice;
use super::error::CommitError;
use super::message::CommitMessage;
use super::staged::{FilePatch, StagedChanges};
use crate::clock::now;
use crate::learned_state::LearnedState;
use crate::notice::{Notice, NoticeSink};
use crate::options::TargetOptions;
use crate::provider_route::ProviderRoute;
use crate::secrets::find_secrets;
use crate::send::TextFallbacks;
use crate::settings::Settings;
use crate::side_requests;
use crate::target::{apply_learned_factor, resolve_target, target_notices};

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
pub struct MessageWriter {
    target: Target,
    settings: Arc<Settings>,
    /// Where the changes are.
    folder: PathBuf,
    notices: Arc<dyn NoticeSink>,
    /// Secrets that the user was told of already.
    told: Vec<FoundSecret>,
    client: Client,
    capabilities: Arc<CapabilityCache>,
    counter: TokenCounter,
    bill: CommitBill,
    /// The bill of each request, stored for `hardpan cost`.
    records: Vec<RequestRecord>,
}

/// What the requests for a message cost together.
#[derive(Clone, Debug)]
pub struct CommitBill {
    /// How many requests were answered.
    pub requests: usize,
    /// Provider and model.
    pub model: String,
    /// Tokens and dollars.
    pub spending: Spending,
}

/// Who writes a commit message.
pub enum MessageAuthor {
    /// A model.
    Model(Box<MessageWriter>),
    /// Nobody: there is no key for the provider.
    NoKey {
        /// The provider's id.
        provider: String,
        /// The environment variable that would hold the key.
        key_variable: Option<String>,
    },
}

impl MessageAuthor {
    /// Chooses the model: the one asked for, else the settings' model for small work, else the
    /// default.
    pub fn choose(
        options: &TargetOptions,
        settings: &Arc<Settings>,
        folder: &Path,
        notices: &Arc<dyn NoticeSink>,
    ) -> Result<Self, CommitError> {
        // A provider chooses among its own models.
        let small = settings.config.small_model.clone().filter(|_| options.provider.is_none());
        let options = TargetOptions { model: options.model.clone().or(small), ..options.clone() };
        let mut target = resolve_target(&options, settings, None)?;
        apply_learned_factor(&mut target, &LearnedState::load(&settings.user_folders));
        let route = ProviderRoute::choose(&target, settings, None)?;
        if route.simulated {
            let key_variable = target.profile.key_env.first().cloned();
            return Ok(MessageAuthor::NoKey { provider: target.provider, key_variable });
        }
        let about_model = target_notices(settings, &target, ThinkingSetting::default());
        about_model.into_iter().for_each(|notice| notices.notice(notice));
        let writer = MessageWriter::new(target, settings.clone(), folder, route, notices.clone());
        Ok(MessageAuthor::Model(Box::new(writer)))
    }
}

impl MessageWriter {
    fn new(
        mut target: Target,
        settings: Arc<Settings>,
        folder: &Path,
        route: ProviderRoute,
        notices: Arc<dyn NoticeSink>,
    ) -> Self {
        target.max_tokens = target.max_tokens.min(MAX_ANSWER_TOKENS);
        let capabilities = Arc::new(LearnedState::load(&settings.user_folders).refusals());
        let retry_policy = settings.config.retry.retry_policy();
        let client = Client::new(route.transport, route.endpoint, retry_policy, capabilities.clone());
        let counter = TokenCounter::new(target.vocabulary());
        let bill = CommitBill { requests: 0, model: target.model.name(), spending: Spending::default() };
        let (folder, told, records) = (folder.to_owned(), Vec::new(), Vec::new());
        MessageWriter {
            target,
            settings,
            folder,
            notices,
            told,
            client,
            capabilities,
            counter,
            bill,
            records,
        }
    }

    /// Stores what the requests taught and what they cost, for `hardpan cost`.
    pub fn finish(&mut self, folder: &Path) {
        let folders = &self.settings.user_folders;
        LearnedState::load(folders).save(&self.capabilities, None);
        let stored = side_requests::record_bills(folders, folder, std::mem::take(&mut self.records));
        stored.unwrap_or_else(|error| self.notify(CommitNotice::CostNotStored(error)));
    }

    /// What the requests cost so far.
    pub fn bill(&self) -> &CommitBill {
        &self.bill
    }

    fn notify(&self, notice: CommitNotice) {
        self.notices.notice(Notice::Commit(notice));
    }

    /// Writes the message for the staged changes.
    pub async fn write(&mut self, staged: &StagedChanges) -> Result<CommitMessage, CommitError> {
        let changes = self.describe_changes(staged).await?;
        let settings = self.settings.clone();
        let phrases = &settings.texts.phrases.commit;
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
        let again = fill_template(&phrases.again, &[("problem", &problem.to_string())]);
        self.notify(CommitNotice::MessageRejected(problem));
        // Providers reject empty messages.
        let repeated_answer = if answer.trim().is_empty() { "(nothing)".to_owned() } else { answer };
        messages.push((Role::Assistant, repeated_answer));
        messages.push((Role::User, again));
        answer = self.ask(&messages).await?;
        CommitMessage::from_answer(&answer).map_err(|problem| CommitError::NoUsableMessage {
            model: self.target.model.name(),
            problem,
            first_line: answer.trim().lines().next().unwrap_or_default().to_owned(),
        })
    }

    /// The diff, or summaries of it if it is too long.
    async fn describe_changes(&mut self, staged: &StagedChanges) -> Result<String, CommitError> {
        let settings = self.settings.clone();
        let phrases = &settings.texts.phrases.commit;
        let room = self.diff_budget(staged)?;
        let whole: String = staged.patches.iter().map(|patch| patch.text.as_str()).collect();
        // Saves counting what is certainly too long: few tokens have more than 8 bytes.
        if !staged.truncated && whole.len() <= room * 8 && self.tokens(&whole) <= room {
            return Ok(fill_template(&phrases.diff, &[("diff", whole.trim_end())]));
        }
        let groups = self.group_patches(&staged.patches, room);
        let (summarised, left) = groups.split_at(groups.len().min(MAX_SUMMARY_REQUESTS));
        self.notify(CommitNotice::DiffSummarised {
            files: summarised.iter().map(Vec::len).sum::<usize>(),
            requests: summarised.len(),
        });
        let mut summaries = Vec::new();
        for group in summarised {
            let request = fill_template(&phrases.summarise, &[("diff", group.concat().trim_end())]);
            summaries.push(self.ask(&[(Role::User, request)]).await?.trim().to_owned());
        }
        let unread = left.iter().map(Vec::len).sum::<usize>();
        if unread > 0 || staged.truncated {
            let count = if staged.truncated { "some".to_owned() } else { unread.to_string() };
            summaries.push(fill_template(&phrases.unread, &[("count", &count)]));
            let count = (!staged.truncated).then_some(unread);
            self.notify(CommitNotice::FilesByNameOnly { count });
        }
        // Ten answers always fit into one request.
        Ok(fill_template(&phrases.summaries, &[("summaries", &summaries.join("\n"))]))
    }

    /// How many tokens of diff fit into one request.
    fn diff_budget(&self, staged: &StagedChanges) -> Result<usize, CommitError> {
        let around =
            self.tokens(&self.settings.texts.commit_message) + self.tokens(&file_list(staged)) + 1000;
        let room = (self.target.max_input_tokens() as usize).saturating_sub(around);
        if room < 1000 {
            return Err(CommitError::WindowTooSmall { model: self.target.model.name() });
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

    /// Says which secrets were replaced, each once.
    fn tell_replaced(&mut self, replaced: Vec<FoundSecret>) {
        let new: Vec<FoundSecret> =
            replaced.into_iter().filter(|secret| !self.told.contains(secret)).collect();
        if !new.is_empty() {
            self.notices.notice(Notice::secrets_replaced(&new));
            self.told.extend(new);
        }
    }

    async fn ask(&mut self, messages: &[(Role, String)]) -> Result<String, CommitError> {
        let origin = |kind| Origin::rule(kind, "commit");
        let block = |text: &str| Block::text(Region::Log, Text::new(text), origin(ItemKind::History));
        let mut prompt = Prompt {
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
        // Nobody is asked about a request for a message: it needs no secrets.
        let secrets = find_secrets(&self.settings, &self.folder, &prompt);
        secrets.iter().collect::<Redactions>().apply(&mut prompt);
        self.tell_replaced(secrets);
        let request = ClientRequest {
            prompt: &prompt,
            profile: &self.target.profile,
            provider: &self.target.provider,
            fallbacks: &TextFallbacks { texts: &self.settings.texts },
            previous_answer: None,
            now_ms: now().as_millisecond(),
        };
        let (sent, mut began) = (now(), None);
        let notices = &self.notices;
        let mut stream = self.client.send(request);
        while let Some(event) = stream.next_event().await {
            let event = event?;
            began = began.or_else(|| Some(now()));
            if let ClientEvent::Notice(notice) = event {
                notices.notice(Notice::Commit(CommitNotice::Provider(notice)));
            }
        }
        let answer = stream.into_answer();
        self.bill.requests += 1;
        if let Some(usage) = &answer.usage {
            self.bill.spending += Spending::from_usage(&usage.tokens, &self.target);
            self.records.push(session_ledger::bill_standalone(&RequestBill {
                purpose: "commit",
                base: CacheBase::Standalone,
                target: &self.target,
                layout: "none",
                prompt: &prompt,
                measured: &self.counter.measure(&prompt).scaled(&self.target.factor),
                message: None,
                usage: Some(usage),
                searches: 0, // none are asked for
                answer_id: &answer.id,
                diagnosis: None,
                sent,
                began: began.unwrap_or(sent),
                ended: now(),
                day: &session_ledger::day_of(sent, &TimeZone::system()),
                is_simulated: false, // without a key nothing is sent
            }));
        }
        if let Some(error) = answer.error {
            return Err(CommitError::Answer(error));
        }
        Ok(answer.text())
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

/// The text, cut to `bytes` bytes, with a line that says so.
fn cut(text: &str, bytes: usize, phrase: &str) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes);
    let count = (text.len() - end).to_string();
    format!("{}\n{}\n", &text[..end], fill_template(phrase, &[("count", &count)]))
}
