//! The tokens of a prompt, block by block.

use std::borrow::Cow;
use std::sync::Arc;

use crate::{
    Block, Content, Prompt, Reasoning, ResultPart, Role, Text, TokenCounter, TokenFactor, ToolChangeAction,
    ToolResult,
};

/// Token counts of a prompt's blocks and segments, without what a provider adds around them. Blocks
/// are indexed as in [`Prompt::breakpoints`]: tools, then system prompt, then messages.
/// [`TokenCounter::measure`] makes one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptTokens {
    /// One count per segment; an image, a call, a tool or a block of reasoning counts as one
    /// segment.
    counts: Vec<u32>,
    /// For each block, the end of its segments in `counts` and the tokens up to and including it.
    ends: Vec<(usize, usize)>,
}

impl PromptTokens {
    pub(crate) fn measure(prompt: &Prompt, counter: &TokenCounter) -> Self {
        let blocks = prompt.block_count();
        let mut measured =
            PromptTokens { counts: Vec::with_capacity(blocks), ends: Vec::with_capacity(blocks) };
        prompt.tools.iter().for_each(|block| measured.push(&counter.count_tool(&block.tool)));
        prompt.system.iter().for_each(|block| measured.push(&segments(block, counter)));
        let last_user = prompt.messages.iter().rposition(|message| message.role == Role::User);
        for (index, message) in prompt.messages.iter().enumerate() {
            // What was sent for one turn is neither shown to the model nor billed in a later one.
            let has_passed = message.turn_scoped && last_user.is_some_and(|last| last > index);
            for block in &message.blocks {
                let mut counts = segments(block, counter);
                if has_passed {
                    counts.to_mut().fill(0);
                }
                measured.push(&counts);
            }
        }
        measured
    }

    fn push(&mut self, counts: &[u32]) {
        self.counts.extend_from_slice(counts);
        let tokens = self.total() + counts.iter().map(|&tokens| tokens as usize).sum::<usize>();
        self.ends.push((self.counts.len(), tokens));
    }

    /// Converts the counts into the tokens of a model whose vocabulary is not public. The parts
    /// still add up to the whole.
    pub fn scaled(mut self, factor: &TokenFactor) -> Self {
        if factor.value() != 1.0 {
            factor.apply(&mut self.counts);
            let (mut at, mut tokens) = (0, 0);
            for (end, through) in &mut self.ends {
                tokens += self.counts[at..*end].iter().map(|&count| count as usize).sum::<usize>();
                (at, *through) = (*end, tokens);
            }
        }
        self
    }

    /// The tokens of each segment of a block; empty if there is no such block.
    pub fn segments(&self, block: usize) -> &[u32] {
        let start = block.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| end.0);
        self.ends.get(block).map_or(&[], |end| &self.counts[start..end.0])
    }

    /// The tokens of one block; 0 if there is no such block.
    pub fn tokens(&self, block: usize) -> usize {
        self.segments(block).iter().map(|&tokens| tokens as usize).sum()
    }

    /// The tokens of each block, in order.
    pub fn blocks(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|block| self.tokens(block))
    }

    /// Number of blocks, declared tools included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the prompt had no blocks at all.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The tokens of the whole prompt.
    pub fn total(&self) -> usize {
        self.ends.last().map_or(0, |end| end.1)
    }

    /// The tokens up to and including a block; of the whole prompt if there is no such block.
    pub fn tokens_through(&self, block: usize) -> usize {
        self.ends.get(block).map_or_else(|| self.total(), |end| end.1)
    }
}

/// Blocks of several segments are not kept with the content: the counter knows each segment
/// already.
fn segments<'a>(block: &'a Block, counter: &TokenCounter) -> Cow<'a, [u32]> {
    match &*block.content {
        Content::Text(segments) if segments.len() > 1 => {
            Cow::Owned(counter.count_segments(segments).to_vec())
        }
        content => block.content.counts(counter.vocabulary(), || counted(content, counter)),
    }
}

fn counted(content: &Content, counter: &TokenCounter) -> Arc<[u32]> {
    match content {
        Content::Text(segments) => counter.count_segments(segments),
        Content::Image(image, _) => Arc::new([image.tokens() as u32]),
        Content::Reasoning(reasoning) => Arc::new([reasoning_tokens(reasoning, counter) as u32]),
        Content::Call(call) => counter.count_call(call),
        Content::Provider(block) => Arc::new([encrypted_tokens(block.json.as_str()) as u32]),
        Content::Result(result) => result_segments(result, counter),
        Content::ToolChange(change) => match &change.action {
            ToolChangeAction::Define(tool) => counter.count_tool(tool),
            ToolChangeAction::Restore(name) | ToolChangeAction::Remove(name) => {
                Arc::new([counter.count(&Text::new(&**name)) as u32])
            }
        },
    }
}

/// The signature is not counted.
fn reasoning_tokens(reasoning: &Reasoning, counter: &TokenCounter) -> usize {
    counter.count(&reasoning.text) + reasoning.redacted.as_deref().map_or(0, encrypted_tokens)
}

/// What the provider encrypted cannot be counted; one token for every four bytes, rounded up, stands
/// for it.
fn encrypted_tokens(data: &str) -> usize {
    data.len().div_ceil(4)
}

fn result_segments(result: &ToolResult, counter: &TokenCounter) -> Arc<[u32]> {
    match result.parts.as_slice() {
        [ResultPart::Text(segments)] => counter.count_segments(segments),
        parts => parts
            .iter()
            .flat_map(|part| match part {
                ResultPart::Text(segments) => counter.count_segments(segments).to_vec(),
                ResultPart::Image(image) => vec![image.tokens() as u32],
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Call, Image, ItemKind, Json, MediaType, Origin, PromptMessage, Region, Segment, Tool, ToolBlock,
        ToolOutcome,
    };
    use crate::{TokenizerWork, Vocabulary};

    fn origin() -> Origin {
        Origin::rule(ItemKind::History, "test")
    }

    fn block(content: Content) -> Block {
        Block::new(Region::Log, content)
    }

    fn image() -> Image {
        Image { media_type: MediaType::Png, data: "".into(), width: Some(280), height: Some(56) }
    }

    fn call(name: &str) -> Content {
        let arguments = Json::new(&serde_json::json!({"path": "src/a.rs", "limit": 20}));
        Content::Call(Call { id: "c1".into(), name: name.into(), arguments, origin: origin() })
    }

    fn tool(name: &str, description: &str) -> ToolBlock {
        let parameters =
            Json::new(&serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}}));
        let (name, description) = (name.into(), description.into());
        let tool = Tool { name, description, parameters, snippet: None, guidelines: Vec::new() };
        ToolBlock { region: Region::Base, tool, breakpoint: None }
    }

    fn segments(texts: &[&str]) -> Vec<Segment> {
        texts.iter().map(|text| Segment::new(*text, origin())).collect()
    }

    /// Every sort of block once.
    fn prompt() -> Prompt {
        let reasoning = Reasoning {
            text: "Let me see.".into(),
            signature: Some("c2lnbmF0dXJl".into()),
            redacted: Some("123456789".into()),
            origin: origin(),
        };
        let parts = vec![
            ResultPart::Text(segments(&["fn ", "main", "() {}"])),
            ResultPart::Image(image()),
            ResultPart::Text(segments(&["done"])),
        ];
        let result = ToolResult { call_id: "c1".into(), parts, outcome: ToolOutcome::Done, origin: origin() };
        let answer = vec![block(Content::Reasoning(reasoning)), block(call("read"))];
        let user = vec![block(Content::Result(result)), block(Content::Image(image(), origin()))];
        Prompt {
            tools: vec![tool("read", "Reads a file.")],
            system: vec![block(Content::Text(segments(&["You are ", "here to help."])))],
            messages: vec![PromptMessage::new(Role::Assistant, answer), PromptMessage::new(Role::User, user)],
            ..Prompt::default()
        }
    }

    #[test]
    fn every_sort_of_block_counts_what_it_says() {
        let counter = TokenCounter::new(Vocabulary::O200k);
        let count = |text: &str| counter.count(&Text::new(text));
        let measured = counter.measure(&prompt());
        let expected = [
            count(
                "read\nReads a file.\n{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}",
            ),
            count("You are here to help."),
            count("Let me see.") + 3,
            count("read\n{\"path\":\"src/a.rs\",\"limit\":20}"),
            count("fn main() {}") + 20 + count("done"),
            20,
        ];
        assert_eq!(measured.blocks().collect::<Vec<_>>(), expected);
        assert_eq!(measured.segments(1).len(), 2);
        assert_eq!(measured.segments(4).len(), 5);
        assert_eq!(measured.segments(4)[3], 20);
    }

    #[test]
    fn running_totals_agree_with_the_blocks() {
        let measured = TokenCounter::new(Vocabulary::Cl100k).measure(&prompt());
        let mut sum = 0;
        for (index, tokens) in measured.blocks().enumerate() {
            sum += tokens;
            assert_eq!(measured.tokens_through(index), sum);
        }
        assert_eq!(measured.total(), sum);
        assert_eq!(measured.tokens_through(measured.len() + 3), sum);
        assert_eq!(measured.len(), prompt().block_count());
        let nothing = TokenCounter::new(Vocabulary::O200k).measure(&Prompt::default());
        assert!(nothing.is_empty());
        assert_eq!((nothing.total(), nothing.tokens_through(0)), (0, 0));
    }

    #[test]
    fn an_unchanged_prompt_is_not_tokenised_again() {
        let counter = TokenCounter::new(Vocabulary::O200k);
        let first = counter.measure(&prompt());
        let work = counter.work();
        assert_ne!(work, TokenizerWork::default());
        for _ in 0..20 {
            assert_eq!(counter.measure(&prompt()), first);
        }
        assert_eq!(counter.work(), work);
    }

    #[test]
    fn only_what_changed_is_tokenised() {
        let counter = TokenCounter::new(Vocabulary::O200k);
        let mut prompt = prompt();
        counter.measure(&prompt);
        let before = counter.work();
        prompt.messages[1].blocks.push(block(Content::Text(segments(&["And now?"]))));
        counter.measure(&prompt);
        assert_eq!(counter.work(), TokenizerWork { texts: before.texts + 1, bytes: before.bytes + 8 });
    }

    #[test]
    fn calls_and_tools_that_share_their_json_are_told_apart() {
        let counter = TokenCounter::new(Vocabulary::O200k);
        let of = |content: Content| {
            let turns = vec![PromptMessage::new(Role::Assistant, vec![block(content)])];
            counter.measure(&Prompt { messages: turns, ..Prompt::default() }).total()
        };
        assert!(of(call("read")) < of(call("read_with_a_rather_long_name")));
        let tools = vec![tool("read", ""), tool("read", "Reads a file, and says what is in it.")];
        let measured = counter.measure(&Prompt { tools, ..Prompt::default() });
        assert!(measured.tokens(0) < measured.tokens(1));
    }

    #[test]
    fn what_is_no_longer_sent_is_forgotten() {
        let counter = TokenCounter::new(Vocabulary::O200k);
        counter.measure(&prompt());
        let used = counter.remembered_counts();
        for round in 0..50 {
            let text = format!("This is round {round}.");
            let mut other = prompt();
            other.messages[1].blocks.push(block(Content::Text(segments(&[&text, " Go on."]))));
            counter.measure(&other);
        }
        assert!(counter.remembered_counts() < used + 60, "{} after {used}", counter.remembered_counts());
        for _ in 0..20 {
            counter.measure(&prompt());
        }
        assert_eq!(counter.remembered_counts(), used);
        for _ in 0..20 {
            counter.measure(&Prompt::default());
        }
        assert_eq!(counter.remembered_counts(), 0);
    }

    #[test]
    fn the_segments_of_a_known_block_stay_known() {
        let counter = TokenCounter::new(Vocabulary::O200k);
        let measure = |texts: &[&str]| {
            let system = vec![block(Content::Text(segments(texts)))];
            counter.measure(&Prompt { system, ..Prompt::default() });
        };
        let long = "some words that go on and on, ".repeat(100);
        for _ in 0..30 {
            measure(&["# Header\n", &long]);
        }
        let before = counter.work();
        measure(&["# Header\n", &long, "the end"]);
        assert!(counter.work().bytes - before.bytes < 30, "{:?}", counter.work());
    }

    #[test]
    fn what_was_sent_for_one_turn_costs_nothing_in_a_later_one() {
        let say = |role, text: &str| PromptMessage::new(role, vec![block(Content::Text(segments(&[text])))]);
        let clock = PromptMessage { turn_scoped: true, ..say(Role::System, "It is noon, and all is well.") };
        let mut prompt = Prompt { messages: vec![say(Role::User, "Hello"), clock], ..Prompt::default() };
        let counter = TokenCounter::new(Vocabulary::O200k);
        assert!(counter.measure(&prompt).tokens(1) > 0, "in its own turn");
        prompt.messages.push(say(Role::Assistant, "Hi"));
        prompt.messages.push(say(Role::User, "Go on"));
        let later = counter.measure(&prompt);
        assert_eq!((later.tokens(1), later.len()), (0, 4));
        assert!(later.tokens(3) > 0);
    }
}
