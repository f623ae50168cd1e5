use hardpan_models::Catalogue;
use serde_json::json;

use super::*;
use crate::Recording;

/// Three requests of pi; before the last one the system prompt changed, and nothing says so.
const PI: &str = r#"{"type":"session","id":"s","timestamp":"2026-08-14T09:00:00Z","cwd":"/p","provider":"anthropic","modelId":"claude-sonnet-4-5"}
{"type":"message","timestamp":"2026-08-14T09:00:01Z","message":{"role":"user","content":[{"type":"text","text":"Why?"}]}}
{"type":"message","timestamp":"2026-08-14T09:00:05Z","message":{"role":"assistant","provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"toolUse","content":[{"type":"toolCall","id":"c","name":"read","arguments":{"path":"a"}}],"usage":{"input":5,"output":9,"cacheRead":0,"cacheWrite":20000},"timestamp":1786698002000}}
{"type":"message","timestamp":"2026-08-14T09:00:06Z","message":{"role":"toolResult","toolCallId":"c","toolName":"read","content":[{"type":"text","text":"a"}]}}
{"type":"message","timestamp":"2026-08-14T09:00:09Z","message":{"role":"assistant","provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop","content":[{"type":"text","text":"So."}],"usage":{"input":4,"output":9,"cacheRead":20000,"cacheWrite":10000},"timestamp":1786698006000}}
{"type":"message","timestamp":"2026-08-14T09:01:00Z","message":{"role":"user","content":[{"type":"text","text":"And?"}]}}
{"type":"message","timestamp":"2026-08-14T09:01:05Z","message":{"role":"assistant","provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop","content":[{"type":"text","text":"So."}],"usage":{"input":3,"output":9,"cacheRead":0,"cacheWrite":30500},"timestamp":1786698060000}}
"#;

fn audit(name: &str, text: &str) -> Audit {
    Audit::from_recording(&Recording::parse(name, text.as_bytes()).unwrap(), Catalogue::builtin())
}

#[test]
fn the_json_is_the_contract_and_nothing_else() {
    let report = serde_json::to_value(Report::from_audits(&[audit("s.jsonl", PI)])).unwrap();
    let expected = json!({"causes": [{
        "cause": "lost while warm: the system prompt or the tools changed",
        "losses": 1,
        "tokens": 30_000,
        "dollars": 0.1035,
        "certainty": "inferred",
        "avoidable_by": "agent",
        "advice": "keep tools, MCP servers and instruction files fixed within a conversation; if they were, the agent changes them: tell its makers",
    }], "sessions": [{
        "file": "s.jsonl",
        "agent": "pi",
        "requests": 3,
        "billed": {"input": 12, "read": 20_000, "write": 60_500, "output": 27, "cost": 77_637.0, "dollars": 0.232_911},
        "predicted": {"input": 12, "read": 50_000, "write": 30_500, "cost": 43_137.0},
        "right": 2,
        "losses": [{
            "request": 2,
            "at": "2026-08-14T09:01:00Z",
            "tokens": 30_000,
            "dollars": 0.1035,
            "cause": "the whole prefix was lost while warm: the system prompt or the tools changed",
            "ours": true,
            "source": "inferred",
        }],
        "stable_prefix_cost": 43_137.0,
        "side_requests": [],
        "total_dollars": 0.233_316,
        "recorded_dollars": null,
        "unpriced": [],
    }]});
    assert_eq!(report, expected);
}

#[test]
fn what_has_no_price_has_no_dollars() {
    let text = PI.replace("claude-sonnet-4-5", "claude-nobody-9");
    let report = serde_json::to_value(Report::from_audits(&[audit("s.jsonl", &text)])).unwrap();
    let session = &report["sessions"][0];
    assert_eq!(
        (&session["billed"]["dollars"], &session["losses"][0]["dollars"]),
        (&json!(null), &json!(null))
    );
    assert_eq!(session["billed"]["cost"], json!(77_637.0));
    let summary = summary(&[audit("s.jsonl", &text)], 10);
    assert!(summary.starts_with("s.jsonl (pi): no price is known for 3 billed requests\n"), "{summary}");
    assert!(summary.contains("\nNo price is known of claude-nobody-9: not in the dollars.\n"), "{summary}");
}

#[test]
fn the_summary_tells_all_there_is() {
    let expected = "\
s.jsonl (pi): $0.233 for 3 billed requests

prompts        $0.233         80,512 tokens  24.8% read from the cache, 75.1% written to it, 0.0% neither
answers       $0.0004             27 tokens  reasoning included
paid again     $0.104         30,000 tokens  44.4% of the bill, in 1 request

Why it was paid again, the dearest first:

   $0.104  100.0%     1×  lost while warm: the system prompt or the tools changed
                          30,000 tokens · inferred · the agent could have avoided it
                          do: keep tools, MCP servers and instruction files fixed within a conversation; if they were, the agent changes them: tell its makers

  dollars     tokens  request  at                    certainty  cause
   $0.104     30,000        2  2026-08-14T09:01:00   inferred   the whole prefix was lost while warm: the system prompt or the tools changed

In prices of one uncached input token: 77,637 paid for prompts; stable 43,137 (55.6% of that, $0.129).
The audit foretold 66.7% of the requests rightly, hit or loss.

Words:
  paid again     text that the provider had in its cache, or should have had, at more than the price of reading it
  read, written  input that came from the provider's cache, at about a tenth of the price, or was stored in it
  stable         what the prompts would have cost if every request had only added to the one before
  recorded       certain: the agent itself wrote down why, when it happened
  compared       certain: the recording holds both requests, and they differ there
  inferred       likely: concluded from times, sizes and the conversation
";
    assert_eq!(summary(&[audit("s.jsonl", PI)], 10), expected);
}

#[test]
fn several_sessions_are_listed_and_the_rest_counted() {
    let audits: Vec<Audit> = (0..12).map(|n| audit(&format!("s{n:02}.jsonl"), PI)).collect();
    let summary = summary(&audits, 3);
    assert!(summary.starts_with("12 sessions: $2.80 for 36 billed requests\n"), "{summary}");
    assert!(summary.contains("\nand 2 more (--json has all)\n"), "{summary}");
    assert!(summary.contains("\nand 9 more (--top 12 shows all)\n"), "{summary}");
    // Equal causes are one: twelve times the same.
    assert!(summary.contains("\n    $1.24  100.0%    12×  lost while warm: "), "{summary}");
}

#[test]
fn nothing_of_a_session_is_markup_in_the_page() {
    let evil = "<img src=x onerror=alert(1)>\"'&\u{1b}[2J\u{202e}.jsonl";
    let models = PI.replacen("claude-sonnet-4-5\",\"stopReason", "<b>\\\"m</b>\",\"stopReason", 2);
    let page = page(&[audit(evil, &models), audit("s.jsonl", PI)], 10);
    assert!(!page.contains("<img") && !page.contains("<b>\"m"), "{page}");
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;\u{fffd}[2J\u{fffd}.jsonl"));
    assert!(page.contains("the model changed from &lt;b&gt;&quot;m&lt;/b&gt; to claude-sonnet-4-5"));
    assert!(!page.chars().any(|c| c.is_control() && c != '\n'));
}

/// At 360 pixels no table is wider than the screen: its rows become blocks, whose cells name their
/// columns.
#[test]
fn the_page_fits_a_phone() {
    let page = page(&[audit("s.jsonl", PI), audit("t.jsonl", PI)], 10);
    assert!(page.contains("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"));
    assert_eq!(page.matches("<table>").count(), page.matches("<div class=\"wide\"><table>").count());
    let narrow = page.split("@media (max-width: 40rem) {").nth(1).unwrap();
    for rule in [".wide tr:first-child { display: none; }", ".wide td { display: block; width: auto; }"] {
        assert!(narrow.contains(rule), "{rule}");
    }
    assert_eq!(page.matches("<td").count(), page.matches(" data-name=\"").count());
    // Nothing has a width in pixels that a phone does not have.
    assert!(!page.contains("min-width") && !page.contains("width: 900"));
}

#[test]
fn the_page_stands_alone_and_marks_each_loss_in_each_plot() {
    let page = page(&[audit("s.jsonl", PI)], 10);
    for foreign in ["http:", "https:", "src=", "<script", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
    assert_eq!(page.matches("<svg ").count(), 3);
    assert_eq!(page.matches("<g class=\"loss\">").count(), 3);
    // Paid and stable, hit rate, size.
    assert_eq!(page.matches("<polyline ").count(), 4);
}
