//! Encrypted content: opaque to clients, and recognized when it comes back.

use hardpan_prompt::Hash;

/// How the real server's ciphertexts begin.
const PREFIX: &str = "gAAAAA";
/// Characters of the part that stands for the text.
const TEXT_LENGTH: usize = 24;

/// The simulator's ciphertext for a text. It does not depend on the model.
pub fn seal(text: &str) -> String {
    let payload = Hash::of(text.as_bytes()).to_string()[..TEXT_LENGTH].to_owned();
    format!("{PREFIX}{payload}{}", proof(&payload))
}

/// Whether a ciphertext is one of the simulator's.
pub fn is_sealed(content: &str) -> bool {
    let Some(rest) = content.strip_prefix(PREFIX) else { return false };
    rest.split_at_checked(TEXT_LENGTH).is_some_and(|(payload, given)| given == proof(payload))
}

fn proof(payload: &str) -> String {
    Hash::chain([Hash::of(b"simulated"), Hash::of(payload.as_bytes())]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_sealed_here_is_recognized() {
        let sealed = seal("Two cities");
        assert!(is_sealed(&sealed) && sealed != seal("Three cities"));
        let changed = sealed.replacen(PREFIX, "gAAAAB", 1);
        assert!(!is_sealed(&changed) && !is_sealed("") && !is_sealed(PREFIX) && !is_sealed(&sealed[..60]));
    }
}
