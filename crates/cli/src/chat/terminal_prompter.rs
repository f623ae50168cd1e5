//! [`TerminalPrompter`]: asks the user in the terminal. The next line that they type is the answer.

use futures_util::future::BoxFuture;
use hardpan_agent::ApprovalRequest;
use hardpan_agent::approval::ApprovalRule;
use hardpan_app::approval::{ApprovalVerdict, UserPrompter};
use tokio::sync::{mpsc, oneshot};

use super::approval_question::{ApprovalQuestion, ScreenSize, framed};
use super::screen;
use crate::output::safe;

/// Sends questions to the interactive session, which shows them and reads the answers.
pub struct TerminalPrompter(mpsc::UnboundedSender<UserQuestion>);

/// A question that waits for the user's answer.
pub struct UserQuestion {
    /// What is asked, every line behind the frame.
    text: String,
    /// The same with all of a long call. None if `text` shows all of it.
    whole: Option<String>,
    reply: ReplyChannel,
}

/// Where the answer goes.
enum ReplyChannel {
    /// To a tool call that waits for approval.
    Verdict(OfferedScope, oneshot::Sender<ApprovalVerdict>),
    /// To a slash command that waits for a line of text.
    Text(oneshot::Sender<Option<String>>),
}

/// The answers that a question offers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OfferedScope {
    /// Yes for this call, or no.
    Once,
    /// Also yes for calls that a rule covers.
    OnceOrRule,
}

impl TerminalPrompter {
    pub fn new() -> (Self, mpsc::UnboundedReceiver<UserQuestion>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (TerminalPrompter(sender), receiver)
    }
}

impl UserPrompter for TerminalPrompter {
    fn ask_approval<'a>(
        &'a self,
        question: &'a ApprovalRequest,
        rule: Option<&'a ApprovalRule>,
    ) -> BoxFuture<'a, ApprovalVerdict> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let (width, height) = screen::screen_size();
            let ApprovalQuestion { text, whole } =
                ApprovalQuestion::new(question, rule, ScreenSize { width, height });
            let offer = if rule.is_some() { OfferedScope::OnceOrRule } else { OfferedScope::Once };
            if self.0.send(UserQuestion { text, whole, reply: ReplyChannel::Verdict(offer, reply) }).is_err()
            {
                return ApprovalVerdict::No("nobody is there to ask".into());
            }
            answer.await.unwrap_or_else(|_| ApprovalVerdict::No("the person did not answer".into()))
        })
    }

    fn ask_text<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let asked = format!("{question} (an empty line cancels)");
            let text = framed(&asked.lines().map(safe).collect::<Vec<_>>());
            self.0.send(UserQuestion { text, whole: None, reply: ReplyChannel::Text(reply) }).ok()?;
            answer.await.ok().flatten()
        })
    }
}

impl UserQuestion {
    pub fn show(&self) {
        screen::print_question(&self.text);
    }

    /// Whether the asker still waits: a run that was stopped does not.
    pub fn is_open(&self) -> bool {
        match &self.reply {
            ReplyChannel::Verdict(_, reply) => !reply.is_closed(),
            ReplyChannel::Text(reply) => !reply.is_closed(),
        }
    }

    /// Whether a slash command asks. It prints more once it has the answer.
    pub fn is_from_command(&self) -> bool {
        matches!(self.reply, ReplyChannel::Text(_))
    }

    /// Whether a typed line answers this question. A slash command is no answer to a yes-or-no
    /// question, but a text may begin with a slash.
    pub fn is_for(&self, line: &str) -> bool {
        self.is_from_command() || !line.trim_start().starts_with(['/', '!'])
    }
}

/// Delivers the user's answer, or returns the question if the line answers nothing. Any other text
/// counts as a no and goes to the model as the reason.
pub fn answer_question(question: UserQuestion, line: &str) -> Option<UserQuestion> {
    let line = line.trim();
    let UserQuestion { text, whole, reply } = question;
    let (offer, reply) = match reply {
        ReplyChannel::Verdict(offer, reply) => (offer, reply),
        ReplyChannel::Text(reply) => {
            let _ = reply.send(Some(line.to_owned()).filter(|line| !line.is_empty()));
            return None;
        }
    };
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    // Somebody who was typing when the question appeared ("a better idea: …") did not say yes.
    let verdict = match (word.to_lowercase().as_str(), rest, offer) {
        ("v" | "view", "", _) if whole.is_some() => {
            whole.iter().for_each(|whole| screen::print_question(whole));
            return Some(UserQuestion { text, whole, reply: ReplyChannel::Verdict(offer, reply) });
        }
        ("y" | "yes", "", _) => ApprovalVerdict::Once,
        ("s" | "session", "", OfferedScope::OnceOrRule) => ApprovalVerdict::Session,
        ("a" | "always", "", OfferedScope::OnceOrRule) => ApprovalVerdict::Always,
        ("n" | "no", "", _) => ApprovalVerdict::No("the person said no".into()),
        ("n" | "no", rest, _) => ApprovalVerdict::No(format!("the person said no: {}", rest.trim_start())),
        ("" | "s" | "session" | "a" | "always", "", _) => {
            screen::print_lines(match offer {
                OfferedScope::Once => "please answer y or n",
                OfferedScope::OnceOrRule => "please answer y, s, a or n",
            });
            return Some(UserQuestion { text, whole, reply: ReplyChannel::Verdict(offer, reply) });
        }
        _ => ApprovalVerdict::No(format!("the person said instead: {line}")),
    };
    // Fails if the run was stopped in the meantime.
    let _ = reply.send(verdict);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_of(line: &str, offer: OfferedScope) -> Option<ApprovalVerdict> {
        let (reply, mut answered) = oneshot::channel();
        answer_question(
            UserQuestion { text: String::new(), whole: None, reply: ReplyChannel::Verdict(offer, reply) },
            line,
        );
        answered.try_recv().ok()
    }

    fn no(reason: &str) -> Option<ApprovalVerdict> {
        Some(ApprovalVerdict::No(reason.into()))
    }

    #[test]
    fn only_a_word_that_stands_alone_is_a_yes_and_other_words_are_a_no_with_a_reason() {
        assert_eq!(verdict_of(" Y ", OfferedScope::OnceOrRule), Some(ApprovalVerdict::Once));
        assert_eq!(verdict_of("always", OfferedScope::OnceOrRule), Some(ApprovalVerdict::Always));
        assert_eq!(verdict_of("n", OfferedScope::Once), no("the person said no"));
        assert_eq!(verdict_of("n too wide", OfferedScope::OnceOrRule), no("the person said no: too wide"));
        for line in ["a better idea: use the other file", "s p a c e", "yes but not there", "what?", "y\ny"] {
            assert_eq!(
                verdict_of(line, OfferedScope::OnceOrRule),
                no(&format!("the person said instead: {line}"))
            );
        }
        assert_eq!(verdict_of("", OfferedScope::OnceOrRule), None);
    }

    #[test]
    fn what_is_not_offered_is_asked_again() {
        for line in ["s", "session", "a", "Always", " "] {
            assert_eq!(verdict_of(line, OfferedScope::Once), None, "{line}");
        }
        assert_eq!(verdict_of("y", OfferedScope::Once), Some(ApprovalVerdict::Once));
    }

    #[test]
    fn a_command_is_no_answer_to_a_yes_or_no() {
        let (reply, _answered) = oneshot::channel();
        let question = UserQuestion {
            text: String::new(),
            whole: None,
            reply: ReplyChannel::Verdict(OfferedScope::Once, reply),
        };
        assert!(!question.is_for("/queue") && !question.is_for("!ls") && question.is_for("no: /tmp is full"));
        let (reply, _answered) = oneshot::channel();
        assert!(
            UserQuestion { text: String::new(), whole: None, reply: ReplyChannel::Text(reply) }
                .is_for("/a/path")
        );
    }
}
