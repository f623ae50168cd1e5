//! [`Signature`]: what the simulator writes into the signature of a thinking block, and reads there
//! when the block comes back.

use hardpan_prompt::{Content, Hash, Prompt, Reasoning, Role};

/// What a signature says about its block. The real one is encrypted; this one is plain, with a check
/// of its own at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The model that thought.
    pub model: Hash,
    /// Tools, system prompt and all messages before the model's turn, without thinking.
    pub prefix: Hash,
    /// The thinking block before this one in the conversation.
    pub previous: Hash,
    /// The text that was shown; `None` if it was left out.
    pub text: Option<Hash>,
}

const OPENING: &str = "sim2";
const PART: usize = 32; // hexadecimal digits of a hash

impl Signature {
    /// The signature as it is sent.
    pub fn encode(&self) -> String {
        let Signature { model, prefix, previous, text } = self;
        let shown = if text.is_some() { 's' } else { 'o' };
        let text = text.unwrap_or_else(|| Hash::of(b""));
        let plain = format!("{OPENING}{shown}{model}{prefix}{previous}{text}");
        format!("{plain}{}", Hash::of(plain.as_bytes()))
    }

    /// Reads a signature that the simulator made. `None`: it made no such signature.
    pub fn decode(written: &str) -> Option<Self> {
        if !written.is_ascii() || written.len() != OPENING.len() + 1 + 5 * PART {
            return None;
        }
        let (plain, check) = written.split_at(written.len() - PART);
        let rest = plain.strip_prefix(OPENING)?;
        if Hash::of(plain.as_bytes()).to_string() != check {
            return None;
        }
        let part = |index: usize| read_hash(&rest[1 + index * PART..1 + (index + 1) * PART]);
        let text = if rest.starts_with('s') { Some(part(3)?) } else { None };
        Some(Signature { model: part(0)?, prefix: part(1)?, previous: part(2)?, text })
    }
}

fn read_hash(digits: &str) -> Option<Hash> {
    let mut bytes = [0; 16];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()?;
    }
    Some(Hash::from_bytes(bytes))
}

/// Signs the thinking blocks of one answer, in order.
#[derive(Clone, Debug)]
pub struct Signer {
    model: Hash,
    prefix: Hash,
    previous: Hash,
}

impl Signer {
    /// A signer for the answer to `prompt`.
    pub fn for_answer(prompt: &Prompt, model: &str) -> Self {
        let end = prompt.messages.iter().rposition(|message| message.role != Role::Assistant);
        let (mut prefix, mut previous) = (PrefixHash::new(prompt), no_thinking());
        for (index, message) in prompt.messages.iter().enumerate() {
            for block in &message.blocks {
                match &*block.content {
                    Content::Reasoning(reasoning) => previous = identity(reasoning),
                    _ if end.is_some_and(|end| index <= end) => prefix.add(message.role, block.hash()),
                    _ => {}
                }
            }
        }
        Signer { model: Hash::of(model.as_bytes()), prefix: prefix.0, previous }
    }

    /// The signature of the next thinking block. `shown`: the text that goes out with it.
    pub fn sign(&mut self, shown: Option<&str>) -> String {
        let text = shown.map(|text| Hash::of(text.as_bytes()));
        let signature =
            Signature { model: self.model, prefix: self.prefix, previous: self.previous, text }.encode();
        self.previous = Hash::of(signature.as_bytes());
        signature
    }
}

/// The identity of a thinking block, for the one after it.
pub fn identity(reasoning: &Reasoning) -> Hash {
    let proof = reasoning.signature.as_deref().or(reasoning.redacted.as_deref());
    Hash::of(proof.unwrap_or_default().as_bytes())
}

/// What stands for the block before the first.
fn no_thinking() -> Hash {
    Hash::of(b"no thinking")
}

/// The hash of everything that a signature is bound to, as it grows from block to block.
#[derive(Clone, Copy, Debug)]
pub struct PrefixHash(pub Hash);

impl PrefixHash {
    /// Tools and system prompt. Deferred tools do not count.
    pub fn new(prompt: &Prompt) -> Self {
        PrefixHash(Hash::chain([tools_hash(prompt), system_hash(prompt)]))
    }

    /// Adds a block of a message, other than thinking.
    pub fn add(&mut self, role: Role, block: Hash) {
        self.0 = Hash::chain([self.0, block.with_mark(role.mark())]);
    }
}

/// The hash of the declared tools, in their order.
pub fn tools_hash(prompt: &Prompt) -> Hash {
    Hash::chain(prompt.tools.iter().flat_map(|block| {
        let text = |text: &str| Hash::of(text.as_bytes());
        [text(&block.tool.name), text(&block.tool.description), block.tool.parameters.hash()]
    }))
}

/// The hash of the system prompt.
pub fn system_hash(prompt: &Prompt) -> Hash {
    Hash::chain(prompt.system.iter().map(hardpan_prompt::Block::hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_read_back_and_no_other_is() {
        let part = |text: &str| Hash::of(text.as_bytes());
        for text in [Some(part("text")), None] {
            let signature = Signature { model: part("m"), prefix: part("p"), previous: part("b"), text };
            let written = signature.encode();
            assert_eq!(Signature::decode(&written), Some(signature));
            let forged = format!("{}0", &written[..written.len() - 1]);
            assert!(forged == written || Signature::decode(&forged).is_none());
        }
        assert_eq!(Signature::decode("EuYB"), None);
        assert_eq!(Signature::decode(&"ä".repeat(200)), None);
    }
}
