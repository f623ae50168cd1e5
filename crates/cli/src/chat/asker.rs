//! Asking in the terminal, line by line: the next line that is typed is the answer.

use futures_util::future::BoxFuture;
use hardpan_agent::Approval;
use hardpan_agent::approval::Rule;
use tokio::sync::{mpsc, oneshot};

use super::approve::{Ask, Verdict};
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
    Verdict(oneshot::Sender<Verdict>),
    /// A line of text.
    Text(oneshot::Sender<Option<String>>),
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
            if self.0.send(Question { text, reply: Reply::Verdict(reply) }).is_err() {
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
        eprintln!("{}", safe_lines(&self.text));
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

/// Takes the answer. What cannot be understood is asked again.
pub fn answer(question: Question, line: &str) -> Option<Question> {
    let line = line.trim();
    let Question { text, reply } = question;
    let reply = match reply {
        Reply::Verdict(reply) => reply,
        Reply::Text(reply) => {
            let _ = reply.send(Some(line.to_owned()).filter(|line| !line.is_empty()));
            return None;
        }
    };
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // Who was typing something else when the question came ("a better idea: …") has not said yes.
    let alone = rest.trim().is_empty();
    let verdict = match word.to_lowercase().as_str() {
        "y" | "yes" if alone => Verdict::Once,
        "s" | "session" if alone => Verdict::Session,
        "a" | "always" if alone => Verdict::Always,
        "n" | "no" if rest.is_empty() => Verdict::No("the person said no".into()),
        "n" | "no" => Verdict::No(format!("the person said no: {rest}")),
        _ => {
            eprintln!("please answer y, s, a or n");
            return Some(Question { text, reply: Reply::Verdict(reply) });
        }
    };
    // The run may have been stopped meanwhile.
    let _ = reply.send(verdict);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<Verdict> {
        let (reply, mut answered) = oneshot::channel();
        answer(Question { text: String::new(), reply: Reply::Verdict(reply) }, line);
        answered.try_recv().ok()
    }

    #[test]
    fn only_a_word_that_stands_alone_is_a_yes() {
        assert_eq!(said(" Y "), Some(Verdict::Once));
        assert_eq!(said("always"), Some(Verdict::Always));
        assert_eq!(said("n too wide"), Some(Verdict::No("the person said no: too wide".into())));
        for line in ["a better idea: use the other file", "s p a c e", "yes but not there", ""] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
