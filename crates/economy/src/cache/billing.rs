//! What is billed, and why.

use serde::Serialize;

use crate::Amounts;
use crate::cache::Moment;

/// What a request is billed, and how that came about. [`Rates::dollars`](crate::Rates::dollars) prices the amounts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Billing {
    /// The request's tokens by how they are billed: they add up to all of them.
    ///
    /// An automatic cache "writes" at the price of input, as does [`quote`](crate::quote()).
    pub amounts: Amounts,
    /// The entry that was read.
    pub hit: Option<Hit>,
    /// The walks that were made, in the order they were made: from the last marker on, until one hit. An automatic
    /// cache makes one, from the last block.
    pub looks: Vec<Look>,
}

impl Billing {
    pub(super) fn plain(total: usize) -> Self {
        Billing { amounts: Amounts { input: total, ..Amounts::default() }, hit: None, looks: Vec::new() }
    }

    /// All tokens of the request.
    pub fn total(&self) -> usize {
        let Amounts { input, read, write, write_1h } = self.amounts;
        input + read + write + write_1h
    }

    /// The last block whose entry the request uses.
    pub(super) fn refreshed_through(&self) -> Option<usize> {
        self.hit.map(|hit| hit.block)
    }
}

/// The entry that a request reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The last block it covers.
    pub block: usize,
    /// The tokens read: fewer than up to the block's end where a cache keeps whole steps.
    pub tokens: usize,
    /// How long ago the request that wrote it began, in milliseconds.
    pub age_ms: i64,
    /// How long ago the last request that wrote or read it began, in milliseconds.
    pub idle_ms: i64,
    /// When it would have expired if this request had not come. `None`: nobody says.
    pub expires: Option<Moment>,
}

/// One walk back from a marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Look {
    /// The marked block.
    pub marker: usize,
    /// The furthest block that was checked. `None`: none was.
    pub back_to: Option<usize>,
    /// How it ended.
    pub outcome: Outcome,
    /// The checked blocks where an entry ends or, within the last day, has ended; the last block first. At the other
    /// checked blocks no entry was ever written.
    pub found: Vec<(usize, State)>,
}

impl Look {
    pub(super) fn without_walk(marker: usize, outcome: Outcome) -> Self {
        Look { marker, back_to: None, outcome, found: Vec::new() }
    }
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// At an entry that was read.
    Hit {
        /// The last block it covers.
        block: usize,
    },
    /// Nowhere.
    Missed {
        /// The last readable entry that was out of reach: more positions back than the provider looks.
        beyond: Option<usize>,
    },
    /// The prefix is smaller than the provider keeps: nothing is read or written, and no error is raised.
    BelowMinimum {
        /// The prefix in tokens.
        tokens: usize,
        /// The smallest that is kept.
        minimum: usize,
    },
    /// The block cannot hold a marker.
    Unmarkable,
}

/// An entry as a request finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It can be read.
    Readable,
    /// Its lifetime was over at this moment.
    Expired(Moment),
    /// The answer of the request that wrote it had not begun; it did at this moment.
    NotYet(Moment),
}
