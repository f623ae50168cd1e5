//! What was said: the queue, edits of messages, summaries, what a message holds.

use hardpan_agent::MessageRange;

use super::super::command_error::SlashCommandError;
use super::super::compaction_price::CompactionStart;
use super::arguments::{any_entry, nothing, sent_entry};
use super::{CommandCall, CommandResult, LATER, SlashCommand, pluralize};
use crate::views;

/// In the order of `/help`.
pub const COMMANDS: &[SlashCommand] = &[
    SlashCommand {
        name: "queue",
        arguments: "",
        help: "list the messages that wait to be sent",
        choices: nothing,
        run: |call| Box::pin(queue(call)),
    },
    SlashCommand {
        name: "unqueue",
        arguments: "",
        help: "drop the messages that wait to be sent",
        choices: nothing,
        run: |call| Box::pin(unqueue(call)),
    },
    SlashCommand {
        name: LATER,
        arguments: "TEXT",
        help: "send a message when the agent has finished",
        choices: nothing,
        run: |_| Box::pin(async { Err(SlashCommandError::Usage("a text: /later TEXT")) }),
    },
    SlashCommand {
        name: "tldr",
        arguments: "ENTRY[..ENTRY] SUMMARY",
        help: "send a summary in place of messages",
        choices: sent_entry,
        run: |call| Box::pin(change_messages(MessageChange::Summarise, call)),
    },
    SlashCommand {
        name: "delete",
        arguments: "ENTRY[..ENTRY]",
        help: "leave messages out of requests",
        choices: sent_entry,
        run: |call| Box::pin(change_messages(MessageChange::Delete, call)),
    },
    SlashCommand {
        name: "restore",
        arguments: "ENTRY[..ENTRY]",
        help: "send messages as they are again",
        choices: sent_entry,
        run: |call| Box::pin(change_messages(MessageChange::Restore, call)),
    },
    SlashCommand {
        name: "detach",
        arguments: "[ENTRY]",
        help: "layout panels: move the messages so far, or up to ENTRY, into a history panel",
        choices: sent_entry,
        run: |call| Box::pin(detach(call)),
    },
    SlashCommand {
        name: "freeze",
        arguments: "[ENTRY]",
        help: "the same as /detach",
        choices: sent_entry,
        run: |call| Box::pin(detach(call)),
    },
    SlashCommand {
        name: "recall",
        arguments: "ID",
        help: "show what a message holds that requests show as a line",
        choices: any_entry,
        run: |call| Box::pin(recall(call)),
    },
    SlashCommand {
        name: "compact",
        arguments: "[WHAT MATTERS]",
        help: "replace older messages with a summary",
        choices: nothing,
        run: |call| Box::pin(compact(call)),
    },
];

/// What happens to a range of messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageChange {
    Summarise,
    Delete,
    Restore,
}

async fn queue(CommandCall { agent, .. }: CommandCall<'_>) -> CommandResult {
    let waiting = agent.queued_inputs();
    let steering = waiting.steering.iter().map(|accepted| format!("  next: {}", accepted.typed));
    let later = waiting.follow_up.iter().map(|accepted| format!("  later: {}", accepted.typed));
    let lines: Vec<String> = steering.chain(later).collect();
    Ok(if lines.is_empty() { "the queue is empty".into() } else { lines.join("\n") })
}

async fn unqueue(CommandCall { agent, .. }: CommandCall<'_>) -> CommandResult {
    let dropped = agent.clear_queue().await;
    if dropped.is_empty() {
        return Ok("the queue was empty".into());
    }
    let texts = dropped.steering.iter().chain(&dropped.follow_up).map(|accepted| accepted.typed.clone());
    Ok(format!("dropped:\n{}", texts.collect::<Vec<_>>().join("\n")))
}

/// Summarises, deletes or restores messages, which are named as `e3` or `e3..e9`.
async fn change_messages(
    change: MessageChange,
    CommandCall { arguments, agent, .. }: CommandCall<'_>,
) -> CommandResult {
    let (entries, summary) = arguments.split_once(' ').unwrap_or((arguments, ""));
    if entries.is_empty() || (change == MessageChange::Summarise && summary.trim().is_empty()) {
        return Err(SlashCommandError::Usage(
            "messages: /tldr ENTRY[..ENTRY] SUMMARY, /delete ENTRY[..ENTRY], /restore ENTRY[..ENTRY]; /tree lists the entries",
        ));
    }
    let (first, last) = entries.split_once("..").map_or((entries, None), |(first, last)| (first, Some(last)));
    let range = MessageRange { first, last };
    let (count, how) = match change {
        MessageChange::Summarise => (agent.summarise_messages(range, summary).await?, "sent as this summary"),
        MessageChange::Delete => {
            (agent.delete_messages(range).await?, "no longer sent; /restore brings them back")
        }
        MessageChange::Restore => (agent.restore_messages(range).await?, "sent as they are again"),
    };
    Ok(format!("{}: {how}", pluralize(count, "message")))
}

async fn detach(CommandCall { arguments, agent, .. }: CommandCall<'_>) -> CommandResult {
    let count = agent.freeze_messages(Some(arguments).filter(|entry| !entry.is_empty()))?;
    let messages = pluralize(count, "message");
    Ok(format!("{messages}: a history panel from the next request on; /close ID leaves it out"))
}

async fn recall(CommandCall { arguments, agent, .. }: CommandCall<'_>) -> CommandResult {
    if arguments.is_empty() {
        return Err(SlashCommandError::Usage("a message: /recall ID"));
    }
    Ok(views::stored_content(&agent.recall(arguments).await?))
}

async fn compact(CommandCall { arguments, agent, .. }: CommandCall<'_>) -> CommandResult {
    let start = CompactionStart::new(agent);
    let compacted = agent.compact(Some(arguments.to_owned()).filter(|text| !text.is_empty())).await?;
    let done = start.after_text(agent, compacted.messages);
    Ok(format!("{done}\n\n{}", compacted.summary))
}
