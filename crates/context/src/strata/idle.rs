//! What `keep = "lean"` pages out: results that have not been used for long.
//!
//! A result that stays costs rent with every request to come. One that is paged out costs a recall if
//! it is needed again: its tokens are written once more, and one more request reads the context. How
//! likely that is, the conversation itself tells: of everything that had not been used for so long,
//! which share was used again?

use hardpan_economy::Rates;
use hardpan_economy::folds::HORIZON_SHARE;
use hardpan_prompt::{Hash, MessageId};
use rustc_hash::FxHashMap;

use crate::layout::LayoutInput;

/// What has been used within so many answers is in use.
const MIN_IDLE: usize = 12;

/// Shorter results are not worth a line of their own.
const MIN_TOKENS: usize = 150;

/// What a result is about: results about the same thing are uses of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject<'a> {
    /// A file, by path.
    File(&'a str),
    /// A call, by the name of its tool and its arguments.
    Call(&'a str, Hash),
}

/// When the subjects of a conversation were used, in answers of the model.
#[derive(Default)]
pub struct Uses<'a> {
    last: FxHashMap<Subject<'a>, usize>,
    gaps: Vec<usize>,
    subjects: FxHashMap<&'a MessageId, Subject<'a>>,
}

impl<'a> Uses<'a> {
    /// Records that a message used a subject after so many answers.
    pub fn record(&mut self, message: &'a MessageId, subject: Subject<'a>, answers: usize) {
        if let Some(before) = self.last.insert(subject, answers) {
            self.gaps.push(answers - before);
        }
        self.subjects.insert(message, subject);
    }

    /// What a message was about.
    pub fn subject_of(&self, message: &MessageId) -> Option<(&'a MessageId, Subject<'a>)> {
        self.subjects.get_key_value(message).map(|(message, subject)| (*message, *subject))
    }

    /// The rule after so many answers, for a prompt of so many tokens.
    pub fn rule(self, input: &LayoutInput<'_>, answers: usize, tokens: usize) -> IdleRule<'a> {
        let (read, write) =
            Rates::for_model(&input.target.model, &input.target.profile, tokens as u64).ratios();
        let mut idle: Vec<usize> = self.last.values().map(|last| answers - last).collect();
        let mut gaps = self.gaps;
        idle.sort_unstable();
        gaps.sort_unstable();
        IdleRule { last: self.last, idle, gaps, answers, read, write, recall_request: read * tokens as f64 }
    }
}

/// Decides what is paged out.
pub struct IdleRule<'a> {
    last: FxHashMap<Subject<'a>, usize>,
    /// For how many answers each subject has not been used, in order.
    idle: Vec<usize>,
    /// For how many answers a subject had not been used when it was used again, in order.
    gaps: Vec<usize>,
    answers: usize,
    read: f64,
    write: f64,
    /// What one more request costs, to recall something.
    recall_request: f64,
}

impl IdleRule<'_> {
    /// Whether it pays to page out so many tokens about a subject.
    pub fn pays(&self, subject: Subject<'_>, tokens: usize) -> bool {
        let idle = self.last.get(&subject).map_or(0, |last| self.answers - last);
        if idle < MIN_IDLE || tokens < MIN_TOKENS {
            return false;
        }
        let rent = self.read * tokens as f64 * HORIZON_SHARE * self.answers as f64;
        rent > self.chance_of_use(idle) * (self.write * tokens as f64 + self.recall_request)
    }

    /// How likely something is used again that has not been used for so long. One imaginary subject
    /// counts half for either outcome, since a conversation begins without any.
    fn chance_of_use(&self, idle: usize) -> f64 {
        let at_least = |sorted: &[usize]| (sorted.len() - sorted.partition_point(|one| *one < idle)) as f64;
        let again = at_least(&self.gaps);
        (again + 0.5) / (again + at_least(&self.idle) + 1.0)
    }
}
