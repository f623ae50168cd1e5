//! [`fit_request`]: finds sizes for the units of a request that add up to what was billed.

/// How far an estimate may be stretched. What remains counts as sent but not recorded.
const MAX_STRETCH: f64 = 2.0;
/// How far an estimate may be shrunk. What remains counts as dropped from earlier units.
const MIN_SHRINK: f64 = 0.5;

/// A unit without a size yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UnsizedUnit {
    pub unit: usize,
    /// Its estimated tokens, from counting its text.
    pub guess: f64,
    /// Its share of the output billed for the answer that it is part of. `None` if it is not part
    /// of one.
    pub billed: Option<f64>,
}

/// The sizes of the units that are new in a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FittedSizes {
    /// The tokens of system prompt and tools. Only for the first request; 0 in others.
    pub system: usize,
    pub sizes: Vec<(usize, usize)>,
    /// Tokens that were billed but are not in the recording.
    pub unrecorded: usize,
    /// Tokens that earlier requests had and that are missing from this one.
    pub excess: usize,
}

/// Fits the sizes of a first request of `total` tokens. What the units do not explain is system
/// prompt and tools.
pub(super) fn fit_first_request(total: usize, fresh: &[UnsizedUnit]) -> FittedSizes {
    let guesses: f64 = fresh.iter().map(|fresh| fresh.guess).sum();
    let scale = (total as f64 * 0.9 / guesses.max(1.0)).min(1.0);
    let sizes = round_sizes(fresh, |fresh| fresh.guess * scale);
    let recorded: usize = sizes.iter().map(|(_, size)| size).sum();
    FittedSizes { system: total.saturating_sub(recorded), sizes, ..FittedSizes::default() }
}

/// Fits the sizes of new units to a request of `total` tokens, of which `known` already have a
/// size. Units of answers get what was billed, the others their estimates, scaled to what remains.
pub(super) fn fit_request(total: usize, known: usize, fresh: &[UnsizedUnit]) -> FittedSizes {
    let guesses: f64 = fresh.iter().map(|fresh| fresh.guess).sum();
    let left = total as f64 - known as f64;
    let billed: f64 = fresh.iter().filter_map(|fresh| fresh.billed).sum();
    let others: f64 = fresh.iter().filter(|fresh| fresh.billed.is_none()).map(|fresh| fresh.guess).sum();
    let as_billed = left - billed;
    let sizes = if others > 0.0 && as_billed >= MIN_SHRINK * others {
        let scale = (as_billed / others).min(MAX_STRETCH);
        round_sizes(fresh, |fresh| fresh.billed.unwrap_or(fresh.guess * scale))
    } else {
        // The answer was not sent back as billed: its reasoning was dropped, or counted differently.
        let scale = (left / guesses.max(1.0)).clamp(MIN_SHRINK, MAX_STRETCH);
        round_sizes(fresh, |fresh| fresh.guess * scale)
    };
    balance(total, known, sizes)
}

/// Makes the sizes add up exactly: rounding errors go to the last unit, larger differences become
/// `unrecorded` or `excess`.
fn balance(total: usize, known: usize, mut sizes: Vec<(usize, usize)>) -> FittedSizes {
    let recorded: usize = sizes.iter().map(|(_, size)| size).sum();
    let count = sizes.len() as i64;
    let missing = total as i64 - (known + recorded) as i64;
    if let Some((_, size)) = sizes.last_mut()
        && missing.abs() <= count
    {
        let fitting = *size as i64 + missing;
        if fitting >= 0 {
            *size = fitting as usize;
            return FittedSizes { sizes, ..FittedSizes::default() };
        }
    }
    FittedSizes { sizes, unrecorded: missing.max(0) as usize, excess: (-missing).max(0) as usize, system: 0 }
}

fn round_sizes(fresh: &[UnsizedUnit], size: impl Fn(&UnsizedUnit) -> f64) -> Vec<(usize, usize)> {
    fresh.iter().map(|fresh| (fresh.unit, size(fresh).round().max(0.0) as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(unit: usize, guess: f64) -> UnsizedUnit {
        UnsizedUnit { unit, guess, billed: None }
    }

    fn answer(unit: usize, guess: f64, billed: f64) -> UnsizedUnit {
        UnsizedUnit { unit, guess, billed: Some(billed) }
    }

    #[test]
    fn the_first_request_leaves_the_rest_to_the_system_prompt() {
        let fitted = fit_first_request(2000, &[guess(1, 300.0)]);
        assert_eq!(fitted, FittedSizes { system: 1700, sizes: vec![(1, 300)], ..FittedSizes::default() });
        assert_eq!(fit_first_request(100, &[guess(1, 300.0)]).system, 10);
    }

    #[test]
    fn an_answer_has_what_was_billed_and_the_rest_is_scaled() {
        let fitted = fit_request(2600, 2000, &[answer(2, 150.0, 100.0), guess(3, 400.0)]);
        assert_eq!(fitted.sizes, [(2, 100), (3, 500)]);
        assert_eq!((fitted.unrecorded, fitted.excess), (0, 0));
    }

    #[test]
    fn reasoning_that_is_not_sent_back_does_not_count() {
        let fitted = fit_request(2300, 2000, &[answer(2, 100.0, 3000.0), guess(3, 200.0)]);
        assert_eq!(fitted.sizes, [(2, 100), (3, 200)]);
    }

    #[test]
    fn what_nothing_explains_is_unrecorded_or_dropped() {
        assert_eq!(fit_request(3000, 2000, &[guess(3, 100.0)]).unrecorded, 800);
        let less = fit_request(1500, 2000, &[guess(3, 100.0)]);
        assert_eq!((less.sizes, less.excess), (vec![(3, 50)], 550));
        assert_eq!(fit_request(2000, 2000, &[]), FittedSizes::default());
    }
}
