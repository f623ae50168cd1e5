//! What was sent, to the byte: `/request` shows the last request or the next, `/diff` compares the last
//! two.

use hardpan_agent::{RequestPreview, SentRequest};
use hardpan_providers::HttpRequest;
use hardpan_providers::body::{self, BodyBlock};
use serde_json::Value;

use super::super::command_error::SlashCommandError;
use super::arguments::{choice, nothing};
use super::{CommandCall, CommandResult, SlashCommand, pluralize};
use crate::diff::{BodyOrigins, describe_block};
use crate::output::{safe_lines, thousands};
use crate::views;

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "request",
        arguments: "[body] [next TEXT]",
        help: "show the last request, or the one that TEXT would lead to; `body` shows its exact bytes",
        choices: |query| match query.before {
            [] => vec![choice("body", "the exact bytes"), choice("next", "what a prompt would lead to")],
            ["body"] => vec![choice("next", "what a prompt would lead to")],
            _ => Vec::new(),
        },
        run: |call| Box::pin(request(call)),
    },
    SlashCommand {
        name: "diff",
        arguments: "",
        help: "show what changed in the last request against the one before",
        choices: nothing,
        run: |call| Box::pin(diff(call)),
    },
];

/// The most blocks that `/diff` lists of each side.
const SHOWN_BLOCKS: usize = 12;

async fn request(CommandCall { arguments, app, agent, .. }: CommandCall<'_>) -> CommandResult {
    let (wants_body, rest) = match first_word(arguments) {
        ("body", rest) => (true, rest),
        _ => (false, arguments),
    };
    let (wants_next, text) = match first_word(rest) {
        ("next", text) => (true, text),
        _ => (!rest.is_empty(), rest),
    };
    if let Some(sent) = agent.last_sent_request().filter(|_| !wants_next) {
        let sent = sent?;
        return Ok(if wants_body { exact_text(&sent.http) } else { sent_table(&sent) });
    }
    let preview = app.preview_request(text).await?;
    Ok(if wants_body { exact_text(&preview.http) } else { preview_table(&preview) })
}

/// The first word of a text, and what follows it.
fn first_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// The body as it is sent, for a person or a program.
fn exact_text(http: &HttpRequest) -> String {
    String::from_utf8_lossy(&http.body).into_owned()
}

fn sent_table(sent: &SentRequest) -> String {
    let addresses = hardpan_providers::block_addresses(&sent.assembled.prompt, &sent.target.profile);
    let table = views::request(&sent.assembled, &sent.breakdown, &sent.target.provider, &addresses);
    let bytes = thousands(sent.http.body.len());
    format!("{table}sent: {bytes} bytes; /request body shows them, /request next TEXT what comes next")
}

fn preview_table(preview: &RequestPreview) -> String {
    let (breakdown, addresses) = (preview.breakdown(), preview.addresses());
    let table = views::request(&preview.assembled, &breakdown, &preview.target.provider, &addresses);
    format!(
        "{table}not sent: {} bytes; /request body next TEXT shows them",
        thousands(preview.http.body.len())
    )
}

async fn diff(CommandCall { agent, .. }: CommandCall<'_>) -> CommandResult {
    let (Some(before), Some(last)) = (agent.sent_request_before(), agent.last_sent_request()) else {
        return Err(SlashCommandError::NothingToCompare);
    };
    let sides = [before?, last?].map(|sent| {
        let addresses = hardpan_providers::block_addresses(&sent.assembled.prompt, &sent.target.profile);
        let body: Value = serde_json::from_slice(&sent.http.body).unwrap_or_default();
        let origins = BodyOrigins::of_request(&sent.assembled, &addresses);
        (body::blocks(&body), origins)
    });
    Ok(safe_lines(&compare(&sides)))
}

/// What both requests begin with, and what each has after that which the other does not.
fn compare(sides: &[(Vec<BodyBlock>, BodyOrigins); 2]) -> String {
    let [(before, _), (last, _)] = sides;
    let is_same = |a: &BodyBlock, b: &BodyBlock| a.role == b.role && a.content == b.content;
    let same = before.iter().zip(last).take_while(|(a, b)| is_same(a, b)).count();
    let unmatched = |of: &[BodyBlock], other: &[BodyBlock]| -> Vec<usize> {
        (same..of.len()).filter(|index| !other[same..].iter().any(|it| is_same(it, &of[*index]))).collect()
    };
    let (gone, new) = (unmatched(before, last), unmatched(last, before));
    let mut text = match same == before.len() {
        true => format!(
            "The request before, {}, is the beginning of the last one: nothing in it changed.\n",
            pluralize(before.len(), "block")
        ),
        false => format!(
            "Both begin with the same {}; from {} on, the last request differs.\n",
            pluralize(same, "block"),
            last.get(same).map_or("its end", |block| &block.address)
        ),
    };
    for (mark, word, listed, (blocks, origins)) in
        [('-', "gone", &gone, &sides[0]), ('+', "new", &new, &sides[1])]
    {
        if listed.is_empty() {
            continue;
        }
        text.push_str(&format!("{word}: {}\n", pluralize(listed.len(), "block")));
        for index in listed.iter().take(SHOWN_BLOCKS) {
            let block = &blocks[*index];
            text.push_str(&format!("{mark} {}  {}\n", block.address, describe_block(block, origins)));
        }
        if listed.len() > SHOWN_BLOCKS {
            text.push_str(&format!("{mark} … and {} more\n", listed.len() - SHOWN_BLOCKS));
        }
    }
    if gone.is_empty() && new.is_empty() && same < before.len().max(last.len()) {
        text.push_str("The same blocks, in another order.\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn side(texts: &[&str]) -> (Vec<BodyBlock>, BodyOrigins) {
        let messages: Vec<Value> = texts
            .iter()
            .map(|text| json!({"role": "user", "content": [{"type": "text", "text": text}]}))
            .collect();
        (body::blocks(&json!({ "messages": messages })), BodyOrigins::default())
    }

    #[test]
    fn a_request_that_only_adds_says_so() {
        let text = compare(&[side(&["a", "b"]), side(&["a", "b", "c"])]);
        insta::assert_snapshot!(text, @r#"
        The request before, 2 blocks, is the beginning of the last one: nothing in it changed.
        new: 1 block
        + messages[2].content[0]  text of the user: "c"
        "#);
    }

    #[test]
    fn what_went_and_what_came_is_listed() {
        let text = compare(&[side(&["a", "b", "c"]), side(&["a", "x", "c"])]);
        insta::assert_snapshot!(text, @r#"
        Both begin with the same 1 block; from messages[1].content[0] on, the last request differs.
        gone: 1 block
        - messages[1].content[0]  text of the user: "b"
        new: 1 block
        + messages[1].content[0]  text of the user: "x"
        "#);
        let moved = compare(&[side(&["a", "b"]), side(&["b", "a"])]);
        assert!(moved.ends_with("The same blocks, in another order.\n"), "{moved}");
    }
}
