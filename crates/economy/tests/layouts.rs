//! Verdicts and bills for the prompts that the layouts really make.

use hardpan_context::{
    AssembledPrompt, FoldReason, LayoutName, LayoutState, PromptTexts, RenderCache, Snapshot, SnapshotFile,
    Target, assemble,
};
use hardpan_economy::cache::{CacheModel, CacheRequest, CacheRules, CacheSettings, Moment};
use hardpan_economy::ledger::{Continuity, RequestPurpose};
use hardpan_economy::verdict::Verdict;
use hardpan_economy::{CacheMonitor, Cause, CompletedRequest, Ledger};
use hardpan_models::{CacheKind, Catalogue};
use hardpan_prompt::{TokenUsage, Vocabulary};
use serde_json::{Value, json};

/// A session in one layout, and its provider.
struct Session {
    layout: LayoutName,
    target: Target,
    texts: PromptTexts,
    render_cache: RenderCache,
    layout_state: LayoutState,
    messages: Vec<Value>,
    files: Vec<Value>,
    fold: Option<FoldReason>,
    stands_alone: bool,
    now: i64,
    cache: CacheModel,
    monitor: CacheMonitor,
    ledger: Ledger,
}

impl Session {
    fn new(layout: LayoutName, model: &str) -> Self {
        let file = |name: &str| json!({"path": name, "content": format!("{name}\n").repeat(600)});
        Session {
            layout,
            target: Target::new(Catalogue::builtin(), None, model).expect("a known model"),
            texts: PromptTexts::builtin().expect("the built-in texts"),
            render_cache: RenderCache::new(Vocabulary::O200k),
            layout_state: LayoutState::default(),
            messages: Vec::new(),
            files: vec![file("a.rs"), file("b.rs")],
            fold: None,
            stands_alone: false,
            now: 1_771_509_600_000,
            cache: CacheModel::new(),
            monitor: CacheMonitor::new(),
            ledger: Ledger::default(),
        }
    }

    fn snapshot(&self, prompt: &str) -> Snapshot {
        let minute = (self.now / 60_000) % 60;
        let json = json!({
            "version": 1,
            "now": format!("2026-02-19T14:{minute:02}:00Z"),
            "working_directory": "/project",
            "messages": self.messages,
            "files": self.files,
            "prompt": {"id": prompt, "text": format!("{prompt}: go on.")},
        });
        let file = SnapshotFile::parse("test", &json.to_string()).expect("a snapshot");
        let snapshot = file.into_snapshot("test").expect("a snapshot");
        let (fold, stands_alone) = (self.fold, self.stands_alone);
        Snapshot { layout_state: self.layout_state.clone(), fold, stands_alone, ..snapshot }
    }

    /// Sends a prompt after a minute; the model answers in a few words.
    fn ask(&mut self, prompt: &str) -> Verdict {
        self.now += 60_000;
        let snapshot = self.snapshot(prompt);
        let assembled = assemble(&snapshot, self.layout, &self.target, &self.texts, &self.render_cache)
            .expect("a prompt");
        let AssembledPrompt { prompt: sent, layout_state, measured, .. } = assembled;
        let rules = CacheRules::for_model(&self.target.model, &self.target.profile);
        let request = CacheRequest::from_prompt(&sent, &measured, Moment(self.now));
        let mut used = self.cache.send(&rules, &request, Moment(self.now + 500)).amounts;
        if rules.cache.kind == CacheKind::Automatic {
            used.input += std::mem::take(&mut used.cache_write_5m); // such providers report no writes
        }
        used.output = 12;
        let answered = CompletedRequest {
            prompt: &sent,
            prompt_tokens: &measured,
            model: &self.target.model,
            profile: &self.target.profile,
            settings: CacheSettings::default(),
            reported_usage: Some(used),
            reports_cache: true,
            diagnosis: None,
            sent_at: Moment(self.now),
            answer_began_at: Moment(self.now + 500),
            day: "2026-02-19",
            purpose: RequestPurpose::Turn,
            continuity: Continuity::Continued,
        };
        let verdict = self.monitor.examine(&answered);
        let charge = self.ledger.charge(&answered);
        let mut sum = TokenUsage::default();
        charge.rows.iter().for_each(|row| sum += row.tokens);
        assert_eq!(sum, used, "{:?}", self.layout);
        self.layout_state = layout_state;
        self.fold = None;
        self.messages.push(json!({"id": prompt, "role": "user", "content": format!("{prompt}: go on.")}));
        let answer = format!("{prompt}a");
        let said = "I have done what was asked. ".repeat(40);
        self.messages.push(json!({"id": answer, "role": "assistant", "content": said}));
        verdict
    }
}

#[test]
fn strata_loses_nothing_but_by_its_own_folds_while_it_grows_and_files_change() {
    for model in ["claude-sonnet-5", "gpt-5.4", "gpt-5.6"] {
        let mut session = Session::new(LayoutName::Strata, model);
        let mut folds = 0;
        for number in 0..40 {
            if number % 5 == 4 {
                let content = format!("number {number}\n").repeat(500 + number);
                session.files[number % 2]["content"] = json!(content);
            }
            let verdict = session.ask(&format!("m{number}"));
            let folded = verdict.cause == Cause::Folded;
            folds += u32::from(folded);
            assert!(folded || !verdict.is_loss(), "{model}, request {number}: {}", verdict.sentence());
            let read = number == 0 || folded || verdict.read > 0;
            assert!(read, "{model}, request {number}: {}", verdict.sentence());
        }
        // Whole files change, so the rent for their former bodies pays for a fold now and then.
        assert!((1..=4).contains(&folds), "{model}: {folds} folds");
    }
}

#[test]
fn a_fold_and_a_compaction_are_told_apart() {
    for model in ["claude-sonnet-5", "gpt-5.4"] {
        let mut session = Session::new(LayoutName::Strata, model);
        for number in 0..6 {
            session.ask(&format!("m{number}"));
        }
        session.files[0]["content"] = json!("another\n".repeat(600));
        session.fold = Some(FoldReason::Requested);
        let fold = session.ask("f");
        assert_eq!(fold.cause, Cause::Folded, "{model}: {}", fold.sentence());
        session.ask("g");
        let kept = session.messages.split_off(6);
        session.messages =
            vec![json!({"id": "k", "role": "compaction_summary", "summary": "All went well."})];
        session.messages.extend(kept);
        session.fold = Some(FoldReason::Requested);
        let compaction = session.ask("h");
        assert_eq!(compaction.cause, Cause::Compacted, "{model}: {}", compaction.sentence());
    }
}

#[test]
fn the_clock_costs_panels_its_conversation_and_the_others_nothing() {
    for layout in LayoutName::ALL {
        for model in ["claude-sonnet-5", "gpt-5.4"] {
            let mut session = Session::new(layout, model);
            // Long enough for the provider's minimum.
            for number in 0..5 {
                session.ask(&format!("m{number}"));
            }
            let last = session.ask("m5");
            if layout == LayoutName::Panels {
                assert_eq!(last.cause, Cause::LayoutChanged("panel footer".into()), "{model}: {last:?}");
            } else if (layout, model) != (LayoutName::Inline, "gpt-5.4") {
                // Where a provider caches by itself, the context of `inline` is cached, too, and moves on.
                assert!(!last.is_loss(), "{layout}, {model}: {last:?}");
            }
        }
    }
}

#[test]
fn a_request_without_breakpoints_is_told_so() {
    let mut session = Session::new(LayoutName::Inline, "claude-sonnet-5");
    session.stands_alone = true;
    session.ask("m1");
    let verdict = session.ask("m2");
    assert_eq!((verdict.cause.clone(), verdict.is_loss()), (Cause::Unmarked, false));
}

#[test]
fn bills_add_up_in_all_layouts_and_to_the_items() {
    for layout in [LayoutName::Strata, LayoutName::Panels, LayoutName::Tiers, LayoutName::Inline] {
        for model in ["claude-sonnet-5", "gpt-5.4"] {
            let mut session = Session::new(layout, model);
            for number in 0..4 {
                session.ask(&format!("m{number}"));
            }
            let file = session.ledger.totals_for_key("file:a.rs");
            assert_eq!((file.requests, file.hits + file.misses), (4, 4), "{layout:?}");
            let kinds: u64 = session.ledger.by_kind().values().map(|totals| totals.tokens.total()).sum();
            assert_eq!(kinds, session.ledger.total.tokens.total());
        }
    }
}
