use CacheOutcome::{Hit, Loss};

use super::*;

/// Claude Code: hour writes, an answer in two lines, parallel results, a sub-agent in the same file, and a silence.
const CLAUDE_CODE: &str = r#"
{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-08-14T09:00:00Z","cwd":"/p","message":{"role":"user","content":"Why?"}}
{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","timestamp":"2026-08-14T09:00:03Z","message":{"id":"m1","role":"assistant","model":"claude-opus-4-5-20251101","content":[{"type":"text","text":"Let me look."}],"usage":{"input_tokens":3,"cache_creation_input_tokens":18000,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":18000},"output_tokens":1}}}
{"type":"assistant","uuid":"a2","parentUuid":"a1","sessionId":"s","timestamp":"2026-08-14T09:00:05Z","message":{"id":"m1","role":"assistant","model":"claude-opus-4-5-20251101","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"/p/a.rs"}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"cache_creation_input_tokens":18000,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":18000},"output_tokens":90}}}
{"type":"user","uuid":"r1","parentUuid":"a2","sessionId":"s","timestamp":"2026-08-14T09:00:06Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"     1→fn a() {}"}]}}
{"type":"user","uuid":"x1","parentUuid":null,"isSidechain":true,"sessionId":"s","timestamp":"2026-08-14T09:00:06Z","message":{"role":"user","content":"Search."}}
{"type":"assistant","uuid":"x2","parentUuid":"x1","isSidechain":true,"sessionId":"s","timestamp":"2026-08-14T09:00:09Z","message":{"id":"mx","role":"assistant","model":"claude-haiku-4-5-20251001","content":[{"type":"text","text":"Found."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"cache_creation_input_tokens":5000,"cache_read_input_tokens":0,"output_tokens":9}}}
{"type":"assistant","uuid":"a3","parentUuid":"r1","sessionId":"s","timestamp":"2026-08-14T09:00:10Z","message":{"id":"m2","role":"assistant","model":"claude-opus-4-5-20251101","content":[{"type":"text","text":"Because."}],"stop_reason":"end_turn","usage":{"input_tokens":2,"cache_creation_input_tokens":400,"cache_read_input_tokens":18000,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":400},"output_tokens":12}}}
{"type":"user","uuid":"u2","parentUuid":"a3","sessionId":"s","timestamp":"2026-08-14T09:40:00Z","message":{"role":"user","content":"And now?"}}
{"type":"assistant","uuid":"a4","parentUuid":"u2","sessionId":"s","timestamp":"2026-08-14T09:40:04Z","message":{"id":"m3","role":"assistant","model":"claude-opus-4-5-20251101","content":[{"type":"text","text":"Still."}],"stop_reason":"end_turn","usage":{"input_tokens":2,"cache_creation_input_tokens":100,"cache_read_input_tokens":18400,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":100},"output_tokens":12}}}
{"type":"user","uuid":"u3","parentUuid":"a4","sessionId":"s","timestamp":"2026-08-14T11:40:00Z","message":{"role":"user","content":"And now?"}}
{"type":"assistant","uuid":"a5","parentUuid":"u3","sessionId":"s","timestamp":"2026-08-14T11:40:04Z","message":{"id":"m4","role":"assistant","model":"claude-opus-4-5-20251101","content":[{"type":"text","text":"No."}],"stop_reason":"end_turn","usage":{"input_tokens":2,"cache_creation_input_tokens":18700,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":18700},"output_tokens":12}}}
"#;

#[test]
fn claude_code_hours_are_paid_and_kept_as_such() {
    let audit = audit("c.jsonl", CLAUDE_CODE);
    assert_eq!(audit.agent, SourceAgent::ClaudeCode);
    let TokenUsage { input, cache_read: read, cache_write_5m: write, cache_write_1h: write_1h, .. } =
        audit.billed.tokens;
    assert_eq!((input, read, write, write_1h), (12, 36_400, 5000, 37_200));
    assert!((audit.billed.cost - (12.0 + 3640.0 + 1.25 * 5000.0 + 2.0 * 37_200.0)).abs() < 1e-6);
    assert_eq!(outcomes(&audit), [(Hit, Hit), (Hit, Hit), (Hit, Hit), (Hit, Hit), (Loss, Loss)]);
    assert_eq!(
        losses(&audit),
        [(4, 18_500, "the cache expired after 60 minutes (120 minutes unused)".to_owned())]
    );
}

/// Codex: the usage comes after the answer, includes what was cached, and is written twice.
const CODEX: &str = r#"
{"timestamp":"2026-08-14T09:00:00Z","type":"session_meta","payload":{"id":"s","cwd":"/p","model_provider":"openai"}}
{"timestamp":"2026-08-14T09:00:00Z","type":"turn_context","payload":{"model":"gpt-5.1-codex","effort":"medium"}}
{"timestamp":"2026-08-14T09:00:01Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Why?"}]}}
{"timestamp":"2026-08-14T09:00:04Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{\"command\":[\"ls\"]}","call_id":"c1"}}
{"timestamp":"2026-08-14T09:00:04Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9000,"cached_input_tokens":0,"output_tokens":50,"total_tokens":9050},"last_token_usage":{"input_tokens":9000,"cached_input_tokens":0,"output_tokens":50,"total_tokens":9050}}}}
{"timestamp":"2026-08-14T09:00:04Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9000,"cached_input_tokens":0,"output_tokens":50,"total_tokens":9050},"last_token_usage":{"input_tokens":9000,"cached_input_tokens":0,"output_tokens":50,"total_tokens":9050}}}}
{"timestamp":"2026-08-14T09:00:05Z","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a.rs"}}
{"timestamp":"2026-08-14T09:00:08Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Because."}]}}
{"timestamp":"2026-08-14T09:00:08Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":18200,"cached_input_tokens":8960,"output_tokens":70,"total_tokens":18270},"last_token_usage":{"input_tokens":9200,"cached_input_tokens":8960,"output_tokens":20,"total_tokens":9220}}}}
{"timestamp":"2026-08-14T09:01:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"And?"}]}}
{"timestamp":"2026-08-14T09:01:03Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"So."}]}}
{"timestamp":"2026-08-14T09:01:03Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":27500,"cached_input_tokens":11008,"output_tokens":90,"total_tokens":27590},"last_token_usage":{"input_tokens":9300,"cached_input_tokens":2048,"output_tokens":20,"total_tokens":9320}}}}
"#;

#[test]
fn codex_pays_less_for_what_was_cached_and_nothing_for_writing() {
    let audit = audit("rollout.jsonl", CODEX);
    assert_eq!((audit.agent, audit.requests.len()), (SourceAgent::Codex, 3));
    let TokenUsage { input, cache_read: read, cache_write_5m: write, .. } = audit.billed.tokens;
    assert_eq!((input, read, write), (16_492, 11_008, 0));
    assert!((audit.billed.cost - (16_492.0 + 1100.8)).abs() < 1e-6);
    assert_eq!(outcomes(&audit), [(Hit, Hit), (Hit, Hit), (Hit, Loss)]);
    let words = "all but the first 2,048 tokens were lost while warm: something after them changed, or the provider no longer had it";
    assert_eq!(losses(&audit), [(2, 9088 - 2048, words.to_owned())]);
    assert!(!audit.losses[0].is_avoidable, "nobody promised to keep it");
}

/// Our own: the verdict of the time says why, and a commit message is a prompt of its own.
const HARDPAN: &str = r#"
{"type":"session","version":1,"id":"s","time":"2026-08-14T09:00:00Z","cwd":"/p"}
{"type":"message","id":"u1","parent":null,"time":"2026-08-14T09:00:01Z","message":{"id":"u1","role":"user","content":[{"type":"text","text":"Why?"}]}}
{"type":"message","id":"a1","parent":"u1","time":"2026-08-14T09:00:05Z","message":{"id":"a1","role":"assistant","content":[{"type":"text","text":"Because."}]}}
{"type":"request","id":"q1","parent":"a1","request":{"purpose":"turn","provider":"anthropic","model":"claude-sonnet-5","message":"a1","usage":{"input":5,"cache_read":0,"cache_write_5m":9000,"output":4},"dollars":0.1,"started":"2026-08-14T09:00:02Z","ended_ms":3000,"layout":"strata"}}
{"type":"request","id":"q2","parent":"q1","request":{"purpose":"commit","provider":"anthropic","model":"claude-sonnet-5","usage":{"input":700,"output":4},"dollars":0.1,"started":"2026-08-14T09:00:10Z","ended_ms":900,"layout":"strata"}}
{"type":"message","id":"u2","parent":"q2","time":"2026-08-14T09:00:20Z","message":{"id":"u2","role":"user","content":[{"type":"text","text":"And?"}]}}
{"type":"message","id":"a2","parent":"u2","time":"2026-08-14T09:00:25Z","message":{"id":"a2","role":"assistant","content":[{"type":"text","text":"So."}]}}
{"type":"request","id":"q3","parent":"a2","request":{"purpose":"turn","provider":"anthropic","model":"claude-sonnet-5","message":"a2","usage":{"input":5,"cache_read":3000,"cache_write_5m":6200,"output":4},"dollars":0.1,"started":"2026-08-14T09:00:21Z","ended_ms":3000,"layout":"strata","verdict":{"expected_read":9000,"read":3000,"lost_tokens":6000,"lost_dollars":0.01,"cause":"folded","ours":"us"}}}
"#;

#[test]
fn our_own_sessions_say_themselves_why() {
    let audit = audit("own.jsonl", HARDPAN);
    assert_eq!((audit.agent, audit.problems, audit.requests.len()), (SourceAgent::Hardpan, 0, 3));
    assert_eq!(losses(&audit), [(2, 6000, "a fold laid the items anew".to_owned())]);
    assert!(audit.losses[0].is_avoidable);
}

#[test]
fn a_session_without_requests_and_figures_beyond_reason_are_no_trouble() {
    let empty = Audit::from_recording(&Recording::new("s.jsonl", SourceAgent::Pi), Catalogue::builtin());
    assert_eq!((empty.requests.len(), empty.billed, empty.correct_predictions()), (0, Bill::default(), 0));
    let most = u64::MAX;
    let audit = PiSession::new().ask().call([most, most, most]).result().answer([0, most, most]).audit();
    assert_eq!(audit.requests.len(), 2);
    assert!(audit.billed.cost.is_finite() && audit.stable_prefix_cost.is_finite());
}
