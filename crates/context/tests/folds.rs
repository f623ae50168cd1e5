//! Random work with files and commands through `strata`: whatever folds take out, the model can still
//! tell every file as well as if nothing had been taken out, the last output of every command is
//! there, what comes before a fold stays as it was, and a resumed session goes on with the same bytes.
//!
//! `HARDPAN_SEED` and `HARDPAN_CASES` choose other sessions, and how many.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_context::knowledge::{FileObservation, LineRanges, ObservationKind};
use hardpan_context::{
    AssembledPrompt, FoldReason, KeepLevel, LayoutName, LayoutState, LayoutStateLog, PromptTexts,
    RenderCache, Snapshot, Target, assemble,
};
use hardpan_economy::PauseCounts;
use hardpan_models::Catalogue;
use hardpan_prompt::validate::validate;
use hardpan_prompt::{
    AgentMessage, CacheLifetime, Content, Hash, Item, ItemKind, Json, MessageBody, MessageId, MessagePart,
    Prompt, ResultPart, Source, ToolCall, Volatility,
};
use jiff::Timestamp;
use serde_json::{Value, json};

#[path = "invariants/rng.rs"]
#[expect(dead_code, reason = "this test needs only some of it")]
mod rng; // a small generator of random numbers

use rng::TestRng;

const FILES: usize = 5;
const REQUESTS: usize = 40;

/// What a tool result told, so that the prompt can be read as a model would read it.
#[derive(Clone)]
enum Told {
    Lines { file: usize, first: usize, text: Vec<String> },
    Line { file: usize, line: usize, text: String },
    Output { command: usize, text: String },
}

/// A session: the true files, and the conversation about them.
struct Work {
    rng: TestRng,
    files: Vec<Vec<String>>,
    messages: Vec<AgentMessage>,
    told: BTreeMap<String, (String, Told)>,
    observations: Vec<(MessageId, FileObservation)>,
    now: Timestamp,
    next: usize,
}

fn path(file: usize) -> String {
    format!("src/{file}.rs")
}

impl Work {
    fn new(seed: u64) -> Self {
        let mut rng = TestRng::new(seed);
        let line = |file: usize, line: usize| format!("file {file} line {line} as it was at first");
        let files = (0..FILES)
            .map(|file| (0..rng.between(5, 59)).map(|number| line(file, number)).collect())
            .collect();
        Work {
            rng,
            files,
            messages: Vec::new(),
            told: BTreeMap::new(),
            observations: Vec::new(),
            now: Timestamp::from_second(1_800_000_000).expect("a time"),
            next: 0,
        }
    }

    fn text(&self, file: usize) -> String {
        self.files[file].iter().map(|line| format!("{line}\n")).collect()
    }

    fn id(&mut self) -> MessageId {
        self.next += 1;
        MessageId::from(format!("e{}", self.next).as_str())
    }

    fn push(&mut self, body: MessageBody) -> MessageId {
        let id = self.id();
        self.messages.push(AgentMessage::new(id.clone(), body));
        id
    }

    fn say(&mut self, text: &str) {
        self.push(MessageBody::User { content: vec![MessagePart::text(text)] });
    }

    fn answer(&mut self) {
        let content = vec![MessagePart::text("done")];
        self.push(MessageBody::Assistant { content, provider: None, model: None, stop_reason: None });
    }

    /// A tool round with one to three calls.
    fn round(&mut self) {
        let count = if self.rng.one_in(4) { self.rng.between(2, 3) } else { 1 };
        let drafts: Vec<(Value, &'static str, String, Told, Option<FileObservation>)> =
            (0..count).map(|_| self.draft()).collect();
        let mut calls = Vec::new();
        for (arguments, name, ..) in &drafts {
            self.next += 1;
            let id = format!("call{}", self.next);
            let arguments = Json::new(arguments);
            calls.push(ToolCall { id: id.as_str().into(), name: (*name).into(), arguments, result: None });
        }
        let words = self.rng.one_in(2).then(|| MessagePart::text(format!("words {}", self.next)));
        let calls_made = calls.iter().cloned().map(MessagePart::ToolCall);
        let content = words.into_iter().chain(calls_made).collect();
        self.push(MessageBody::Assistant { content, provider: None, model: None, stop_reason: None });
        for (call, (_, name, text, told, observation)) in calls.into_iter().zip(drafts) {
            let id = self.push(MessageBody::ToolResult {
                call_id: call.id,
                tool_name: Some(name.into()),
                content: vec![MessagePart::text(text.as_str())],
                is_error: false,
                not_run: None,
            });
            self.told.insert(id.0.to_string(), (text, told));
            self.observations.extend(observation.map(|observation| (id, observation)));
        }
    }

    fn draft(&mut self) -> (Value, &'static str, String, Told, Option<FileObservation>) {
        let file = self.rng.below(FILES);
        let lines = self.files[file].len();
        match self.rng.below(10) {
            0..=2 => self.draft_read(file, 0, lines),
            3 | 4 => {
                let first = self.rng.below(lines);
                let last = self.rng.between(first, lines - 1) + 1;
                self.draft_read(file, first, last)
            }
            5 | 6 => {
                let line = self.rng.below(lines);
                let length = self.rng.between(1, 59);
                let text = format!("file {file} line {line} {} {}", self.next, "changed ".repeat(length));
                self.files[file][line].clone_from(&text);
                let observation = FileObservation::of_text(
                    &path(file),
                    ObservationKind::Edited,
                    &self.text(file),
                    LineRanges::span(line as u64 + 1, line as u64 + 1),
                );
                let arguments = json!({"path": path(file), "line": line, "new": text});
                (arguments, "edit", "edited".into(), Told::Line { file, line, text }, Some(observation))
            }
            7 => {
                let lines: Vec<String> = (0..self.rng.between(5, 59))
                    .map(|line| format!("written {} {line}", self.next))
                    .collect();
                self.files[file].clone_from(&lines);
                let text = self.text(file);
                let all = LineRanges::all(lines.len() as u64);
                let observation = FileObservation::of_text(&path(file), ObservationKind::Written, &text, all);
                let told = Told::Lines { file, first: 0, text: lines };
                (
                    json!({"path": path(file), "content": text}),
                    "write",
                    "written".into(),
                    told,
                    Some(observation),
                )
            }
            _ => {
                let command = self.rng.below(3);
                let text = format!("output {} of {command}\n{}", self.next, "ok\n".repeat(command * 100));
                let told = Told::Output { command, text: text.clone() };
                (json!({"command": format!("run {command}")}), "bash", text, told, None)
            }
        }
    }

    fn draft_read(
        &mut self,
        file: usize,
        first: usize,
        last: usize,
    ) -> (Value, &'static str, String, Told, Option<FileObservation>) {
        let shown: Vec<String> = self.files[file][first..last].to_vec();
        let text: String = shown.iter().map(|line| format!("{line}\n")).collect();
        let ranges = LineRanges::span(first as u64 + 1, last as u64);
        let observation =
            FileObservation::of_text(&path(file), ObservationKind::Shown, &self.text(file), ranges);
        let told = Told::Lines { file, first, text: shown };
        (json!({"path": path(file), "from": first, "to": last}), "read", text, told, Some(observation))
    }

    /// What the agent would gather for the next request.
    fn snapshot(&mut self, keep: KeepLevel, layout_state: LayoutState) -> Snapshot {
        let mut snapshot = Snapshot::empty(self.now);
        for (message, observation) in &self.observations {
            // As after a resume: texts are not stored.
            let stored = serde_json::to_value(observation).expect("it works");
            snapshot.knowledge.record(message, serde_json::from_value(stored).expect("it works"));
        }
        for (known_path, known) in snapshot.knowledge.known_files() {
            let file = (0..FILES).find(|file| path(*file) == **known_path).expect("it works");
            let body = self.text(file);
            let shown_by = known.message.clone().filter(|_| known.hash == Hash::of(body.as_bytes()));
            snapshot.items.push(Item {
                key: format!("file:{known_path}").into(),
                id: format!("P{}", 10 + file).into(),
                kind: ItemKind::File,
                title: known_path.clone(),
                body: body.into(),
                changed_at_ms: 0,
                volatility: Volatility::Active,
                tier: None,
                unchanged_responses: None,
                shown_by,
            });
        }
        snapshot.messages.clone_from(&self.messages);
        snapshot.keep = keep;
        snapshot.layout_state = layout_state;
        snapshot
    }
}

/// What a reader of a prompt knows: lines of files, and the last output of each command.
#[derive(Debug, Default, PartialEq)]
struct Reader {
    lines: BTreeMap<(usize, usize), String>,
    outputs: BTreeMap<usize, String>,
    /// What the model said, in order.
    words: Vec<String>,
    /// The results that are still there, and those that a line tells of, by their id.
    shown: BTreeSet<String>,
    told_of: BTreeSet<String>,
}

impl Reader {
    fn learn(&mut self, told: &Told) {
        match told {
            Told::Lines { file, first, text } => {
                self.lines.extend(text.iter().zip(*first..).map(|(line, at)| ((*file, at), line.clone())));
            }
            Told::Line { file, line, text } => drop(self.lines.insert((*file, *line), text.clone())),
            Told::Output { command, text } => drop(self.outputs.insert(*command, text.clone())),
        }
    }

    /// Reads every result of a prompt in its order, as far as it is still there.
    fn read(prompt: &Prompt, work: &Work) -> Self {
        let mut reader = Reader::default();
        for block in prompt.blocks() {
            if let Content::Text(segments) = &*block.content {
                let text: String = segments.iter().map(|segment| segment.text.as_str()).collect();
                reader.words.extend(Some(text).filter(|text| text.starts_with("words ")));
            }
            let Content::Result(result) = &*block.content else { continue };
            let Source::Message(message) = &result.origin.source else { continue };
            let text: String = result
                .parts
                .iter()
                .flat_map(|part| match part {
                    ResultPart::Text(segments) => segments.as_slice(),
                    ResultPart::Image(_) => &[],
                })
                .map(|segment| segment.text.as_str())
                .collect();
            let (original, told) = &work.told[&*message.0];
            reader.shown.insert(message.to_string());
            if let Some(body) = text.strip_prefix("[file:src/") {
                let (name, body) = body.split_once(".rs as it is now:]\n").expect("a body");
                let file: usize = name.parse().expect("a file");
                reader.lines.retain(|(other, _), _| *other != file);
                reader.lines.extend(
                    body.trim_end_matches('\n')
                        .lines()
                        .enumerate()
                        .map(|(at, line)| ((file, at), line.to_owned())),
                );
            } else if text == *original {
                reader.learn(told);
            } else if let Some(copies) = text.strip_prefix("[older copies, each to recall by its id: ") {
                let is_id = |word: &&str| work.told.contains_key(*word);
                let ids: Vec<String> = copies.split(' ').filter(is_id).map(str::to_owned).collect();
                assert!(ids.contains(&message.to_string()) && ids.len() > 1, "{text}");
                reader.told_of.extend(ids);
            } else {
                assert!(text.starts_with('[') && text.ends_with(&format!("recall {message}]")), "{text}");
                reader.told_of.insert(message.to_string());
            }
        }
        reader
    }

    /// What is true of it: lines that the files still have.
    fn truth(mut self, work: &Work) -> Self {
        self.lines.retain(|(file, at), line| work.files[*file].get(*at) == Some(line));
        self
    }
}

struct Session<'a> {
    work: Work,
    target: &'a Target,
    texts: &'a PromptTexts,
    render_cache: RenderCache,
    state: LayoutStateLog,
    records: Vec<Value>,
    before: Option<AssembledPrompt>,
    pauses: Vec<u32>,
}

/// The hash of each block, tools and system prompt included.
fn hashes(prompt: &Prompt) -> Vec<Hash> {
    let tools = prompt.tools.iter().map(|block| Hash::of(block.tool.name.as_bytes()));
    tools.chain(prompt.blocks().map(hardpan_prompt::Block::hash)).collect()
}

impl Session<'_> {
    fn request(&mut self, keep: KeepLevel, folds: &mut BTreeMap<String, usize>) {
        let pause = match self.work.rng.below(30) {
            0 => 400,
            1 => 4000,
            _ => 5,
        };
        self.work.now += jiff::SignedDuration::from_secs(i64::from(pause));
        self.pauses.push(pause);
        let mut snapshot = self.work.snapshot(keep, self.state.current().clone());
        let Target { provider, model, profile, .. } = self.target;
        snapshot.fold = self.target.lost_cache(provider, &model.id, i64::from(pause));
        snapshot.pauses = PauseCounts::new(self.pauses.iter().copied(), &profile.cache);
        let assembled = assemble(&snapshot, LayoutName::Strata, self.target, self.texts, &self.render_cache)
            .expect("it works");
        let rules = hardpan_providers::validation_rules(&self.target.profile, &self.target.model);
        validate(&assembled.prompt, &rules).expect("it works");

        let everything = self.work.snapshot(KeepLevel::All, LayoutState::default());
        let fresh = RenderCache::new(self.target.vocabulary());
        let whole =
            assemble(&everything, LayoutName::Strata, self.target, self.texts, &fresh).expect("it works");
        let known = Reader::read(&whole.prompt, &self.work).truth(&self.work);
        let told = Reader::read(&assembled.prompt, &self.work).truth(&self.work);
        if keep <= KeepLevel::Current {
            assert_eq!(told.lines, known.lines, "the prompt tells as much as if nothing had been taken out");
        }
        if keep == KeepLevel::Current {
            assert_eq!(told.outputs, known.outputs);
        }
        assert_eq!(told.words, known.words, "what the model said stays, in order");
        let found: BTreeSet<&String> = told.shown.union(&told.told_of).collect();
        assert_eq!(found, known.shown.iter().collect(), "whatever went is told of, with its id");
        let joined = told.told_of.len() - told.told_of.intersection(&told.shown).count();
        *folds.entry("with their calls".to_owned()).or_default() += usize::from(joined > 0);
        let paged = LayoutName::Strata.layout().paged_out(&assembled.layout_state).len();
        *folds.entry("paged out".to_owned()).or_default() += paged;

        // Resumed: the state from its stored form, nothing rendered before.
        let resumed = LayoutStateLog::from_records(self.records.clone());
        let again = Snapshot { layout_state: resumed.current().clone(), ..snapshot };
        let again = assemble(&again, LayoutName::Strata, self.target, self.texts, &fresh).expect("it works");
        assert_eq!(
            hardpan_providers::encode(&again.prompt, &self.target.profile),
            hardpan_providers::encode(&assembled.prompt, &self.target.profile),
            "a resumed session sends the same bytes"
        );
        self.check_prefix(&assembled, folds);
        self.records.extend(self.state.commit(assembled.layout_state.clone()));
        self.before = Some(assembled);
    }

    /// Up to the place of its fold, or without one to the last breakpoint, a request begins like the one
    /// before.
    fn check_prefix(&self, assembled: &AssembledPrompt, folds: &mut BTreeMap<String, usize>) {
        let Some(before) = &self.before else { return };
        let (old, new) = (hashes(&before.prompt), hashes(&assembled.prompt));
        let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
        let last = before.prompt.breakpoints().last().map_or(0, |breakpoint| breakpoint.block + 1);
        let Some(fold) = &assembled.fold else {
            assert!(same >= last, "{same} of {last} blocks are the same");
            return;
        };
        let through =
            |blocks: usize| blocks.checked_sub(1).map_or(0, |last| before.measured.tokens_through(last));
        let long = before.prompt.breakpoints().into_iter().rfind(|it| it.lifetime == CacheLifetime::OneHour);
        let kept = match fold.reason {
            // What lives for an hour stays.
            FoldReason::ShortCacheLost => through(long.map_or(0, |breakpoint| breakpoint.block + 1)),
            _ => through(last).saturating_sub(fold.tokens),
        };
        let is_partial = fold.reason == FoldReason::RentPaid && kept > through(before.prompt.tools.len() + 1);
        *folds.entry(format!("{}{}", fold.reason, if is_partial { ", partial" } else { "" })).or_default() +=
            1;
        if matches!(fold.reason, FoldReason::RentPaid | FoldReason::ShortCacheLost) {
            assert!(through(same) >= kept, "the {kept} tokens before the fold stay: {}", through(same));
            let marked =
                assembled.prompt.breakpoints().iter().any(|breakpoint| through(breakpoint.block + 1) == kept);
            assert!(
                marked || kept < self.target.profile.cache.min_tokens as usize,
                "the cache is read up to {kept}"
            );
        }
        assert!(fold.garbage > 0, "{fold:?}");
    }
}

fn number(variable: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number"))
}

#[test]
fn folds_take_out_only_what_is_told_again() {
    let (first, cases) = (number("HARDPAN_SEED", 15), number("HARDPAN_CASES", 60));
    let texts = PromptTexts::builtin().expect("it works");
    let mut folds = BTreeMap::new();
    for seed in first..first + cases {
        let model = ["claude-sonnet-5", "claude-haiku-4-5", "gpt-5.5"][seed as usize % 3];
        let target = Target::new(Catalogue::builtin(), None, model).expect("it works");
        let keep =
            [KeepLevel::Current, KeepLevel::Current, KeepLevel::History, KeepLevel::Lean][seed as usize % 4];
        let mut session = Session {
            work: Work::new(seed),
            render_cache: RenderCache::new(target.vocabulary()),
            target: &target,
            texts: &texts,
            state: LayoutStateLog::default(),
            records: Vec::new(),
            before: None,
            pauses: Vec::new(),
        };
        session.work.say("begin");
        for request in 0..REQUESTS {
            session.request(keep, &mut folds);
            session.work.round();
            if session.work.rng.one_in(8) {
                session.request(keep, &mut folds);
                session.work.answer();
                session.work.say(&format!("and now {request}"));
            }
        }
    }
    // Only some of the models have two lifetimes.
    let kinds = ["rent_paid", "rent_paid, partial", "cache_lost", "paged out", "with their calls"];
    for (kind, per_session) in kinds.map(|kind| (kind, 3)).into_iter().chain([("short_cache_lost", 30)]) {
        let enough = cases as usize / per_session;
        assert!(folds.get(kind).is_some_and(|count| *count >= enough), "{kind}: {folds:?}");
    }
}
