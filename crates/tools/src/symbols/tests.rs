use serde_json::json;

use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

fn shop() -> (TestWorkspace, Symbols) {
    let files = [
        ("README.md", "# Shop\n\n## Use\n"),
        (
            "shop/client.py",
            "from shop.retry import send_with_retry\n\nclass Client:\n    def ask(self, text):\n        return send_with_retry(self, text)\n",
        ),
        (
            "shop/retry.py",
            "MAX = 3\n\nclass RetryPolicy:\n    def delay(self, attempt): ...\n\ndef send_with_retry(client, request, policy=None): ...\n",
        ),
        ("shop/pay/card.py", "from shop.client import Client\n\ndef delay(): ...\n"),
        ("notes.txt", "nothing\n"),
    ];
    let workspace = workspace(&files);
    let symbols = Symbols(LiveIndex::new(workspace.scope.guard(), &workspace.scope.root, None));
    (workspace, symbols)
}

#[test]
fn a_name_is_answered_with_its_definitions_and_users() {
    let (workspace, symbols) = shop();
    let ask = |query: &str| workspace.text(&symbols, &json!({ "query": query }));
    insta::assert_snapshot!(ask("send_with_retry"), @r"
    shop/retry.py:6 function send_with_retry(client, request, policy?)
      used in shop/client.py
    ");
    insta::assert_snapshot!(ask("delay"), @r"
    shop/pay/card.py:3 function delay()
    shop/retry.py:4 method RetryPolicy.delay(self, attempt)
    ");
    for query in ["RetryPolicy.delay", "RetryPolicy::delay()", "`RetryPolicy.delay`"] {
        assert_eq!(ask(query), "shop/retry.py:4 method RetryPolicy.delay(self, attempt)");
    }
    let short = workspace.text(&symbols, &json!({"query": "delay", "limit": 1}));
    assert_eq!(
        short,
        "shop/pay/card.py:3 function delay()\n[1 more definition: raise limit, or ask for Parent.name]"
    );
}

#[test]
fn a_path_is_answered_with_its_outline() {
    let (workspace, symbols) = shop();
    let ask = |query: &str| workspace.text(&symbols, &json!({ "query": query }));
    insta::assert_snapshot!(ask("shop/retry.py"), @r"
    shop/retry.py, used by 1 file
    1 variable MAX
    3 class RetryPolicy
     4 method delay(self, attempt)
    6 function send_with_retry(client, request, policy?)
    ");
    insta::assert_snapshot!(ask("shop/"), @r"
    shop/
     client.py: Client
     retry.py: RetryPolicy, send_with_retry
    shop/pay/
     card.py: delay
    ");
    assert_eq!(ask("."), ask(&workspace.scope.root.to_string_lossy()));
    assert_eq!(ask("notes.txt"), "notes.txt\n[no definitions: show it with read]");
    let short = workspace.text(&symbols, &json!({"query": "shop/retry.py", "limit": 3}));
    assert!(
        short.ends_with("\n[1 more: raise limit, or ask for a name]") && !short.contains("delay"),
        "{short}"
    );
}

#[test]
fn words_find_symbols_and_an_unknown_name_its_neighbours() {
    let (workspace, symbols) = shop();
    let ask = |query: &str| workspace.text(&symbols, &json!({ "query": query }));
    insta::assert_snapshot!(ask("retry policy"), @r"
    shop/retry.py:3 class RetryPolicy
    shop/retry.py:6 function send_with_retry(client, request, policy?) ←1
    ");
    let unknown = workspace.failure(&symbols, &json!({"query": "Cleint"}));
    assert_eq!(
        unknown,
        "No symbol, file or folder is named like \"Cleint\". Nearest names: Client. Text in files: use grep."
    );
    assert!(workspace.failure(&symbols, &json!({"query": " "})).starts_with("The query is empty"));
}

#[test]
fn an_answer_follows_the_files() {
    let (workspace, symbols) = shop();
    workspace.write("shop/new.py", "def brand_new(): ...\n");
    let ask = |query: &str| workspace.call(&symbols, &json!({ "query": query }));
    assert!(!ask("brand_new").is_error);
    std::fs::remove_file(workspace.path("shop/new.py")).unwrap();
    assert!(ask("brand_new").is_error);
}

#[test]
fn nothing_outside_of_the_workspace_is_told() {
    let (workspace, symbols) = shop();
    std::fs::write(workspace.outside().join("secret.py"), "def secret(): ...\n").unwrap();
    #[cfg(unix)]
    workspace.link("linked.py", "../secret.py");
    for query in ["secret", "../secret.py", "linked.py", ".."] {
        let outcome = workspace.call(&symbols, &json!({ "query": query }));
        assert!(!format!("{:?}", outcome.content).contains("function secret"), "{query}: {outcome:?}");
    }
}
