//! Texts that are for one request alone. They stand after everything that is cached, in whatever layout,
//! so that the next request finds all of it in the cache.

use hardpan_prompt::{Block, Content, ItemCopy, ItemKind, Origin, Prompt, Region, Role, Segment};

use crate::EphemeralText;

/// Puts the texts at the end of the last message of the user. Nothing before them changes, and no
/// breakpoint is after them. Returns whether there were any.
pub fn append_texts(prompt: &mut Prompt, texts: &[EphemeralText]) -> bool {
    // A system message for one turn may follow it: what extensions write is no part of that.
    let last = prompt.messages.iter_mut().rfind(|message| message.role == Role::User);
    let Some(last) = last.filter(|_| !texts.is_empty()) else { return false };
    for EphemeralText { extension, text } in texts {
        let key = format!("ephemeral:{extension}");
        let origin = Origin::item(ItemKind::Panel, &key.into(), ItemCopy::Current);
        let segment = Segment { text: text.clone(), origin };
        last.blocks.push(Block::new(Region::Tail, Content::Text(vec![segment])));
    }
    true
}
