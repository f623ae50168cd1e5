//! Asking the model for a message: at once where the diff fits, by way of summaries where it does not.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hardpan_agent::Spent;
use hardpan_agent::books::{self, Billed, On};
use hardpan_context::{Target, fill};
use hardpan_prompt::{Block, Counter, Kind, Origin, Place, Prompt, Role, Text, Turn};
use hardpan_providers::{Client, Event, Learned, Question};
use hardpan_session::RequestRecord;
use jiff::tz::TimeZone;

use super::message::Message;
use super::staged::{Patch, Staged};
use crate::chat::Unfinished;
use crate::chat::open::now;
use crate::cost;
use crate::output::{dollars, safe, thousands};
use crate::route::Route;
use crate::send::TextForms;
use crate::settings::Settings;
use crate::state::State;

/// The most tokens of an answer: a message is short, but some models think before they write it.
const MOST_ANSWER: u32 = 4000;

/// The most tokens of diff in one request, whatever the window: a small model reads no more with care.
const MOST_DIFF: usize = 100_000;

/// The most bytes of one file's diff in a summary, some 12,000 tokens: what is longer is a list or was generated.
const MOST_OF_FILE: usize = 40_000;

/// The most requests for summaries, a million tokens: what is left is told by its names.
const MOST_SUMMARIES: usize = 10;

/// The most files that are listed by name.
const MOST_NAMES: usize = 500;

/// Writes messages.
pub struct Writer<'a> {
    target: Target,
    settings: &'a Settings,
    client: Client,
    learned: Arc<Learned>,
    counter: Counter,
    spent: Spent,
    requests: usize,
    /// What each request cost, to be kept.
    bills: Vec<RequestRecord>,
}

impl<'a> Writer<'a> {
    /// One that asks this model.
    pub fn new(mut target: Target, settings: &'a Settings, route: Route) -> Self {
        target.max_tokens = target.max_tokens.min(MOST_ANSWER);
        let learned = Arc::new(State::load().refusals());
        let patience = settings.config.patience.patience();
        let client = Client::new(route.transport, route.endpoint, patience, learned.clone());
        let counter = Counter::new(target.vocabulary());
        Writer {
            target,
            settings,
            client,
            learned,
            counter,
            spent: Spent::default(),
            requests: 0,
            bills: Vec::new(),
        }
    }

    /// Writes the message for what is staged, and tells what that cost.
    pub fn write(mut self, staged: &Staged, folder: &Path) -> Result<Message> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("no runtime can be made")?;
        let written = runtime.block_on(async {
            tokio::select! {
                written = self.message(staged) => written,
                _ = tokio::signal::ctrl_c() => {
                    Err(Unfinished { code: 130, message: "interrupted; nothing was committed".into() }.into())
                }
            }
        });
        State::load().keep(&self.learned, None);
        if self.requests > 0 {
            eprintln!("{}", self.bill());
        }
        cost::keep(folder, std::mem::take(&mut self.bills));
        written
    }

    async fn message(&mut self, staged: &Staged) -> Result<Message> {
        let changes = self.changes(staged).await?;
        let phrases = &self.settings.texts.phrases.commit;
        let recent =
            if staged.recent.is_empty() { "(none yet)".to_owned() } else { staged.recent.join("\n") };
        let values = [
            ("branch", staged.branch.as_str()),
            ("recent", recent.as_str()),
            ("files", &names(staged)),
            ("changes", &changes),
        ];
        let mut turns = vec![(Role::User, fill(&phrases.request, &values))];
        let mut answer = self.ask(&turns).await?;
        let problem = match Message::of(&answer) {
            Ok(message) => return Ok(message),
            Err(problem) => problem,
        };
        eprintln!("hardpan: the message cannot be used: {problem}; the model is asked once more");
        // An empty answer cannot be repeated to the model.
        let said = if answer.trim().is_empty() { "(nothing)".to_owned() } else { answer };
        turns.push((Role::Assistant, said));
        turns.push((Role::User, fill(&phrases.again, &[("problem", &problem)])));
        answer = self.ask(&turns).await?;
        Message::of(&answer).or_else(|problem| {
            let first = safe(answer.trim().lines().next().unwrap_or_default());
            bail!(
                "{} gave no message that can be used: {problem} ({first:?}). Nothing was committed: write one yourself (git commit), or choose another model (--model, small_model in config.toml)",
                self.target.model.name()
            )
        })
    }

    /// The diff, or what stands for it.
    async fn changes(&mut self, staged: &Staged) -> Result<String> {
        let phrases = &self.settings.texts.phrases.commit;
        let room = self.room(staged)?;
        let whole: String = staged.patches.iter().map(|patch| patch.text.as_str()).collect();
        // Counting is slow work on what is certainly too long: a token has seldom more than 8 bytes.
        if !staged.cut && whole.len() <= room * 8 && self.tokens(&whole) <= room {
            return Ok(fill(&phrases.diff, &[("diff", whole.trim_end())]));
        }
        let groups = self.groups(&staged.patches, room);
        let (asked, left) = groups.split_at(groups.len().min(MOST_SUMMARIES));
        eprintln!(
            "hardpan: the diff is too long for one request: {} files are summarised first, in {}",
            asked.iter().map(Vec::len).sum::<usize>(),
            requests(asked.len())
        );
        let mut summaries = Vec::new();
        for group in asked {
            let request = fill(&phrases.summarise, &[("diff", group.concat().trim_end())]);
            summaries.push(self.ask(&[(Role::User, request)]).await?.trim().to_owned());
        }
        let unread = left.iter().map(Vec::len).sum::<usize>();
        if unread > 0 || staged.cut {
            let count = if staged.cut { "some".to_owned() } else { unread.to_string() };
            summaries.push(fill(&phrases.unread, &[("count", &count)]));
            eprintln!("hardpan: {count} more files are told to the model by name only");
        }
        // Ten answers are never as long as one request may be.
        Ok(fill(&phrases.summaries, &[("summaries", &summaries.join("\n"))]))
    }

    /// How many tokens of diff fit into a request.
    fn room(&self, staged: &Staged) -> Result<usize> {
        let around = self.tokens(&self.settings.texts.commit_message) + self.tokens(&names(staged)) + 1000;
        let room = (self.target.max_input_tokens() as usize).saturating_sub(around);
        if room < 1000 {
            bail!(
                "{} has too small a window for this commit: choose another model (--model)",
                self.target.model.name()
            );
        }
        Ok(room.min(MOST_DIFF))
    }

    fn tokens(&self, text: &str) -> usize {
        self.target.factor.scale(self.counter.count(&Text::new(text)))
    }

    /// The patches, as many together as fit; what is long is cut.
    fn groups(&self, patches: &[Patch], room: usize) -> Vec<Vec<String>> {
        let mut groups: Vec<Vec<String>> = Vec::new();
        let mut used = room;
        for patch in patches {
            let text = cut(&patch.text, MOST_OF_FILE.min(room), &self.settings.texts.phrases.commit.cut);
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

    async fn ask(&mut self, turns: &[(Role, String)]) -> Result<String> {
        let origin = |kind| Origin::rule(kind, "commit");
        let block = |text: &str| Block::text(Place::Log, Text::new(text), origin(Kind::History));
        let prompt = Prompt {
            model: self.target.model.id.as_str().into(),
            max_tokens: self.target.max_tokens,
            system: vec![Block::text(
                Place::Base,
                self.settings.texts.commit_message.clone(),
                origin(Kind::System),
            )],
            turns: turns.iter().map(|(role, text)| Turn::new(*role, vec![block(text)])).collect(),
            ..Prompt::default()
        };
        let question = Question {
            prompt: &prompt,
            wire: &self.target.wire,
            provider: &self.target.provider,
            forms: &TextForms { texts: &self.settings.texts },
            now_ms: now().as_millisecond(),
        };
        let (sent, mut began) = (now(), None);
        let mut sink = |event: Event| {
            began = began.or_else(|| Some(now()));
            if let Event::Footnote(note) = event {
                eprintln!("hardpan: {}", safe(&note));
            }
        };
        let answer = self.client.ask(&question, &mut sink).await?;
        self.requests += 1;
        if let Some(usage) = &answer.usage {
            self.spent += Spent::of(usage, &self.target);
            self.bills.push(books::bill(&Billed {
                purpose: "commit",
                on: On::Nothing,
                target: &self.target,
                layout: "none",
                prompt: &prompt,
                measured: &self.counter.measure(&prompt).scaled(&self.target.factor),
                message: None,
                usage: Some(usage),
                sent,
                began: began.unwrap_or(sent),
                ended: now(),
                day: &books::day(sent, &TimeZone::system()),
            }));
        }
        if let Some(error) = &answer.error {
            bail!("the answer failed: {error}; nothing was committed");
        }
        Ok(answer.text())
    }

    fn bill(&self) -> String {
        let n = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
        format!(
            "{} to {}: in {} (read {}, written {}), out {}; {}",
            requests(self.requests),
            safe(&self.target.model.name()),
            n(self.spent.prompt()),
            n(self.spent.read),
            n(self.spent.written),
            n(self.spent.output),
            dollars(self.spent.dollars)
        )
    }
}

/// The staged files, one per line.
fn names(staged: &Staged) -> String {
    let files = staged.files.iter().take(MOST_NAMES);
    let mut lines: Vec<String> = files.map(|file| format!("{} {}", file.status, file.path)).collect();
    if staged.files.len() > MOST_NAMES {
        lines.push(format!("… {} more", staged.files.len() - MOST_NAMES));
    }
    lines.join("\n")
}

fn requests(count: usize) -> String {
    if count == 1 { "1 request".to_owned() } else { format!("{count} requests") }
}

/// A text, cut to so many bytes, with a line that says so.
fn cut(text: &str, bytes: usize, phrase: &str) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes);
    let count = (text.len() - end).to_string();
    format!("{}\n{}\n", &text[..end], fill(phrase, &[("count", &count)]))
}
