//! Sizes of what was said, so that every request is as large as it was billed.

/// How far a guess may be stretched before the rest is taken for something that was not recorded.
const STRETCH: f64 = 2.0;
/// How far a guess may be shrunk before something is taken to have been dropped.
const SHRINK: f64 = 0.5;

/// A unit without a size yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fresh {
    pub unit: usize,
    /// Its tokens by count.
    pub guess: f64,
    /// Its tokens by the bill of the answer it is part of.
    pub billed: Option<f64>,
}

/// Sizes found.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fitted {
    /// The system prompt and the tools: only for the first request, which has what the rest leaves over.
    pub system: usize,
    pub sizes: Vec<(usize, usize)>,
    /// Tokens that were billed and not recorded.
    pub unrecorded: usize,
    /// Tokens that earlier requests had and this one lacks, beyond what the fresh units explain.
    pub excess: usize,
}

/// Fits the sizes of the first request, of `total` tokens: what nobody said is the system prompt and the tools.
pub(super) fn fit_first(total: usize, fresh: &[Fresh]) -> Fitted {
    let guesses: f64 = fresh.iter().map(|fresh| fresh.guess).sum();
    let scale = (total as f64 * 0.9 / guesses.max(1.0)).min(1.0);
    let sizes = rounded(fresh, |fresh| fresh.guess * scale);
    let said: usize = sizes.iter().map(|(_, size)| size).sum();
    Fitted { system: total.saturating_sub(said), sizes, ..Fitted::default() }
}

/// Fits the sizes of fresh units to a request of `total` tokens, of which `known` have a size: those of answers as billed,
/// the others by guess, scaled to what is left.
pub(super) fn fit(total: usize, known: usize, fresh: &[Fresh]) -> Fitted {
    let guesses: f64 = fresh.iter().map(|fresh| fresh.guess).sum();
    let left = total as f64 - known as f64;
    let billed: f64 = fresh.iter().filter_map(|fresh| fresh.billed).sum();
    let others: f64 = fresh.iter().filter(|fresh| fresh.billed.is_none()).map(|fresh| fresh.guess).sum();
    let as_billed = left - billed;
    let sizes = if others > 0.0 && as_billed >= SHRINK * others {
        let scale = (as_billed / others).min(STRETCH);
        rounded(fresh, |fresh| fresh.billed.unwrap_or(fresh.guess * scale))
    } else {
        // The answer was not sent back whole: reasoning is dropped, or the output was counted otherwise.
        let scale = (left / guesses.max(1.0)).clamp(SHRINK, STRETCH);
        rounded(fresh, |fresh| fresh.guess * scale)
    };
    settle(total, known, sizes)
}

/// Makes the sizes exact: rounding goes to the last unit, the rest to what is not recorded or was dropped.
fn settle(total: usize, known: usize, mut sizes: Vec<(usize, usize)>) -> Fitted {
    let said: usize = sizes.iter().map(|(_, size)| size).sum();
    let count = sizes.len() as i64;
    let missing = total as i64 - (known + said) as i64;
    if let Some((_, size)) = sizes.last_mut()
        && missing.abs() <= count
    {
        let fitting = *size as i64 + missing;
        if fitting >= 0 {
            *size = fitting as usize;
            return Fitted { sizes, ..Fitted::default() };
        }
    }
    Fitted { sizes, unrecorded: missing.max(0) as usize, excess: (-missing).max(0) as usize, system: 0 }
}

fn rounded(fresh: &[Fresh], size: impl Fn(&Fresh) -> f64) -> Vec<(usize, usize)> {
    fresh.iter().map(|fresh| (fresh.unit, size(fresh).round().max(0.0) as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(unit: usize, guess: f64) -> Fresh {
        Fresh { unit, guess, billed: None }
    }

    fn answer(unit: usize, guess: f64, billed: f64) -> Fresh {
        Fresh { unit, guess, billed: Some(billed) }
    }

    #[test]
    fn the_first_request_leaves_the_rest_to_the_system_prompt() {
        let fitted = fit_first(2000, &[guess(1, 300.0)]);
        assert_eq!(fitted, Fitted { system: 1700, sizes: vec![(1, 300)], ..Fitted::default() });
        assert_eq!(fit_first(100, &[guess(1, 300.0)]).system, 10);
    }

    #[test]
    fn an_answer_has_what_was_billed_and_the_rest_is_scaled() {
        let fitted = fit(2600, 2000, &[answer(2, 150.0, 100.0), guess(3, 400.0)]);
        assert_eq!(fitted.sizes, [(2, 100), (3, 500)]);
        assert_eq!((fitted.unrecorded, fitted.excess), (0, 0));
    }

    #[test]
    fn reasoning_that_is_not_sent_back_does_not_count() {
        let fitted = fit(2300, 2000, &[answer(2, 100.0, 3000.0), guess(3, 200.0)]);
        assert_eq!(fitted.sizes, [(2, 100), (3, 200)]);
    }

    #[test]
    fn what_nothing_explains_is_unrecorded_or_dropped() {
        assert_eq!(fit(3000, 2000, &[guess(3, 100.0)]).unrecorded, 800);
        let less = fit(1500, 2000, &[guess(3, 100.0)]);
        assert_eq!((less.sizes, less.excess), (vec![(3, 50)], 550));
        assert_eq!(fit(2000, 2000, &[]), Fitted::default());
    }
}
