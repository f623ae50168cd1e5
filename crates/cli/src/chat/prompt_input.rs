//! [`PromptInput`]: the prompt of `hardpan -p`, from the command line and standard input.

use std::io::{IsTerminal, Read};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hardpan_agent::expand::within_element;
use hardpan_app::mentions::PromptSource;

/// The longest standard input that we accept; more is most likely a mistake.
const MAX_STDIN_BYTES: u64 = 10 << 20;

/// How long standard input may be silent before we say that we wait for it.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// The input of `hardpan -p`.
#[derive(Debug, PartialEq, Eq)]
pub struct PromptInput {
    pub prompt: String,
    pub source: PromptSource,
    /// Standard input that was piped in beside the prompt, within a `<stdin>` element.
    pub piped_text: Option<String>,
}

/// Reads the prompt. `-` stands for standard input; text piped in beside a prompt goes below it.
/// Without a flag, standard input is the prompt; none if it is empty.
pub fn read_prompt_input(flag: Option<&str>) -> Result<Option<PromptInput>> {
    let is_terminal = std::io::stdin().is_terminal();
    let silence = if flag.is_none() { OnSilence::GiveUp } else { OnSilence::KeepWaiting };
    let piped = if is_terminal { String::new() } else { read_input(silence)? };
    let is_empty = piped.trim().is_empty();
    let input = match flag {
        None if is_empty => return Ok(None),
        Some("-") if is_empty && is_terminal => {
            bail!("-p needs a prompt: run hardpan -p \"your question\", or pipe one in")
        }
        None | Some("-") => {
            PromptInput { prompt: piped.trim_end().to_owned(), source: PromptSource::Piped, piped_text: None }
        }
        Some(typed) => {
            let piped_text = (!is_empty).then(|| stdin_element(&piped));
            PromptInput { prompt: typed.to_owned(), source: PromptSource::Typed, piped_text }
        }
    };
    if input.prompt.trim().is_empty() && input.piped_text.is_none() {
        bail!("the prompt is empty, so there is nothing to send");
    }
    Ok(Some(input))
}

impl PromptInput {
    /// Warns that a command ignores the text piped in beside it.
    pub fn warn_piped_text_unused(&self) {
        if self.piped_text.is_some() {
            note!("hardpan: commands do not read standard input; ignoring the text that was piped in");
        }
    }
}

/// Wraps standard input in an element that the text itself cannot close.
fn stdin_element(piped: &str) -> String {
    let end = if piped.ends_with('\n') { "" } else { "\n" };
    format!("<stdin>\n{}{end}</stdin>", within_element("stdin", piped))
}

/// What to do when standard input stays silent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OnSilence {
    /// Treat it as empty: whoever started us left it open without writing to it.
    GiveUp,
    /// Say that we wait, and go on waiting.
    KeepWaiting,
}

fn read_input(silence: OnSilence) -> Result<String> {
    const UNREAD: &str = "cannot read standard input";
    let (sender, receiver) = mpsc::channel();
    // The first bytes separately, to learn whether anything comes at all.
    std::thread::spawn(move || {
        let mut bytes = vec![0; 4096];
        let began = std::io::stdin().read(&mut bytes);
        bytes.truncate(began.as_ref().map_or(0, |count| *count));
        let began = began.map(|_| Vec::new());
        let more = began.is_ok() && !bytes.is_empty();
        let _ = sender.send(began);
        let rest =
            if more { std::io::stdin().take(MAX_STDIN_BYTES + 1).read_to_end(&mut bytes) } else { Ok(0) };
        let _ = sender.send(rest.map(|_| bytes));
    });
    let waiting =
        || note!("hardpan: waiting for the end of standard input (add `</dev/null` if you have none)");
    let began = match receiver.recv_timeout(SILENCE_LIMIT) {
        Err(mpsc::RecvTimeoutError::Timeout) if silence == OnSilence::GiveUp => {
            note!("hardpan: no data on standard input, not waiting for it; use `-p -` to wait");
            return Ok(String::new());
        }
        Err(_) => {
            waiting();
            receiver.recv().context(UNREAD)?
        }
        Ok(began) => began,
    };
    began.context(UNREAD)?;
    let read = receiver.recv_timeout(SILENCE_LIMIT).or_else(|_| {
        waiting();
        receiver.recv()
    });
    let bytes = read.context(UNREAD)?.context(UNREAD)?;
    if bytes.len() as u64 > MAX_STDIN_BYTES {
        bail!(
            "standard input is longer than {} MB: put it into a file and mention it with @",
            MAX_STDIN_BYTES >> 20
        );
    }
    String::from_utf8(bytes).context("standard input is not UTF-8 text; mention the file with @ instead")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_piped_in_is_kept_whole_and_cannot_end_its_element() {
        assert_eq!(stdin_element("a\n  b  '\n"), "<stdin>\na\n  b  '\n</stdin>");
        assert_eq!(stdin_element("\ta \r\n "), "<stdin>\n\ta \r\n \n</stdin>");
        assert_eq!(
            stdin_element("x </stdin> y < / STDIN>"),
            "<stdin>\nx <\\/stdin> y <\\ / STDIN>\n</stdin>"
        );
    }
}
