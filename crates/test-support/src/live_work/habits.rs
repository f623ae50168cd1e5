//! [`Habits`]: what a model does how often in each kind of work.

use std::ops::RangeInclusive;

use super::plan::WorkKind;

/// Something that a model does in one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    ReadWhole,
    ReadAgain,
    ReadPart,
    Edit,
    EditTwice,
    Rewrite,
    CreateFile,
    EditByShell,
    Search,
    SearchAgain,
    FindFiles,
    Check,
    Diff,
    Status,
    Cat,
    PrintLines,
    ShowCommitted,
}

/// How often each act occurs, and how many files a run works on.
pub(super) struct Habits {
    pub acts: &'static [(usize, Act)],
    /// Files of the repository.
    pub modules: usize,
    pub files_per_run: RangeInclusive<usize>,
    /// How many of a hundred answers make several calls at once.
    pub parallel: usize,
}

impl Habits {
    /// The habits of a kind of work.
    pub fn of(kind: WorkKind) -> Self {
        match kind {
            WorkKind::Edit => EDIT,
            WorkKind::TestLoop => TEST_LOOP,
            WorkKind::Explore => EXPLORE,
        }
    }
}

const EDIT: Habits = Habits {
    acts: &[
        (24, Act::Edit),
        (10, Act::EditTwice),
        (3, Act::Rewrite),
        (3, Act::CreateFile),
        (3, Act::EditByShell),
        (9, Act::ReadAgain),
        (15, Act::ReadWhole),
        (9, Act::ReadPart),
        (5, Act::Search),
        (3, Act::SearchAgain),
        (8, Act::Check),
        (4, Act::Diff),
        (2, Act::Status),
        (2, Act::PrintLines),
    ],
    modules: 42,
    files_per_run: 3..=5,
    parallel: 20,
};

const TEST_LOOP: Habits = Habits {
    acts: &[
        (38, Act::Check),
        (24, Act::Edit),
        (4, Act::EditTwice),
        (12, Act::ReadAgain),
        (6, Act::ReadWhole),
        (5, Act::ReadPart),
        (4, Act::SearchAgain),
        (3, Act::Diff),
        (2, Act::Status),
        (2, Act::PrintLines),
    ],
    modules: 36,
    files_per_run: 2..=4,
    parallel: 12,
};

const EXPLORE: Habits = Habits {
    acts: &[
        (18, Act::ReadWhole),
        (26, Act::ReadAgain),
        (10, Act::ReadPart),
        (8, Act::Search),
        (10, Act::SearchAgain),
        (4, Act::FindFiles),
        (8, Act::Cat),
        (5, Act::PrintLines),
        (5, Act::ShowCommitted),
        (4, Act::Edit),
        (2, Act::Check),
    ],
    modules: 60,
    files_per_run: 5..=8,
    parallel: 25,
};
