//! Reasoning that is bound to everything before it: [`prefix_hash`] identifies what an answer came
//! after, and [`find_stale_reasoning`] finds the answers for which that has changed since.
//!
//! Some models refuse reasoning that goes back after anything before it was edited: the system
//! prompt, the tools, an earlier message. Whatever edits the past (a fold, a compaction, going back,
//! closing a file, a handler of the `context` event) is seen here by its effect on the prompt, so
//! that none of it has to tell.

use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::{
    Block, Content, Hash, HashChain, MessageId, Prompt, PromptMessage, Role, Source, ToolBlock,
};

/// Identifies everything that a model reads in a prompt. Breakpoints do not count.
pub fn prefix_hash(prompt: &Prompt) -> Hash {
    let mut chain = begin_chain(prompt);
    prompt.messages.iter().for_each(|message| add_message(&mut chain, message, |_| true));
    chain.hash()
}

/// The messages of the model whose reasoning is in the prompt although something before it is not
/// as it was when they were written. `prefixes` has the [`prefix_hash`] of the prompt that each
/// message answered; a message that it does not have is taken for stale.
pub fn find_stale_reasoning(prompt: &Prompt, prefixes: &BTreeMap<MessageId, Hash>) -> BTreeSet<MessageId> {
    let mut stale = BTreeSet::new();
    if !prompt.blocks().any(is_reasoning) {
        return stale;
    }
    let mut chain = begin_chain(prompt);
    for message in &prompt.messages {
        let answers: BTreeSet<&MessageId> = message.blocks.iter().filter_map(reasoning_of).collect();
        if !answers.is_empty() {
            let before = chain.hash();
            let is_stale = |id: &&MessageId| prefixes.get(*id) != Some(&before);
            stale.extend(answers.into_iter().filter(is_stale).cloned());
        }
        // Stale reasoning will not be sent, so what follows is not bound to it.
        add_message(&mut chain, message, |block| reasoning_of(block).is_none_or(|id| !stale.contains(id)));
    }
    stale
}

fn is_reasoning(block: &Block) -> bool {
    matches!(*block.content, Content::Reasoning(_))
}

/// The message whose reasoning a block holds.
fn reasoning_of(block: &Block) -> Option<&MessageId> {
    match &*block.content {
        Content::Reasoning(reasoning) => match &reasoning.origin.source {
            Source::Message(id) => Some(id),
            _ => None,
        },
        _ => None,
    }
}

fn begin_chain(prompt: &Prompt) -> HashChain {
    let mut chain = HashChain::default();
    for ToolBlock { tool, .. } in &prompt.tools {
        chain.add_text(&tool.name);
        chain.add_text(&tool.description);
        chain.add(tool.parameters.hash());
    }
    prompt.system.iter().for_each(|block| chain.add(block.hash()));
    chain
}

fn add_message(chain: &mut HashChain, message: &PromptMessage, is_sent: impl Fn(&Block) -> bool) {
    let speaker = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
    };
    for block in message.blocks.iter().filter(|block| is_sent(block)) {
        chain.add_text(speaker);
        chain.add(block.hash());
    }
    if let Some(effort) = message.effort {
        chain.add_text(effort.as_str());
    }
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::{Origin, Reasoning, Region, Text};

    use super::*;

    fn text(role: Role, id: &str, text: &str) -> PromptMessage {
        PromptMessage::new(role, vec![Block::text(Region::Log, Text::new(text), Origin::message(&id.into()))])
    }

    fn answer(id: &str) -> PromptMessage {
        let reasoning = Reasoning {
            text: Text::new("hm"),
            signature: Some("s".into()),
            redacted: None,
            origin: Origin::message(&id.into()),
        };
        let mut message = text(Role::Assistant, id, "done");
        message.blocks.insert(0, Block::new(Region::Log, Content::Reasoning(reasoning)));
        message
    }

    fn prompt(messages: Vec<PromptMessage>) -> Prompt {
        Prompt { messages, ..Prompt::default() }
    }

    /// Two exchanges, the prompt of a third, and what each answer came after.
    fn session() -> (Prompt, BTreeMap<MessageId, Hash>) {
        let all = vec![
            text(Role::User, "u1", "one"),
            answer("a1"),
            text(Role::User, "u2", "two"),
            answer("a2"),
            text(Role::User, "u3", "three"),
        ];
        let prefixes = [("a1", 1), ("a2", 3)]
            .map(|(id, length)| (id.into(), prefix_hash(&prompt(all[..length].to_vec()))));
        (prompt(all), prefixes.into())
    }

    #[test]
    fn reasoning_after_an_unchanged_past_may_go_back() {
        let (mut prompt, prefixes) = session();
        assert!(find_stale_reasoning(&prompt, &prefixes).is_empty());
        prompt.blocks_mut().for_each(|block| block.breakpoint = Some(hardpan_prompt::CacheLifetime::OneHour));
        assert!(find_stale_reasoning(&prompt, &prefixes).is_empty(), "a breakpoint is no edit");
    }

    #[test]
    fn an_edit_makes_all_reasoning_after_it_stale_and_none_before() {
        let (prompt, prefixes) = session();
        let edited = |at: usize| {
            let mut prompt = prompt.clone();
            prompt.messages[at] = text(Role::User, "x", "edited");
            find_stale_reasoning(&prompt, &prefixes).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(edited(0), ["a1", "a2"]);
        assert_eq!(edited(2), ["a2"]);
        assert!(edited(4).is_empty());
    }

    #[test]
    fn what_came_after_dropped_reasoning_stays_valid() {
        let (mut edited, mut prefixes) = session();
        edited.messages[0] = text(Role::User, "x", "edited");
        let stale = find_stale_reasoning(&edited, &prefixes);
        for message in &mut edited.messages {
            message.blocks.retain(|block| reasoning_of(block).is_none_or(|id| !stale.contains(id)));
        }
        prefixes.insert("a3".into(), prefix_hash(&edited));
        edited.messages.extend([answer("a3"), text(Role::User, "u4", "four")]);
        assert!(find_stale_reasoning(&edited, &prefixes).is_empty());
        assert_eq!(find_stale_reasoning(&edited, &BTreeMap::new()).len(), 1, "an answer of unknown past");
    }
}
