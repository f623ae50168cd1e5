use hardpan_prompt::{Effort, Thinking};

use super::*;
use crate::Catalogue;

fn request(model: &str, setting: &str) -> (Thinking, Option<Effort>, Option<ThinkingSubstitution>) {
    let model = Catalogue::builtin().model(None, model).unwrap();
    let request = model.thinking.request(setting.parse().unwrap(), 32_000);
    (request.thinking, request.effort, request.substitution)
}

fn sent(model: &str, setting: &str) -> (Thinking, Option<Effort>) {
    let (thinking, effort, _) = request(model, setting);
    (thinking, effort)
}

#[test]
fn a_setting_survives_its_text() {
    for text in ["default", "off", "minimal", "low", "medium", "high", "xhigh", "max", "8000"] {
        assert_eq!(text.parse::<ThinkingSetting>().unwrap().to_string(), text);
    }
    assert_eq!("0".parse(), Ok(ThinkingSetting::Off));
    let error = "huge".parse::<ThinkingSetting>().unwrap_err().to_string();
    assert!(error.starts_with("\"huge\" is no thinking level; the levels are off, minimal, low"), "{error}");
}

#[test]
fn the_default_is_what_the_model_does_by_itself_made_explicit() {
    assert_eq!(sent("claude-sonnet-5-5", "default"), (Thinking::Adaptive, Some(Effort::High)));
    assert_eq!(sent("claude-opus-5-5", "default"), (Thinking::Adaptive, Some(Effort::Medium)));
    assert_eq!(sent("claude-opus-4-8", "default"), (Thinking::Unspecified, Some(Effort::High)));
    assert_eq!(sent("claude-haiku-4-5", "default"), (Thinking::Unspecified, None));
    assert_eq!(sent("claude-sonnet-99", "default"), (Thinking::Unspecified, None));
}

#[test]
fn off_is_the_least_that_each_model_takes() {
    assert_eq!(sent("claude-sonnet-5-5", "off"), (Thinking::BetweenTools, Some(Effort::High)));
    assert_eq!(sent("claude-haiku-5-5", "off"), (Thinking::Disabled, Some(Effort::Medium)));
    assert_eq!(sent("claude-sonnet-5", "off"), (Thinking::Disabled, Some(Effort::High)));
    assert_eq!(sent("claude-haiku-4-5", "off"), (Thinking::Unspecified, None));
    let always = Some(ThinkingSubstitution::AlwaysThinks { effort: Some(Effort::Low) });
    assert_eq!(request("claude-opus-5-5", "off"), (Thinking::Adaptive, Some(Effort::Low), always));
    assert_eq!(sent("gpt-6-sol", "off"), (Thinking::Unspecified, Some(Effort::None)));
    assert_eq!(sent("gpt-6.1-sol", "off").1, Some(Effort::Low));
    assert_eq!(sent("gemini-2.5-flash", "off"), (Thinking::Disabled, None));
}

#[test]
fn a_level_becomes_the_nearest_form() {
    assert_eq!(request("claude-sonnet-5-5", "xhigh"), (Thinking::Adaptive, Some(Effort::XHigh), None));
    let (thinking, effort, instead) = request("claude-opus-4-6", "xhigh");
    assert_eq!((thinking, effort), (Thinking::Adaptive, Some(Effort::High)));
    let words = instead.unwrap().to_string();
    assert_eq!(words, "this model has no effort xhigh; high is used");
    assert_eq!(sent("claude-haiku-4-5", "medium"), (Thinking::Budget(10_000), None));
    assert_eq!(sent("claude-haiku-4-5", "max"), (Thinking::Budget(16_000), None), "half of the answer");
    assert_eq!(request("claude-opus-4-5", "high"), (Thinking::Budget(16_000), Some(Effort::High), None));
    let cannot = Some(ThinkingSubstitution::CannotBeSet);
    assert_eq!(request("mistral-large-latest", "high"), (Thinking::Unspecified, None, cannot));
    assert_eq!(request("mistral-large-latest", "off").2, None, "nothing was asked for");
}

#[test]
fn a_budget_becomes_an_effort_where_the_model_takes_none() {
    assert_eq!(sent("claude-sonnet-4-6", "8000"), (Thinking::Budget(8000), Some(Effort::High)));
    let (thinking, effort, instead) = request("claude-sonnet-5-5", "8000");
    assert_eq!((thinking, effort), (Thinking::Adaptive, Some(Effort::Medium)));
    let words = "this model takes no thinking budget; effort medium is used for 8000 tokens";
    assert_eq!(instead.unwrap().to_string(), words);
    assert_eq!(sent("claude-opus-5-5", "100000").1, Some(Effort::Max));
}
