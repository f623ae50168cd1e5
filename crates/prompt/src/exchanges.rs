//! Exchanges: a message of the user, and everything up to the next one.

use std::ops::Range;

use crate::AgentMessage;

/// Whether an exchange begins at this position: the user speaks after someone else. What precedes
/// the user's first message belongs to an exchange that nothing begins.
pub fn begins_exchange(messages: &[AgentMessage], at: usize) -> bool {
    messages[at].is_user() && !at.checked_sub(1).is_some_and(|before| messages[before].is_user())
}

/// The exchanges of a conversation, in order. Together they hold every message.
pub fn exchange_ranges(messages: &[AgentMessage]) -> Vec<Range<usize>> {
    let mut exchanges = Vec::new();
    let mut start = 0;
    for end in 1..=messages.len() {
        if end == messages.len() || begins_exchange(messages, end) {
            exchanges.push(start..end);
            start = end;
        }
    }
    exchanges
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn conversation(roles: &[&str]) -> Vec<AgentMessage> {
        let message = |(index, role): (usize, &&str)| {
            serde_json::from_value(json!({"id": format!("m{index}"), "role": role, "content": "x"})).unwrap()
        };
        roles.iter().enumerate().map(message).collect()
    }

    #[test]
    fn an_exchange_begins_where_the_user_speaks_after_someone_else() {
        let messages = conversation(&["assistant", "user", "user", "assistant", "assistant", "user"]);
        assert_eq!(exchange_ranges(&messages), [0..1, 1..5, 5..6]);
        let begins: Vec<usize> = (0..6).filter(|at| begins_exchange(&messages, *at)).collect();
        assert_eq!(begins, [1, 5]);
        assert!(exchange_ranges(&[]).is_empty());
    }
}
