//! What an extension does to the cache, through the binary: one that changes the system prompt with every prompt is
//! named by `why`, `cost` and `audit` with what it costs; one that says the same after everything cached costs nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use hardpan_test_support::SimulatorServer;
use support::{CommandOutput, Sandbox};

/// Says the time where everything after it is cached.
const CLOCK: &str = "export default (pi) => pi.on('before_agent_start', (event) => ({\n\
    systemPrompt: `It is ${Date.now()}.\\n${event.systemPrompt}`,\n\
}));\n";

/// Says it after everything that is cached.
const TAIL_CLOCK: &str = "export default (pi) => pi.on('before_agent_start', (event, ctx) => {\n\
    ctx.ephemeral(`It is ${Date.now()}.`);\n\
});\n";

const SCRIPT: &str = "turns:\n  - {when: {contains: Read it}, tool_calls: [{name: read, arguments: {path: src/lib.rs}}]}\n  - {when: {contains: It is 1}, repeat: always, text: I know the time.}\ndefault: {text: I have nothing to add.}\n";

/// A conversation of three prompts with an extension. Returns what the last one printed.
fn converse(sandbox: &Sandbox, source: &str) -> CommandOutput {
    // Long enough to be cached.
    let text: String = (0..800).map(|line| format!("pub fn number_{line}() {{}}\n")).collect();
    sandbox.write("work/src/lib.rs", &text);
    let extension = sandbox.write("extensions/clock.ts", source).display().to_string();
    let ask = |prompt: &str, more: &[&str]| {
        let ran = sandbox.run(&[&["-p", prompt, "--extension", &extension], more].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran
    };
    ask("Read it", &[]);
    ask("And now?", &["--continue"]);
    ask("And then?", &["--continue"])
}

#[test]
fn an_extension_that_breaks_the_cache_is_named_with_tokens_and_dollars() {
    let (sandbox, server) = (Sandbox::new(), SimulatorServer::start(SCRIPT));
    sandbox.use_provider(&server);
    let said = converse(&sandbox, CLOCK).stderr;
    let blame = "the extension clock changed the request: the system prompt changed";
    assert!(said.contains(blame), "{said}");
    let losses = sandbox.json(&["why", "--all", "--json"]);
    let losses = losses.as_array().unwrap();
    assert_eq!(losses.len(), 2, "{losses:?}");
    for loss in losses {
        let sentence = loss["sentence"].as_str().unwrap();
        let (tokens, rest) = sentence.split_once(" tokens ($").unwrap();
        assert!(tokens.replace(',', "").parse::<u64>().unwrap() > 1_000, "{sentence}");
        let dollars = rest.split_once(')').unwrap().0.parse::<f64>().unwrap();
        assert!(dollars > 0.001, "{sentence}");
        assert!(sentence.contains(blame), "{sentence}");
    }
    let cost = sandbox.run(&["cost"]);
    assert!(cost.stderr.contains("paid again for cached content: "), "{}", cost.stderr);
    assert!(cost.stderr.contains("(extension clock 2×)"), "{}", cost.stderr);
    let sessions = sandbox.work().with_file_name("home").join(".local/share/hardpan/sessions");
    let audit = sandbox.run(&["audit", &sessions.display().to_string()]);
    let report = String::from_utf8(audit.stdout).unwrap();
    assert!(report.contains("clock"), "{report}");
}

#[test]
fn an_extension_that_speaks_after_everything_cached_loses_nothing() {
    let (sandbox, server) = (Sandbox::new(), SimulatorServer::start(SCRIPT));
    sandbox.use_provider(&server);
    let ran = converse(&sandbox, TAIL_CLOCK);
    assert!(!ran.stderr.contains("paid again"), "{}", ran.stderr);
    // It reached the model.
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "I know the time.\n");
    let why = sandbox.run(&["why"]);
    assert!(why.stderr.starts_with("no losses in the "), "{}", why.stderr);
    let cost = sandbox.run(&["cost"]);
    assert!(!cost.stderr.contains("paid again"), "{}", cost.stderr);
}
