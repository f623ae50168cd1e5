//! [`SourceTree`]: generated source files, and what the planned edits make of them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::Random;

const GROUPS: [&str; 6] = ["billing", "catalogue", "delivery", "ledger", "search", "storage"];
const NOUNS: [&str; 16] = [
    "invoice", "parcel", "tariff", "shelf", "voucher", "courier", "index", "account", "batch", "cursor",
    "quota", "refund", "region", "snapshot", "ticket", "window",
];
const VERBS: [&str; 12] = [
    "settle", "route", "collect", "merge", "expire", "reserve", "rank", "resolve", "split", "verify",
    "publish", "load",
];

/// The word that makes a test fail while it stands in a function.
pub(super) const DEFECT: &str = "FIXME";

/// The files of a repository: paths with forward slashes, and lines.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceTree {
    files: BTreeMap<String, Vec<String>>,
    /// Counts up with every line, so that no line occurs twice.
    next_line: usize,
}

/// A replacement of neighbouring lines.
pub(super) struct LineEdit {
    pub old_text: String,
    pub new_text: String,
}

impl SourceTree {
    /// This many modules of 60 to 400 lines, in folders by subject.
    pub(super) fn generate(random: &mut Random, modules: usize) -> Self {
        let mut tree = SourceTree { files: BTreeMap::new(), next_line: 0 };
        for module in 0..modules {
            let group = GROUPS[module % GROUPS.len()];
            let path = format!("src/{group}/{}_{module}.py", random.pick(&NOUNS));
            let lines = random.within(60..=400);
            let text = tree.module(random, group, lines);
            tree.files.insert(path, text);
        }
        tree
    }

    fn module(&mut self, random: &mut Random, group: &str, length: usize) -> Vec<String> {
        let subject = *random.pick(&NOUNS);
        let mut lines =
            vec![format!("\"\"\"Part of {group}: everything about the {subject}.\"\"\""), String::new()];
        lines.push(format!("from {group}.core import limits, rate_of_{subject}"));
        while lines.len() < length {
            lines.extend(self.function(random));
        }
        lines.truncate(length);
        lines
    }

    /// A function with a name of its own.
    pub(super) fn function(&mut self, random: &mut Random) -> Vec<String> {
        let (verb, noun) = (*random.pick(&VERBS), *random.pick(&NOUNS));
        let number = self.next_line;
        let mut lines = vec![String::new(), format!("def {verb}_{noun}_{number}({noun}, amount, context):")];
        for _ in 0..random.within(4..=22) {
            let line = self.statement(random);
            lines.push(line);
        }
        lines.push(format!("    return {noun}_{number}_total"));
        self.next_line += 1;
        lines
    }

    /// A line that stands nowhere else.
    pub(super) fn statement(&mut self, random: &mut Random) -> String {
        let (verb, noun, other) = (*random.pick(&VERBS), *random.pick(&NOUNS), *random.pick(&NOUNS));
        let (number, value) = (self.next_line, random.within(2..=97));
        self.next_line += 1;
        match random.within(0..=5) {
            0 => format!("    {noun}_{number} = {verb}_{other}(amount * {value}, limits[\"{other}\"])"),
            1 => format!(
                "    if context.{noun} > {value}: raise ValueError(\"{noun} {number} is over {value}\")"
            ),
            2 => format!("    {noun}_{number} = [{other}.{verb}() for {other} in context.{noun}s[:{value}]]"),
            3 => format!("    context.log(\"{verb} {noun} {number}\", {other}, share=0.{value})"),
            4 => format!("    # {verb} the {noun} before the {other}: see note {number}"),
            _ => format!("    {noun}_{number} = rate_of_{noun}({other}) + 0.{value}"),
        }
    }

    /// The paths of the files, sorted.
    pub fn paths(&self) -> Vec<String> {
        self.files.keys().cloned().collect()
    }

    /// The lines of a file.
    pub(super) fn lines(&self, path: &str) -> &[String] {
        self.files.get(path).map(Vec::as_slice).unwrap_or_default()
    }

    /// The content of a file.
    pub fn text(&self, path: &str) -> String {
        self.lines(path).iter().map(|line| format!("{line}\n")).collect()
    }

    /// Replaces a file, or makes one.
    pub(super) fn put(&mut self, path: &str, lines: Vec<String>) {
        self.files.insert(path.into(), lines);
    }

    /// Replaces `count` lines from `first` on by these, and says it as an edit.
    pub(super) fn replace(&mut self, path: &str, first: usize, count: usize, with: Vec<String>) -> LineEdit {
        let file = self.files.get_mut(path).expect("planned edits name files of the tree");
        let join = |lines: &[String]| lines.join("\n");
        let old_text = join(&file[first..first + count]);
        let new_text = join(&with);
        file.splice(first..first + count, with);
        LineEdit { old_text, new_text }
    }

    /// Whether a test of one of these files fails: a function in it has a defect.
    pub(super) fn has_defect(&self, path_part: &str) -> bool {
        let mut files = self.files.iter().filter(|(path, _)| path.contains(path_part));
        files.any(|(_, lines)| lines.iter().any(|line| line.contains(DEFECT)))
    }

    /// Writes all files below this folder.
    pub fn write(&self, root: &Path) -> io::Result<()> {
        for path in self.files.keys() {
            let full = root.join(path);
            fs::create_dir_all(full.parent().expect("it is below the root"))?;
            fs::write(full, self.text(path))?;
        }
        Ok(())
    }

    /// The files that are not on the disk as planned.
    pub fn differences(&self, root: &Path) -> Vec<String> {
        let differs = |path: &String| {
            fs::read_to_string(root.join(path)).ok().is_none_or(|text| text != self.text(path))
        };
        self.files.keys().filter(|path| differs(path)).cloned().collect()
    }
}
