use super::*;

/// A session of Claude Code that records its requests as they are sent: each test changes one thing
/// before the last one.
struct ClaudeSession {
    lines: Vec<Value>,
    now: i64,
    requests: usize,
    leaf: Option<String>,
    tools: Vec<Value>,
    system: &'static str,
    params: Value,
    messages: Vec<String>,
}

impl ClaudeSession {
    fn new() -> Self {
        ClaudeSession {
            lines: Vec::new(),
            now: START,
            requests: 0,
            leaf: None,
            tools: vec![
                json!({"name": "Read", "description": "reads"}),
                json!({"name": "Bash", "description": "runs"}),
            ],
            system: "You are an agent.",
            params: json!({"model": "claude-sonnet-5", "betas": ["b1", "a1"], "max_tokens": 64000,
                "thinking": {"type": "adaptive", "display": "omitted"}, "output_config": {"effort": "high"}}),
            messages: Vec::new(),
        }
    }

    /// A prompt and its answer, for read and written tokens. The request is written in full.
    fn turn(mut self, read: u64, write: u64) -> Self {
        let number = self.requests;
        self.requests += 1;
        self.messages.push(format!("hash of prompt {number}"));
        let shape = json!({"system": [{"type": "text", "text": self.system}], "tools": self.tools});
        let shape_hash = shape.to_string();
        let (user, answer, request) = (format!("u{number}"), format!("a{number}"), format!("r{number}"));
        let at = |ms: i64| jiff::Timestamp::from_millisecond(ms).unwrap().to_string();
        let common = json!({"sessionId": "s"});
        let line = |mut line: Value| {
            line["sessionId"] = common["sessionId"].clone();
            line
        };
        let usage = json!({"input_tokens": 2, "output_tokens": 9, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": write});
        self.lines.extend([
            line(json!({"type": "user", "uuid": user, "parentUuid": self.leaf, "timestamp": at(self.now),
                "message": {"role": "user", "content": "Why?"}})),
            line(json!({"type": "api-request-shape", "shapeHash": shape_hash, "shape": shape})),
            line(json!({"type": "api-request", "id": request, "timestamp": at(self.now + 50), "querySource": "sdk",
                "shapeHash": shape_hash, "params": self.params, "keep": 0, "tail": self.messages,
                "cacheControl": [{"path": ["system", 0]}, {"path": ["messages", self.messages.len() - 1, "content", 0]}]})),
            line(json!({"type": "assistant", "uuid": answer, "parentUuid": user, "timestamp": at(self.now + 4000),
                "requestRef": request, "message": {"id": format!("m{number}"), "role": "assistant",
                    "model": "claude-sonnet-5", "content": [{"type": "text", "text": "So."}], "usage": usage}})),
        ]);
        self.messages.push(format!("hash of answer {number}"));
        self.leaf = Some(answer);
        self.now += MINUTE;
        self
    }

    fn audit(&self) -> Audit {
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        audit("c.jsonl", &text)
    }
}

/// The words of the only loss, after a change before the third request.
fn cause_of(change: impl Fn(&mut ClaudeSession)) -> (String, CauseSource, bool) {
    let mut session = ClaudeSession::new().turn(0, 20_000).turn(20_000, 9000);
    change(&mut session);
    let audit = session.turn(0, 29_500).audit();
    let [loss] = &audit.losses[..] else { panic!("{:?}", audit.losses) };
    assert_eq!((loss.request, loss.tokens), (2, 29_000));
    (loss.cause.describe(), loss.source, loss.is_avoidable)
}

fn told(words: &str, is_avoidable: bool) -> (String, CauseSource, bool) {
    (words.to_owned(), CauseSource::Request, is_avoidable)
}

#[test]
fn a_session_that_only_adds_has_no_loss_and_starts_when_it_was_sent() {
    let audit = ClaudeSession::new().turn(0, 20_000).turn(20_000, 9000).turn(29_000, 500).audit();
    assert_eq!(audit.losses, []);
    assert_eq!(audit.requests[0].at, Moment(START + 50));
}

#[test]
fn tools_and_system_prompt_are_read_off_the_requests() {
    let tools = |session: &mut ClaudeSession| session.tools[1] = json!({"name": "Edit"});
    assert_eq!(cause_of(tools), told("the tools changed (added Edit; removed Bash)", true));
    let text = |session: &mut ClaudeSession| session.tools[1]["description"] = "runs things".into();
    assert_eq!(cause_of(text), told("the tools changed (changed Bash)", true));
    let system = |session: &mut ClaudeSession| session.system = "You are another agent.";
    assert_eq!(cause_of(system), told("the system prompt changed (block 1 of 1)", true));
}

#[test]
fn the_message_that_was_edited_is_named() {
    let edited = |session: &mut ClaudeSession| session.messages[1] = "another hash".into();
    assert_eq!(cause_of(edited), told("message 2 of 3 changed", true));
    let removed = |session: &mut ClaudeSession| _ = session.messages.remove(0);
    assert_eq!(cause_of(removed), told("message 1 of 3 was taken out", true));
}

#[test]
fn settings_are_told_apart() {
    let effort = |session: &mut ClaudeSession| session.params["output_config"]["effort"] = "low".into();
    assert_eq!(cause_of(effort), told("the effort setting changed", false));
    let thinking = |session: &mut ClaudeSession| session.params["thinking"]["type"] = "disabled".into();
    assert_eq!(cause_of(thinking), told("the thinking setting changed", false));
    let betas = |session: &mut ClaudeSession| session.params["betas"] = json!(["a1", "b2"]);
    assert_eq!(cause_of(betas), told("a setting changed (betas)", false));
}

#[test]
fn what_does_not_matter_is_no_cause() {
    let evicted = "both requests agree, and the provider no longer had the prefix";
    let shown = |session: &mut ClaudeSession| {
        session.params["thinking"]["display"] = "summarized".into();
        session.params["max_tokens"] = 32_000.into();
        session.params["betas"] = json!(["a1", "b1"]);
    };
    assert_eq!(cause_of(shown), told(evicted, false));
    assert_eq!(cause_of(|_| {}), told(evicted, false));
}

#[test]
fn expiry_comes_before_what_else_changed() {
    let (words, source, _) = cause_of(|session| {
        session.now += 30 * MINUTE;
        session.system = "You are another agent.";
    });
    assert_eq!(
        (&*words, source),
        ("the cache expired after 5 minutes (31 minutes unused)", CauseSource::Request)
    );
}

#[test]
fn the_tools_of_pi_are_named_too() {
    let system = |tools: Value| {
        json!({"type": "message", "timestamp": START, "message": {
        "role": "system", "content": "", "sections": {"rules": "Be brief."}, "toolsAdded": tools}})
    };
    let talk =
        PiSession::new().line(system(json!([{"name": "read"}]))).ask().answer([5, 0, 20_000]).wait(MINUTE);
    let lost = || talk.clone().line(system(json!([{"name": "grep"}]))).ask().answer([5, 0, 20_400]).audit();
    assert_eq!(losses(&lost())[0].2, "the tools changed (added grep)");
    assert_eq!(lost().losses[0].source, CauseSource::Request);
    // Without a change of what is recorded, the messages may still have changed.
    let same = talk.ask().answer([5, 0, 20_400]).audit();
    assert_eq!(same.losses[0].source, CauseSource::Inferred);
}

#[test]
fn the_effort_of_codex_is_named_though_its_cache_is_automatic() {
    let line = |second: u64, kind: &str, payload: Value| json!({"timestamp": format!("2026-11-14T09:00:{second:02}Z"), "type": kind, "payload": payload});
    let context = |second: u64, effort: &str| {
        line(
            second,
            "turn_context",
            json!({"model": "gpt-5.5", "collaboration_mode": {"settings": {"reasoning_effort": effort}}}),
        )
    };
    let answer = |second: u64| {
        line(
            second,
            "response_item",
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "So."}]}),
        )
    };
    let usage = |second: u64, total: u64, input: u64, cached: u64| {
        let last = json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": 5});
        line(
            second,
            "event_msg",
            json!({"type": "token_count", "info": {"total_token_usage": {"total_tokens": total}, "last_token_usage": last}}),
        )
    };
    let lines = [
        line(
            0,
            "session_meta",
            json!({"id": "s", "cwd": "/p", "model_provider": "openai", "base_instructions": {"text": "Be."}}),
        ),
        context(0, "high"),
        answer(2),
        usage(2, 9000, 9000, 0),
        answer(4),
        usage(4, 18_000, 9200, 8960),
        context(5, "low"),
        answer(7),
        usage(7, 27_000, 9400, 0),
    ];
    let audit = audit("rollout.jsonl", &lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    assert_eq!(losses(&audit)[0].2, "the effort setting changed");
    assert_eq!(audit.losses[0].source, CauseSource::Request);
}
