//! The tokens of a prompt, block by block.

use std::sync::Arc;

use crate::{Block, Content, Counter, Factor, Prompt, Reasoning, ResultPart, ToolResult};

/// The tokens of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredBlock {
    /// All of it.
    pub tokens: usize,
    /// Each segment of its text, in order; an image, a call, a tool or a block of reasoning is one.
    pub segments: Arc<[u32]>,
}

impl MeasuredBlock {
    fn new(segments: Arc<[u32]>) -> Self {
        MeasuredBlock { tokens: segments.iter().map(|&tokens| tokens as usize).sum(), segments }
    }
}

/// The tokens of a prompt: what its parts say, without what a provider adds around them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Tools, then system, then messages: in the order of [`Prompt::breakpoints`].
    pub blocks: Vec<MeasuredBlock>,
    /// Tokens up to and including each block.
    through: Vec<usize>,
}

impl Measured {
    pub(crate) fn of(prompt: &Prompt, counter: &Counter) -> Self {
        let tools = prompt.tools.iter().map(|block| counter.tool(&block.tool));
        let blocks = prompt.blocks().map(|block| segments(block, counter));
        Measured::new(tools.chain(blocks).map(MeasuredBlock::new).collect())
    }

    fn new(blocks: Vec<MeasuredBlock>) -> Self {
        let running = blocks.iter().scan(0, |sum, block| {
            *sum += block.tokens;
            Some(*sum)
        });
        Measured { through: running.collect(), blocks }
    }

    /// The same in the tokens of a model whose vocabulary is not public. Parts still add up to the whole.
    pub fn scaled(&self, factor: &Factor) -> Self {
        if factor.value() == 1.0 {
            return self.clone();
        }
        let counts: Vec<usize> =
            self.blocks.iter().flat_map(|block| block.segments.iter().map(|&n| n as usize)).collect();
        let mut scaled = factor.apply(&counts).into_iter().map(|tokens| tokens as u32);
        let block =
            |block: &MeasuredBlock| MeasuredBlock::new(scaled.by_ref().take(block.segments.len()).collect());
        Measured::new(self.blocks.iter().map(block).collect())
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The tokens of the whole prompt.
    pub fn total(&self) -> usize {
        self.through.last().copied().unwrap_or(0)
    }

    /// The tokens up to and including a block; of the whole prompt if there is no such block.
    pub fn through(&self, block: usize) -> usize {
        self.through.get(block).copied().unwrap_or_else(|| self.total())
    }
}

fn segments(block: &Block, counter: &Counter) -> Arc<[u32]> {
    match &block.content {
        Content::Text(segments) => counter.segments(segments),
        Content::Image(image, _) => Arc::new([image.tokens() as u32]),
        Content::Reasoning(reasoning) => Arc::new([reasoning_tokens(reasoning, counter) as u32]),
        Content::Call(call) => counter.call(call),
        Content::Result(result) => result_segments(result, counter),
    }
}

/// Encrypted reasoning cannot be counted: a token for every four bytes of it, rounded up, stands for it. The
/// signature is not counted.
fn reasoning_tokens(reasoning: &Reasoning, counter: &Counter) -> usize {
    let redacted = reasoning.redacted.as_deref().map_or(0, |data| data.len().div_ceil(4));
    counter.count(&reasoning.text) + redacted
}

fn result_segments(result: &ToolResult, counter: &Counter) -> Arc<[u32]> {
    match result.parts.as_slice() {
        [ResultPart::Text(segments)] => counter.segments(segments),
        parts => parts
            .iter()
            .flat_map(|part| match part {
                ResultPart::Text(segments) => counter.segments(segments).to_vec(),
                ResultPart::Image(image) => vec![image.tokens() as u32],
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Call, Image, Json, Kind, MediaType, Origin, Outcome, Place, Role, Segment, Text, Tool, ToolBlock,
        Turn,
    };
    use crate::{Vocabulary, Work};

    fn origin() -> Origin {
        Origin::rule(Kind::History, "test")
    }

    fn block(content: Content) -> Block {
        Block::new(Place::Log, content)
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
        ToolBlock { place: Place::Base, tool, breakpoint: None }
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
        let result = ToolResult { call_id: "c1".into(), parts, outcome: Outcome::Done, origin: origin() };
        let answer = vec![block(Content::Reasoning(reasoning)), block(call("read"))];
        let user = vec![block(Content::Result(result)), block(Content::Image(image(), origin()))];
        Prompt {
            tools: vec![tool("read", "Reads a file.")],
            system: vec![block(Content::Text(segments(&["You are ", "here to help."])))],
            turns: vec![Turn::new(Role::Assistant, answer), Turn::new(Role::User, user)],
            ..Prompt::default()
        }
    }

    #[test]
    fn every_sort_of_block_counts_what_it_says() {
        let counter = Counter::new(Vocabulary::O200k);
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
        assert_eq!(measured.blocks.iter().map(|block| block.tokens).collect::<Vec<_>>(), expected);
        assert_eq!(measured.blocks[1].segments.len(), 2);
        assert_eq!(measured.blocks[4].segments.len(), 5);
        assert_eq!(measured.blocks[4].segments[3], 20);
    }

    #[test]
    fn running_totals_agree_with_the_blocks() {
        let measured = Counter::new(Vocabulary::Cl100k).measure(&prompt());
        let mut sum = 0;
        for (index, block) in measured.blocks.iter().enumerate() {
            sum += block.tokens;
            assert_eq!(measured.through(index), sum);
            assert_eq!(block.segments.iter().sum::<u32>() as usize, block.tokens);
        }
        assert_eq!(measured.total(), sum);
        assert_eq!(measured.through(measured.len() + 3), sum);
        assert_eq!(measured.len(), prompt().block_count());
        let nothing = Counter::new(Vocabulary::O200k).measure(&Prompt::default());
        assert!(nothing.is_empty());
        assert_eq!((nothing.total(), nothing.through(0)), (0, 0));
    }

    #[test]
    fn an_unchanged_prompt_is_not_tokenised_again() {
        let counter = Counter::new(Vocabulary::O200k);
        let first = counter.measure(&prompt());
        let work = counter.work();
        assert_ne!(work, Work::default());
        for _ in 0..20 {
            assert_eq!(counter.measure(&prompt()), first);
        }
        assert_eq!(counter.work(), work);
    }

    #[test]
    fn only_what_changed_is_tokenised() {
        let counter = Counter::new(Vocabulary::O200k);
        let mut prompt = prompt();
        counter.measure(&prompt);
        let before = counter.work();
        prompt.turns[1].blocks.push(block(Content::Text(segments(&["And now?"]))));
        counter.measure(&prompt);
        assert_eq!(counter.work(), Work { texts: before.texts + 1, bytes: before.bytes + 8 });
    }

    #[test]
    fn calls_and_tools_that_share_their_json_are_told_apart() {
        let counter = Counter::new(Vocabulary::O200k);
        let of = |content: Content| {
            let turns = vec![Turn::new(Role::Assistant, vec![block(content)])];
            counter.measure(&Prompt { turns, ..Prompt::default() }).total()
        };
        assert!(of(call("read")) < of(call("read_with_a_rather_long_name")));
        let tools = vec![tool("read", ""), tool("read", "Reads a file, and says what is in it.")];
        let measured = counter.measure(&Prompt { tools, ..Prompt::default() });
        assert!(measured.blocks[0].tokens < measured.blocks[1].tokens);
    }

    #[test]
    fn what_is_no_longer_sent_is_forgotten() {
        let counter = Counter::new(Vocabulary::O200k);
        counter.measure(&prompt());
        let used = counter.remembered();
        for round in 0..50 {
            let text = format!("This is round {round}.");
            let mut other = prompt();
            other.turns[1].blocks.push(block(Content::Text(segments(&[&text, " Go on."]))));
            counter.measure(&other);
        }
        assert!(counter.remembered() < used + 60, "{} after {used}", counter.remembered());
        for _ in 0..20 {
            counter.measure(&prompt());
        }
        assert_eq!(counter.remembered(), used);
        for _ in 0..20 {
            counter.measure(&Prompt::default());
        }
        assert_eq!(counter.remembered(), 0);
    }

    #[test]
    fn the_segments_of_a_known_block_stay_known() {
        let counter = Counter::new(Vocabulary::O200k);
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
}
