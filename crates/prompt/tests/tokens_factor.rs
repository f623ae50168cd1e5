//! The factor against what a provider really billed.

use hardpan_prompt::TokenFactor;
use serde::Deserialize;

#[derive(Deserialize)]
struct Series {
    pairs: Vec<(u64, u64)>,
}

fn recorded() -> Vec<(u64, u64)> {
    let series: Series = serde_json::from_str(include_str!("recorded_series.json")).expect("a series");
    series.pairs
}

/// How far each prediction is off, as a share of what was then billed.
fn errors(mut factor: TokenFactor, pairs: &[(u64, u64)]) -> Vec<f64> {
    let miss = |&(counted, billed): &(u64, u64)| {
        let predicted = factor.scale(counted as usize) as f64;
        factor.learn(counted, billed);
        (predicted - billed as f64).abs() / billed as f64
    };
    pairs.iter().map(miss).collect()
}

#[test]
fn it_converges_on_a_recorded_series_from_any_sensible_prior() {
    for prior in [0.8, 1.0, 1.2, 1.5, 2.0] {
        let errors = errors(TokenFactor::new(prior), &recorded());
        let late = &errors[20..];
        let worst = late.iter().copied().fold(0.0, f64::max);
        let mean = late.iter().sum::<f64>() / late.len() as f64;
        assert!(worst < 0.02, "from {prior}: worst {worst:.4} in {errors:.3?}");
        assert!(mean < 0.005, "from {prior}: mean {mean:.4}");
    }
}

#[test]
fn a_good_prior_is_right_from_the_start() {
    // Not the very first: 48 tokens of conversation after 1,640 of a system prompt that is not
    // recorded.
    let errors = errors(TokenFactor::new(1.3), &recorded());
    assert!(errors[3..].iter().all(|&error| error < 0.05), "{errors:.3?}");
}

#[test]
fn a_wrong_bill_in_between_is_forgotten() {
    let mut pairs = recorded();
    pairs[30].1 *= 10;
    let errors = errors(TokenFactor::new(1.3), &pairs);
    assert!(errors[31] < 0.15, "{}", errors[31]);
    assert!(errors[40..].iter().all(|&error| error < 0.02), "{errors:.3?}");
}
