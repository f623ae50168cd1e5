use hardpan_prompt::{Block, ItemKind, Origin, PromptMessage, Region, Role};

use super::*;

/// Made of pieces, so that this file has no text in the form of a key.
fn key(prefix: &str) -> String {
    format!("{prefix}{}", "q7Rk2mVx9LpA4sTz".repeat(4))
}

fn kinds(text: &str) -> Vec<String> {
    SecretScanner::default().find(text).into_iter().map(|secret| secret.kind.to_string()).collect()
}

#[test]
fn keys_of_the_well_known_providers_are_found_wherever_they_stand() {
    for (prefix, kind) in [
        ("sk-ant-api03-", "Anthropic key"),
        ("sk-proj-", "OpenAI key"),
        ("sk-", "API key"),
        ("gsk_", "Groq key"),
        ("xai-", "xAI key"),
        ("ghp_", "GitHub token"),
        ("github_pat_", "GitHub token"),
        ("glpat-", "GitLab token"),
        ("xoxb-", "Slack token"),
        ("sk_live_", "Stripe key"),
    ] {
        let mut key = key(prefix);
        key.truncate(prefix.len() + if prefix == "glpat-" { 20 } else { 64 });
        for text in [
            key.clone(),
            format!("KEY={key}\n"),
            format!("\"{key}\","),
            format!("a {key}. b"),
            format!("Bearer {key}'"),
            // Lines of a diff, and a string with line ends.
            format!("+{key}\n"),
            format!("@@ -1 +1 @@\n-{key}\n+\n"),
            format!("\"one\\n{key}\\n\""),
            format!("\"\\t{key}\""),
        ] {
            assert_eq!(kinds(&text), [kind], "{text}");
        }
    }
    let google = format!("AIza{}", &key("")[..35]);
    assert_eq!(kinds(&format!("key: {google}")), ["Google API key"]);
    let aws = ["AKIA", "Q7RK2MVX9LPA4STZ"].concat();
    assert_eq!(kinds(&format!("id = {aws}")), ["AWS access key"]);
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n".repeat(3);
    let pem = ["-----BEGIN RSA ", "PRIVATE KEY-----\n", &body, "-----END RSA PRIVATE KEY-----"].concat();
    let found = SecretScanner::default().find(&format!("x\n{pem}\ny"));
    assert_eq!((&*found[0].kind, found[0].value.as_str()), ("private key", pem.as_str()));
}

#[test]
fn code_lock_files_hashes_images_and_samples_are_left_alone() {
    let hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let base64 =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let begin = ["-----BEGIN ", "PRIVATE KEY-----"].concat();
    for text in [
        format!("checksum = \"{hash}\""),
        format!("\"integrity\": \"sha512-{base64}\""),
        format!("data:image/png;base64,{}", base64.repeat(50)),
        format!("abc{}", key("sk-ant-")),
        format!("{base64}AKIAQ7RK2MVX9LPA4STZ{base64}"),
        "sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".to_owned(),
        "sk-ant-your-key-goes-here-0123456789-and-so-on".to_owned(),
        "export OPENAI_API_KEY=sk-...".to_owned(),
        ["AKIA", "IOSFODNN7EXAMPLE"].concat(),
        "task-management-with-words-that-are-long-enough-0".to_owned(),
        "class=\"sk-spinner-with-many-words-that-go-on-and-on-1\"".to_owned(),
        "desk-0123456789abcdef0123456789abcdef".to_owned(),
        format!("if text.starts_with(\"{begin}\") {{ parse(text) }}"),
        "!function(e,t){var n=hf_a,r=npm_b;for(var gsk_x=0;gsk_x<10;gsk_x++)n.SG.x(e)}".to_owned(),
        "git commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned(),
        "550e8400-e29b-41d4-a716-446655440000".to_owned(),
        "https://example.com/sk-0123456789abcdef".to_owned(),
    ] {
        assert_eq!(kinds(&text), [""; 0], "{text}");
    }
}

fn prompt(texts: &[&str]) -> Prompt {
    let origin = || Origin::rule(ItemKind::History, "test");
    let segments = texts.iter().map(|text| Segment::new(*text, origin())).collect();
    let block = Block::new(Region::Log, Content::Text(segments));
    Prompt { messages: vec![PromptMessage::new(Role::User, vec![block])], ..Prompt::default() }
}

#[test]
fn a_text_is_scanned_once_and_redacted_the_same_way_each_time() {
    let secret = key("sk-ant-");
    let mut scanner = SecretScanner::default();
    let first = prompt(&[&format!("the key is {secret}.")]);
    let found = scanner.scan_prompt(&first);
    assert_eq!(found.len(), 1);
    assert!(scanner.scan_prompt(&first).is_empty(), "nothing is new");
    let mut redactions = Redactions::default();
    found.iter().for_each(|secret| redactions.insert(secret));
    let (mut once, mut again) = (first.clone(), first);
    assert!(redactions.apply(&mut once) && redactions.apply(&mut again));
    assert_eq!(once, again);
    let expected = format!("the key is {}.", found[0].placeholder());
    assert_eq!(
        once.blocks().next().unwrap().content.hash(),
        prompt(&[&expected]).blocks().next().unwrap().hash()
    );
    assert!(!format!("{once:?}").contains(&secret[10..]));
    assert!(!redactions.apply(&mut once), "nothing is left to replace");
    assert!(!found[0].placeholder().contains(&secret[8..12]) && !found[0].hint().contains(&secret[8..]));
}

#[test]
fn a_hint_shows_nothing_of_a_secret_that_has_no_form() {
    let password = FoundSecret { kind: "DB_PASSWORD of .env".into(), value: "correct horse battery".into() };
    assert_eq!(password.describe(), "DB_PASSWORD of .env, … (21 characters)");
    let key = FoundSecret { kind: "Anthropic key".into(), value: key("sk-ant-") };
    assert_eq!(key.describe(), "Anthropic key, sk-ant… (71 characters)");
}

#[test]
fn a_secret_in_two_segments_and_a_known_value_are_found() {
    let secret = key("sk-ant-");
    let (a, b) = secret.split_at(20);
    let known = FoundSecret { kind: "DB_PASSWORD of .env".into(), value: "correct horse battery".into() };
    let mut scanner = SecretScanner::new([known.clone()].into_iter().collect());
    let mut both = prompt(&[a, b, " correct horse battery"]);
    let found = scanner.scan_prompt(&both);
    assert_eq!(found.len(), 2, "{found:?}");
    let mut redactions = Redactions::default();
    found.iter().for_each(|secret| redactions.insert(secret));
    assert!(redactions.apply(&mut both));
    let text = format!("{both:?}");
    assert!(!text.contains("battery") && !text.contains(b), "{text}");
}

#[test]
fn a_value_that_becomes_known_is_found_by_every_scanner_also_in_what_was_scanned() {
    let known = KnownSecrets::default();
    let mut scanner = SecretScanner::new(known.clone());
    let text = prompt(&["the answer is renewed-token-of-the-test"]);
    assert_eq!(scanner.scan_prompt(&text), []);
    let token = FoundSecret { kind: "login at tickets".into(), value: "renewed-token-of-the-test".into() };
    let short = FoundSecret { kind: "login at tickets".into(), value: "answer".into() };
    known.add([token.clone(), short, token.clone()]);
    assert_eq!(scanner.scan_prompt(&text), std::slice::from_ref(&token));
    assert_eq!(scanner.scan_prompt(&text), [], "a text is scanned once");
    assert_eq!(SecretScanner::new(known).find("renewed-token-of-the-test"), [token]);
}

#[test]
fn text_with_the_beginnings_of_keys_has_none() {
    let text = "fn main() { let sk = hf_map(gsk, \"x-y_z\"); } // é\n".repeat(20_000);
    assert!(SecretScanner::default().find(&text).is_empty());
}
