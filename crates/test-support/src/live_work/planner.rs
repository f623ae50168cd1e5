//! [`Planner`]: chooses the calls of a kind of work, and keeps the files as they will be.

use serde_json::{Value, json};

use super::check_script::CHECK_PATH;
use super::habits::{Act, Habits};
use super::plan::{PlannedCall, PlannedRun, PlannedStep, WorkKind};
use super::source_tree::{DEFECT, LineEdit, SourceTree};
use crate::Random;

pub(super) struct Planner {
    random: Random,
    habits: Habits,
    tree: SourceTree,
    /// The files that this run is about.
    focus: Vec<String>,
    /// The files that have been read, in the order of their first reading.
    read: Vec<String>,
    /// The arguments of earlier searches.
    searches: Vec<Value>,
    /// What the tests were last run for, if no edit came since: a command that fails again and again
    /// without one is not run.
    unchanged_since_check: Option<String>,
    calls: usize,
}

impl Planner {
    pub fn new(kind: WorkKind, seed: u64) -> Self {
        let mut random = Random::new(seed ^ ((kind as u64 + 1) << 32));
        let habits = Habits::of(kind);
        let mut tree = SourceTree::generate(&mut random, habits.modules);
        let defects = if kind == WorkKind::TestLoop { 14 } else { 2 };
        for _ in 0..defects {
            let path = random.pick(&tree.paths()).clone();
            let line = random.within(20..=tree.lines(&path).len() - 1);
            let text = format!("{}  # {DEFECT}", tree.statement(&mut random));
            tree.replace(&path, line, 1, vec![text]);
        }
        let (focus, read, searches) = (Vec::new(), Vec::new(), Vec::new());
        Planner { random, habits, tree, focus, read, searches, unchanged_since_check: None, calls: 0 }
    }

    /// The files as they are after all calls so far.
    pub fn tree(&self) -> &SourceTree {
        &self.tree
    }

    /// A run of this many answers, the last without calls.
    pub fn plan_run(&mut self, run: usize, length: usize) -> PlannedRun {
        self.choose_focus();
        let named = self.random.within(0..=self.focus.len() - 1);
        let mark = if self.random.percent(25) { "@" } else { "" };
        let prompt = format!(
            "{} Begin with {mark}{}. This is part {} of the work.",
            self.words(18),
            self.focus[named],
            run + 1
        );
        let mut steps = Vec::new();
        while steps.len() + 1 < length {
            let calls = match steps.len() {
                0 => self.search(),
                1 => self.read_focus(),
                _ => self.next_calls(),
            };
            let words = self.random.within(6..=40);
            steps.push(PlannedStep { text: self.words(words), calls });
        }
        let words = self.random.within(60..=220);
        steps.push(PlannedStep { text: self.words(words), calls: Vec::new() });
        PlannedRun { prompt, steps }
    }

    /// Some of the files of earlier runs, and some others.
    fn choose_focus(&mut self) {
        let count = self.random.within(self.habits.files_per_run.clone());
        let paths = self.tree.paths();
        self.focus.clear();
        while self.focus.len() < count {
            let again = !self.read.is_empty() && self.random.percent(45);
            let path = self.random.pick(if again { &self.read } else { &paths }).clone();
            if !self.focus.contains(&path) {
                self.focus.push(path);
            }
        }
    }

    fn next_calls(&mut self) -> Vec<PlannedCall> {
        let act = self.random.weighted(self.habits.acts);
        let mut calls = self.perform(act);
        let only_looks = !matches!(
            act,
            Act::Edit | Act::EditTwice | Act::Rewrite | Act::CreateFile | Act::EditByShell | Act::Check
        );
        if only_looks && self.random.percent(self.habits.parallel) {
            for _ in 0..self.random.within(1..=3) {
                let another =
                    *self.random.pick(&[Act::ReadAgain, Act::ReadPart, Act::Search, Act::PrintLines]);
                calls.extend(self.perform(another));
            }
        }
        calls
    }

    fn perform(&mut self, act: Act) -> Vec<PlannedCall> {
        match act {
            Act::ReadWhole => {
                let path = self.any_path();
                vec![self.read_whole(&path)]
            }
            Act::ReadAgain => {
                let path = self.known_path();
                vec![self.read_whole(&path)]
            }
            Act::ReadPart => {
                let path = self.any_path();
                let (first, count) = self.line_range(&path, 20..=90);
                vec![self.call("read", json!({"path": path, "offset": first + 1, "limit": count}))]
            }
            Act::Edit => self.edit(1),
            Act::EditTwice => self.edit(3),
            Act::Rewrite => self.rewrite(),
            Act::CreateFile => vec![self.create_file()],
            Act::EditByShell => self.edit_by_shell(),
            Act::Search => self.search(),
            Act::SearchAgain if self.searches.is_empty() => self.search(),
            Act::SearchAgain => {
                let arguments = self.random.pick(&self.searches).clone();
                vec![self.call("grep", arguments)]
            }
            Act::FindFiles => {
                let pattern = *self.random.pick(&["*.py", "src/billing/*", "*_1*.py", "src/**/*t_*.py"]);
                vec![self.call("find", json!({"pattern": pattern}))]
            }
            Act::Check => self.check(),
            Act::Diff => {
                let path = self.known_path();
                vec![self.command(&format!("git diff -- {path}"))]
            }
            Act::Status => vec![self.command("git status --short")],
            Act::Cat => {
                let path = self.known_path();
                vec![self.command(&format!("cat {path}"))]
            }
            Act::PrintLines => {
                let path = self.any_path();
                let (first, count) = self.line_range(&path, 30..=120);
                vec![self.command(&format!("sed -n '{},{}p' {path}", first + 1, first + count))]
            }
            Act::ShowCommitted => {
                let path = self.known_path();
                vec![self.command(&format!("git log --oneline -3 -- {path}"))]
            }
        }
    }

    fn call(&mut self, tool: &'static str, arguments: Value) -> PlannedCall {
        self.calls += 1;
        PlannedCall { id: format!("toolu_{:05}", self.calls), tool, arguments, fails: false }
    }

    fn command(&mut self, command: &str) -> PlannedCall {
        self.call("bash", json!({"command": command}))
    }

    fn read_whole(&mut self, path: &str) -> PlannedCall {
        if !self.read.iter().any(|read| read == path) {
            self.read.push(path.into());
        }
        self.call("read", json!({"path": path}))
    }

    /// Reads all files of the run that the model does not know yet, at least one.
    fn read_focus(&mut self) -> Vec<PlannedCall> {
        let unknown: Vec<String> =
            self.focus.iter().filter(|path| !self.read.contains(path)).cloned().collect();
        let paths = if unknown.is_empty() { self.focus[..1].to_vec() } else { unknown };
        paths.iter().map(|path| self.read_whole(path)).collect()
    }

    fn search(&mut self) -> Vec<PlannedCall> {
        let words = [
            "settle_",
            "rate_of_",
            "expire_invoice",
            "limits\\[",
            "context.log",
            "raise ValueError",
            "quota",
        ];
        let pattern =
            format!("{}{}", self.random.pick(&words), self.random.pick(&["", ".*[37]", ".*1[0-9]2"]));
        let mut arguments = json!({"pattern": pattern, "limit": self.random.within(20..=80)});
        if self.random.percent(50) {
            arguments["path"] = json!(format!("src/{}", self.random.pick(&["billing", "ledger", "search"])));
        }
        self.searches.push(arguments.clone());
        vec![self.call("grep", arguments)]
    }

    /// A file that the run is about, or any.
    fn any_path(&mut self) -> String {
        match self.random.percent(50) {
            true => self.random.pick(&self.focus).clone(),
            false => self.random.pick(&self.tree.paths()).clone(),
        }
    }

    /// A file that has been read, most likely one that the run is about.
    fn known_path(&mut self) -> String {
        let known: Vec<String> = self.focus.iter().filter(|path| self.read.contains(path)).cloned().collect();
        match known.is_empty() || self.random.percent(25) {
            true => self.random.pick(&self.read).clone(),
            false => self.random.pick(&known).clone(),
        }
    }

    /// The first line, from 0, and the number of lines of a part of a file.
    fn line_range(&mut self, path: &str, size: std::ops::RangeInclusive<usize>) -> (usize, usize) {
        let length = self.tree.lines(path).len();
        let count = self.random.within(size).min(length);
        (self.random.within(0..=length - count), count)
    }

    /// Replaces some lines of a known file at this many places.
    fn edit(&mut self, places: usize) -> Vec<PlannedCall> {
        let path = self.defective_path().unwrap_or_else(|| self.known_path());
        let share = self.tree.lines(&path).len() / places;
        // From the end on: a replacement moves what comes after it.
        let parts = (0..places).rev().map(|place| place * share..(place + 1) * share);
        let edits: Vec<LineEdit> = parts.map(|part| self.edit_lines(&path, part, places == 1)).collect();
        let arguments = match &edits[..] {
            [edit] => json!({"path": path, "old_text": edit.old_text, "new_text": edit.new_text}),
            edits => {
                let edit = |edit: &LineEdit| json!({"old_text": edit.old_text, "new_text": edit.new_text});
                json!({"path": path, "edits": edits.iter().map(edit).collect::<Vec<_>>()})
            }
        };
        self.unchanged_since_check = None;
        vec![self.call("edit", arguments)]
    }

    /// A known file with a defect, in most cases where there is one.
    fn defective_path(&mut self) -> Option<String> {
        let defective = |path: &&String| self.tree.has_defect(path);
        let path = self.focus.iter().filter(|path| self.read.contains(path)).find(defective).cloned();
        path.filter(|_| self.random.percent(60))
    }

    /// Replaces up to a dozen lines within a part of a file, around a defect if asked to.
    fn edit_lines(&mut self, path: &str, part: std::ops::Range<usize>, repair: bool) -> LineEdit {
        let lines = self.tree.lines(path);
        let mut count = self.random.within(1..=12).min(part.len());
        let defect = lines.iter().position(|line| line.contains(DEFECT)).filter(|_| repair);
        let mut first = match defect {
            Some(line) => line.saturating_sub(count / 2).min(lines.len() - count),
            None => part.start + self.random.within(0..=part.len() - count),
        };
        // A blank line alone would stand in the file more than once.
        if lines[first..first + count].iter().all(String::is_empty) {
            first = first.saturating_sub(1).max(part.start);
            count = (count + 1).min(part.len());
        }
        let old = self.tree.lines(path)[first..first + count].to_vec();
        let mut new = Vec::new();
        for line in old {
            let keep = line.is_empty() || line.starts_with("def ") || self.random.percent(40);
            new.push(if keep && !line.contains(DEFECT) {
                line
            } else {
                self.tree.statement(&mut self.random)
            });
        }
        let extra = self.tree.statement(&mut self.random);
        new.push(if self.random.percent(8) { format!("{extra}  # {DEFECT}") } else { extra });
        self.tree.replace(path, first, count, new)
    }

    /// Writes a known file anew: half of its functions stay.
    fn rewrite(&mut self) -> Vec<PlannedCall> {
        let path = self.known_path();
        let mut lines = self.tree.lines(&path).to_vec();
        lines.truncate((lines.len() / 2).max(30));
        for _ in 0..self.random.within(2..=6) {
            lines.extend(self.tree.function(&mut self.random));
        }
        self.tree.put(&path, lines);
        self.unchanged_since_check = None;
        let content = self.tree.text(&path);
        vec![self.read_whole(&path), self.call("write", json!({"path": path, "content": content}))]
    }

    fn create_file(&mut self) -> PlannedCall {
        let path = format!("src/ledger/extra_{}.py", self.calls);
        let mut lines = vec![format!("\"\"\"Made in call {}.\"\"\"", self.calls)];
        for _ in 0..self.random.within(3..=9) {
            lines.extend(self.tree.function(&mut self.random));
        }
        self.tree.put(&path, lines);
        self.read.push(path.clone());
        self.focus.push(path.clone());
        self.unchanged_since_check = None;
        let content = self.tree.text(&path);
        self.call("write", json!({"path": path, "content": content}))
    }

    /// Changes a line by a command, and looks at the file again.
    fn edit_by_shell(&mut self) -> Vec<PlannedCall> {
        let path = self.known_path();
        let line = self.random.within(3..=self.tree.lines(&path).len() - 1);
        let text = self.tree.statement(&mut self.random).replace(['"', '[', ']', '*', '&', '\\', '/'], "");
        self.tree.replace(&path, line, 1, vec![text.clone()]);
        let change = self.command(&format!("sed -i '{}s/.*/{text}/' {path}", line + 1));
        vec![change, self.read_whole(&path)]
    }

    /// Runs the tests of the files that the run is about, after a change if there was none since.
    fn check(&mut self) -> Vec<PlannedCall> {
        let path = &self.focus[0];
        let part = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        if self.unchanged_since_check.as_ref() == Some(&part) {
            return self.edit(1);
        }
        let fails = self.tree.has_defect(&part);
        let call = self.command(&format!("sh {CHECK_PATH} {part}"));
        self.unchanged_since_check = Some(part);
        vec![PlannedCall { fails, ..call }]
    }

    /// About this many words.
    fn words(&mut self, count: usize) -> String {
        const WORDS: [&str; 24] = [
            "the", "rate", "is", "read", "before", "its", "limit", "so", "a", "batch", "can", "settle",
            "twice", "and", "this", "change", "keeps", "order", "of", "tickets", "while", "region", "stays",
            "open",
        ];
        let words: Vec<&str> = (0..count).map(|_| *self.random.pick(&WORDS)).collect();
        let mut text = words.join(" ");
        text.push('.');
        text
    }
}
