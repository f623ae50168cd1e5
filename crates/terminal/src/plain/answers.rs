//! What a typed line means as an answer: a number, a letter, or words.

use crate::model::{ApprovalAnswer, ApprovalPrompt, RuleOffer};

/// An answer that an approval offers.
pub(super) struct OfferedAnswer {
    /// What it says.
    pub words: String,
    /// Words that give it, besides its number.
    names: [&'static str; 2],
    answer: ApprovalAnswer,
}

/// The answers that an approval offers, in the order of their numbers.
pub(super) fn offered(prompt: &ApprovalPrompt) -> Vec<OfferedAnswer> {
    let offer = |words: String, names, answer| OfferedAnswer { words, names, answer };
    let mut offered = vec![offer("yes".to_owned(), ["y", "yes"], ApprovalAnswer::Once)];
    if let RuleOffer::Offered(rule) = &prompt.rule {
        offered.push(offer(
            format!("yes, {rule} until you leave"),
            ["s", "session"],
            ApprovalAnswer::Session,
        ));
        offered.push(offer(
            format!("yes, {rule} always in this repository"),
            ["a", "always"],
            ApprovalAnswer::Always,
        ));
    }
    let no = "no; what you type behind it, or instead of a number, is the reason".to_owned();
    offered.push(offer(no, ["n", "no"], ApprovalAnswer::No(None)));
    offered.push(offer("no, and stop".to_owned(), ["stop", "q"], ApprovalAnswer::NoAndStop));
    offered
}

/// What a line answers; none for a number or a letter that is not offered. Only a word that stands
/// alone is a yes: somebody who was typing when the question appeared ("a better idea: …") did not
/// agree.
pub(super) fn approval_answer(line: &str, offered: &[OfferedAnswer]) -> Option<ApprovalAnswer> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let word = word.to_lowercase();
    let is_meant = |index: usize, choice: &OfferedAnswer| {
        word == (index + 1).to_string() || choice.names.contains(&word.as_str())
    };
    let chosen = offered.iter().enumerate().find(|(index, choice)| is_meant(*index, choice));
    let chosen = chosen.map(|(_, choice)| choice);
    match chosen.map(|choice| &choice.answer) {
        Some(ApprovalAnswer::No(_)) => {
            Some(ApprovalAnswer::No(Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty())))
        }
        Some(answer) if rest.is_empty() => Some(answer.clone()),
        None if rest.is_empty() && (word.chars().count() == 1 || is_number(&word)) => None,
        None if matches!(word.as_str(), "session" | "always") && rest.is_empty() => None,
        _ => Some(ApprovalAnswer::No(Some(line.to_owned()))),
    }
}

fn is_number(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit())
}

/// The choice whose number a line is, else the line itself; none for an empty line.
pub(super) fn choice_or_text(line: &str, choices: &[String]) -> Option<String> {
    let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let chosen = number.and_then(|index| choices.get(index).cloned());
    Some(chosen.unwrap_or_else(|| line.to_owned())).filter(|answer| !answer.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::CallKind;

    fn prompt(rule: RuleOffer) -> ApprovalPrompt {
        let kind = CallKind::Command { lines: 1 };
        ApprovalPrompt {
            author: None,
            summary: String::new(),
            id: 1,
            kind,
            model_says: None,
            preview: Vec::new(),
            diff: None,
            rule,
            editable: None,
        }
    }

    #[test]
    fn only_a_word_that_stands_alone_is_a_yes_and_other_words_are_a_no_with_a_reason() {
        let offered = offered(&prompt(RuleOffer::Offered("ls".into())));
        let answer = |line| approval_answer(line, &offered);
        for (line, expected) in [
            (" Y ", ApprovalAnswer::Once),
            ("1", ApprovalAnswer::Once),
            ("2", ApprovalAnswer::Session),
            ("always", ApprovalAnswer::Always),
            ("n", ApprovalAnswer::No(None)),
            ("4 too wide", ApprovalAnswer::No(Some("too wide".into()))),
            ("no: wait", ApprovalAnswer::No(Some("no: wait".into()))),
            ("5", ApprovalAnswer::NoAndStop),
        ] {
            assert_eq!(answer(line), Some(expected), "{line}");
        }
        for line in ["a better idea: use the other file", "s p a c e", "yes but not there", "what?", "1 2"] {
            assert_eq!(answer(line), Some(ApprovalAnswer::No(Some(line.into()))), "{line}");
        }
    }

    #[test]
    fn what_is_not_offered_is_asked_again() {
        let offered = offered(&prompt(RuleOffer::NotOffered(String::new())));
        for line in ["s", "session", "a", "Always", "7", "x"] {
            assert_eq!(approval_answer(line, &offered), None, "{line}");
        }
        assert_eq!(approval_answer("2", &offered), Some(ApprovalAnswer::No(None)));
    }

    #[test]
    fn a_number_is_its_choice_and_other_words_are_themselves() {
        let choices = ["red".to_owned(), "blue".to_owned()];
        let answer = |line| choice_or_text(line, &choices);
        assert_eq!((answer("2"), answer("3")), (Some("blue".into()), Some("3".into())));
        assert_eq!((answer("green"), answer("")), (Some("green".into()), None));
    }
}
