//! Asking in the terminal, line by line: the next line that is typed is the answer.

use futures_util::future::BoxFuture;
use hardpan_agent::Approval;
use hardpan_agent::approval::Rule;
use tokio::sync::{mpsc, oneshot};

use super::approve::{Ask, Verdict};
use super::screen;
use crate::output::safe_lines;

/// Hands questions to whoever reads the terminal.
pub struct Asker(mpsc::UnboundedSender<Question>);

/// A question that waits for its answer.
pub struct Question {
    text: String,
    reply: Reply,
}

/// What is waited for.
enum Reply {
    /// A yes or a no.
    Verdict(Offer, oneshot::Sender<Verdict>),
    /// A line of text.
    Text(oneshot::Sender<Option<String>>),
}

/// What can be answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Offer {
    /// For this call.
    Once,
    /// Also for calls like it.
    Longer,
}

impl Asker {
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Question>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Asker(sender), receiver)
    }
}

impl Ask for Asker {
    fn ask<'a>(&'a self, question: &'a Approval, rule: Option<&'a Rule>) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let text = words(question, rule);
            let offer = if rule.is_some() { Offer::Longer } else { Offer::Once };
            if self.0.send(Question { text, reply: Reply::Verdict(offer, reply) }).is_err() {
                return Verdict::No("nobody is there to ask".into());
            }
            answer.await.unwrap_or_else(|_| Verdict::No("the person did not answer".into()))
        })
    }

    fn input<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let text = format!("{question} (an empty line: never mind)");
            self.0.send(Question { text, reply: Reply::Text(reply) }).ok()?;
            answer.await.ok().flatten()
        })
    }
}

impl Question {
    pub fn show(&self) {
        screen::tell(&safe_lines(&self.text));
    }

    /// Whether somebody still waits for the answer.
    pub fn is_open(&self) -> bool {
        match &self.reply {
            Reply::Verdict(_, reply) => !reply.is_closed(),
            Reply::Text(reply) => !reply.is_closed(),
        }
    }

    /// Whether a command asks, which has more to say once it is answered.
    pub fn is_of_command(&self) -> bool {
        matches!(self.reply, Reply::Text(_))
    }

    /// Whether a line is meant for it. A command is not meant for a yes or a no; a text may begin like one.
    pub fn is_for(&self, line: &str) -> bool {
        self.is_of_command() || !line.trim_start().starts_with(['/', '!'])
    }
}

/// What is asked: the call in full, and what can be said.
fn words(question: &Approval, rule: Option<&Rule>) -> String {
    let arguments = question.args.as_object().into_iter().flatten().map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if value.contains('\n') {
            format!("  {name}:\n{}", indented(&value))
        } else {
            format!("  {name}: {value}")
        }
    });
    let arguments: Vec<String> = arguments.collect();
    let longer =
        rule.map_or_else(String::new, |rule| format!(", [s] {rule} in this conversation, [a] always"));
    format!("{} wants to run:\n{}\n[y]es{longer}, or [n]o and why?", question.tool_name, arguments.join("\n"))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

/// Takes the answer. What a person says instead of one is a no, and the model hears it: it must not be lost, and is no yes.
pub fn answer(question: Question, line: &str) -> Option<Question> {
    let line = line.trim();
    let Question { text, reply } = question;
    let (offer, reply) = match reply {
        Reply::Verdict(offer, reply) => (offer, reply),
        Reply::Text(reply) => {
            let _ = reply.send(Some(line.to_owned()).filter(|line| !line.is_empty()));
            return None;
        }
    };
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // Who was typing something else when the question came ("a better idea: …") has not said yes.
    let verdict = match (word.to_lowercase().as_str(), rest, offer) {
        ("y" | "yes", "", _) => Verdict::Once,
        ("s" | "session", "", Offer::Longer) => Verdict::Session,
        ("a" | "always", "", Offer::Longer) => Verdict::Always,
        ("n" | "no", "", _) => Verdict::No("the person said no".into()),
        ("n" | "no", rest, _) => Verdict::No(format!("the person said no: {}", rest.trim_start())),
        ("" | "s" | "session" | "a" | "always", "", _) => {
            screen::tell(match offer {
                Offer::Once => "please answer y or n",
                Offer::Longer => "please answer y, s, a or n",
            });
            return Some(Question { text, reply: Reply::Verdict(offer, reply) });
        }
        _ => Verdict::No(format!("the person said instead: {line}")),
    };
    // The run may have been stopped meanwhile.
    let _ = reply.send(verdict);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str, offer: Offer) -> Option<Verdict> {
        let (reply, mut answered) = oneshot::channel();
        answer(Question { text: String::new(), reply: Reply::Verdict(offer, reply) }, line);
        answered.try_recv().ok()
    }

    fn no(reason: &str) -> Option<Verdict> {
        Some(Verdict::No(reason.into()))
    }

    #[test]
    fn only_a_word_that_stands_alone_is_a_yes_and_other_words_are_a_no_with_a_reason() {
        assert_eq!(said(" Y ", Offer::Longer), Some(Verdict::Once));
        assert_eq!(said("always", Offer::Longer), Some(Verdict::Always));
        assert_eq!(said("n", Offer::Once), no("the person said no"));
        assert_eq!(said("n too wide", Offer::Longer), no("the person said no: too wide"));
        for line in ["a better idea: use the other file", "s p a c e", "yes but not there", "what?", "y\ny"] {
            assert_eq!(said(line, Offer::Longer), no(&format!("the person said instead: {line}")));
        }
        assert_eq!(said("", Offer::Longer), None);
    }

    #[test]
    fn what_is_not_offered_is_asked_again() {
        for line in ["s", "session", "a", "Always", " "] {
            assert_eq!(said(line, Offer::Once), None, "{line}");
        }
        assert_eq!(said("y", Offer::Once), Some(Verdict::Once));
    }

    #[test]
    fn a_command_is_no_answer_to_a_yes_or_no() {
        let (reply, _answered) = oneshot::channel();
        let question = Question { text: String::new(), reply: Reply::Verdict(Offer::Once, reply) };
        assert!(!question.is_for("/queue") && !question.is_for("!ls") && question.is_for("no: /tmp is full"));
        let (reply, _answered) = oneshot::channel();
        assert!(Question { text: String::new(), reply: Reply::Text(reply) }.is_for("/a/path"));
    }
}
