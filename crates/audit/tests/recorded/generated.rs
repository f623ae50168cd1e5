//! A session of the real agent with its real tools, billed by the simulator: some files are read and
//! changed again and again, nothing is folded, and three times the cache is lost, each time for
//! another reason.

use std::fmt::Write as _;
use std::sync::LazyLock;

use hardpan_audit::Recording;
use hardpan_context::KeepLevel;
use hardpan_prompt::TokenUsage;
use hardpan_test_support::{TestAgent, TestAgentBuilder, code};
use hardpan_tools::ToolState;

const STEPS: usize = 40;
const FILES: usize = 6;

/// Before these steps something happens that loses the cache.
pub const PAUSE_BEFORE: usize = 12;
pub const EVICTION_BEFORE: usize = 20;
pub const SWITCH_BEFORE: usize = 28;

/// Each step reads a file, changes it, and says so.
pub const REQUESTS_PER_STEP: usize = 3;

/// What was recorded, and what the provider reported meanwhile.
pub struct GeneratedSession {
    pub recording: Recording,
    pub usages: Vec<TokenUsage>,
}

/// The session, made once for all tests.
pub static SESSION: LazyLock<GeneratedSession> = LazyLock::new(|| {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(generate())
});

/// The step's file; some files are used more often than others.
fn file(step: usize) -> String {
    format!("src/part_{}.rs", step * step % FILES)
}

fn script() -> String {
    let mut script = "turns:\n".to_owned();
    for step in 0..STEPS {
        let file = file(step);
        let lines = [
            format!("  - when: {{contains: 'Step {step}.'}}"),
            format!("    tool_calls: [{{name: read, arguments: {{path: {file}}}}}]"),
            "  - when: {has_tool_result: read}\n    tool_calls:".to_string(),
            format!(
                "      - name: edit\n        arguments: {{path: {file}, old_text: value_{step} =, new_text: total_{step} =}}"
            ),
        ];
        lines.iter().for_each(|line| writeln!(script, "{line}").expect("a string takes everything"));
    }
    script + "default: {text: 'It is done.'}\n"
}

fn builder() -> TestAgentBuilder {
    let builder = TestAgent::with_real_tools()
        .simulator_in_process()
        .window(500_000)
        .keep(KeepLevel::All)
        .script(script());
    (0..FILES).fold(builder, |builder, n| builder.file(&format!("src/part_{n}.rs"), &code(n, 80)))
}

async fn generate() -> GeneratedSession {
    let test_agent = builder().start().await;
    for step in 0..STEPS {
        test_agent.pass_minutes(if step == PAUSE_BEFORE { 12 } else { 1 });
        match step {
            EVICTION_BEFORE => test_agent.clear_caches(),
            SWITCH_BEFORE => {
                test_agent.agent.switch_tool("fetch", ToolState::Off).await.expect("there is such a tool");
                test_agent.agent.declare_tools_now().await.expect("it is stored");
            }
            _ => {}
        }
        test_agent.say(&format!("Step {step}. Go on.")).await;
        assert!(test_agent.read(&file(step)).contains(&format!("total_{step} =")), "the model changed it");
    }
    test_agent.stored().await;
    let recording = Recording::open(&test_agent.session_path()).expect("it can be read");
    GeneratedSession { recording, usages: test_agent.usages() }
}
