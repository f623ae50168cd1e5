//! How much memory JSON of a script takes once it is read: its length says little, the number of its values more.

/// How many values the host reads at once. Each takes up to 700 bytes, however short it is as JSON; a conversation
/// of 1,000 messages has some 30,000.
pub const MAX_VALUES: usize = 250_000;

/// About how many values a text of JSON has, found without reading them: each but the first follows a bracket
/// or a comma.
pub fn count_values(json: &str) -> usize {
    let (mut count, mut is_in_text) = (1, false);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => is_in_text = !is_in_text,
            b'\\' if is_in_text => {
                bytes.next();
            }
            b'{' | b'[' | b',' if !is_in_text => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::count_values;

    #[test]
    fn values_are_counted_and_texts_are_one_each() {
        assert_eq!(count_values("null"), 1);
        assert_eq!(count_values(r#"{"a":[1,2],"b":"x,\"[{,\\"}"#), 5);
        assert_eq!(count_values(&serde_json::json!([{"": 0}, {"": 0}]).to_string()), 5);
    }
}
