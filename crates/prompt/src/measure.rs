//! The tokens of a prompt, block by block.
use crate::{Block, Content, Counter, Prompt, ResultPart};
/// one block
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredBlock {
    /// all of it
    pub tokens: usize,
    /// each segment
    pub segments: Vec<u32>,
}
/// The tokens of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// tools, system, messages
    pub blocks: Vec<MeasuredBlock>,
}
impl Measured {
    pub(crate) fn of(prompt: &Prompt, counter: &Counter) -> Self {
        let tools = prompt.tools.iter().map(|t| {
            let text = crate::Text::new(format!("{}\n{}\n{}", t.tool.name, t.tool.description, t.tool.parameters.as_str()));
            let tokens = counter.count(&text);
            MeasuredBlock { tokens, segments: vec![tokens as u32] }
        });
        let blocks = prompt.blocks().map(|b| block(b, counter));
        Measured { blocks: tools.chain(blocks).collect() }
    }
    /// total
    pub fn total(&self) -> usize {
        self.blocks.iter().map(|b| b.tokens).sum()
    }
    /// Tokens up to and including block `index`
    pub fn through(&self, index: usize) -> usize {
        self.blocks.iter().take(index + 1).map(|b| b.tokens).sum()
    }
}
fn block(block: &Block, counter: &Counter) -> MeasuredBlock {
    let segments: Vec<u32> = match &block.content {
        Content::Text(s) => counter.segments(s).to_vec(),
        Content::Image(i, _) => vec![i.tokens() as u32],
        Content::Reasoning(r) => vec![counter.count(&r.text) as u32],
        Content::Call(c) => vec![(counter.count_hashed(c.arguments.hash(), c.arguments.as_str()) + 1) as u32],
        Content::Result(r) => r.parts.iter().flat_map(|p| match p {
            ResultPart::Text(s) => counter.segments(s).to_vec(),
            ResultPart::Image(i) => vec![i.tokens() as u32],
        }).collect(),
    };
    MeasuredBlock { tokens: segments.iter().map(|n| *n as usize).sum(), segments }
}
