//! A [`Dialog`] as a question for a line of text, for faces that have nothing better.

use hardpan_agent::events::{Dialog, DialogAnswer};

use crate::approval::is_yes;

/// The question, with who asks it.
pub fn question_text(owner: &str, dialog: &Dialog) -> String {
    let mut text = format!("{owner}: {}", dialog.title());
    match dialog {
        Dialog::Confirm { message, .. } => {
            if let Some(message) = message {
                text.push_str(&format!("\n{message}"));
            }
            text.push_str("\n[y]es, [N]o");
        }
        Dialog::Select { choices, .. } => {
            for (at, choice) in choices.iter().enumerate() {
                text.push_str(&format!("\n{}. {choice}", at + 1));
            }
            text.push_str("\nNumber of your choice");
        }
        Dialog::Input { placeholder: Some(hint), .. } => text.push_str(&format!(" ({hint})")),
        Dialog::Editor { text: given, .. } if !given.is_empty() => text.push_str(&format!(" ({given})")),
        Dialog::Input { .. } | Dialog::Editor { .. } => {}
    }
    text
}

/// What the line that was typed means; none if it answers nothing.
pub fn answer_of(dialog: &Dialog, line: String) -> Option<DialogAnswer> {
    match dialog {
        Dialog::Confirm { .. } => Some(DialogAnswer::Confirmed(is_yes(&line))),
        Dialog::Select { choices, .. } => chosen(&line, choices).cloned().map(DialogAnswer::Text),
        Dialog::Input { .. } | Dialog::Editor { .. } => Some(DialogAnswer::Text(line)),
    }
}

/// The choice that a number or its own text names.
fn chosen<'a>(line: &str, choices: &'a [String]) -> Option<&'a String> {
    let line = line.trim();
    let by_number = line.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    by_number.or_else(|| choices.iter().find(|choice| *choice == line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_named_by_its_number_or_its_text() {
        let choices = ["Allow", "Block", "2 of them"].map(str::to_owned);
        let named = |line| chosen(line, &choices).map(String::as_str);
        assert_eq!(named(" 2 "), Some("Block"));
        assert_eq!(named("Allow"), Some("Allow"));
        assert_eq!(named("2 of them"), Some("2 of them"));
        assert_eq!([named("0"), named("7"), named("")], [None, None, None]);
    }
}
