//! Random sessions with panels, in which somebody else changes the folder: at any point of one, a process
//! that knows nothing but what is stored shows the request that is sent next.

use super::restart::{RpcProcess, panel_project, run};
use super::support::{LAYOUTS, Sandbox};
use super::{RecordingSimulator, assert_same, clock, run as show, without_present_time};

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// A call of the model, as a line of the script. Some make no sense, and are answered with that.
fn random_call(random: &mut Random) -> String {
    let number = random.below(3);
    let panel =
        |action: &str, rest: String| format!("{{name: panel, arguments: {{action: {action}{rest}}}}}");
    let file = || format!(", target: src/file{number}.rs");
    let id = |random: &mut Random| format!(", target: P{}", 1 + random.below(14));
    match random.below(22) {
        0 => panel("todo_add", format!(", text: \"thing {number}\"")),
        1 => panel("todo_update", format!(", target: \"{number}\", text: done")),
        2 => panel("todo_remove", ", target: done".into()),
        3 | 4 => panel("open", file()),
        5 => panel("close", file()),
        6 => panel("close", id(random)),
        7 => panel("hide", id(random)),
        8 => panel("show", id(random)),
        9 => panel("skill_load", ", target: sort".into()),
        10 => panel(if number == 0 { "tool_on" } else { "tool_off" }, ", target: fetch".into()),
        11 => panel("tree_filter", ", text: \"**/*.rs\"".into()),
        12 => panel("tree_describe", format!("{}, text: number {number}", file())),
        13 => panel("memory_write", format!(", target: m{number}, text: remember {number}")),
        14 => panel("memory_remove", format!(", target: m{number}")),
        15 => panel("timer", format!(", target: \"{}\", text: look again", 60 + number)),
        16 => panel("log", format!(", text: noted {number}")),
        17 => {
            let cell = "a long line of the cell\\n".repeat(400 * number as usize + 1);
            panel("scratch_write", format!(", target: c{number}, text: \"{cell}\""))
        }
        18 => panel("page", format!(", target: P9, text: \"{}\"", number + 1)),
        19 => panel("scratch_clear", format!(", target: c{number}")),
        20 => "{name: git, arguments: {command: log --oneline}}".into(),
        _ => "{name: git, arguments: {command: status --short}}".into(),
    }
}

/// What somebody else does meanwhile.
fn random_change(random: &mut Random, sandbox: &Sandbox) {
    let number = random.below(4);
    match random.below(6) {
        // Not a file that the model opens: a process that runs tells it who changed one, besides.
        0 => drop(sandbox.write("work/notes.md", format!("Remember number {number}.\n"))),
        1 => drop(sandbox.write(&format!("work/src/new{number}.rs"), "fn new() {}\n")),
        2 => drop(std::fs::remove_file(sandbox.work().join(format!("src/new{number}.rs")))),
        3 => drop(sandbox.write(&format!("work/.hardpan/memories/m{number}.md"), "by a person\n")),
        4 => run("git", &["commit", "-q", "--allow-empty", "-am", "another commit"], &sandbox.work()),
        _ => {}
    }
}

/// How many prompts a random session has.
const STEPS: usize = 6;

fn compare_at_every_point(layout: &str, seed: u64) {
    let mut random = Random(seed);
    let step = |number: usize| format!("Step {number} of the work.");
    let mut script = "turns:\n".to_owned();
    for number in 0..STEPS {
        script.push_str(&format!("  - when: {{contains: \"{}\"}}\n    text: I do it.\n", step(number)));
        script.push_str("    tool_calls:\n");
        for _ in 0..=random.below(4) {
            script.push_str(&format!("      - {}\n", random_call(&mut random)));
        }
    }
    script.push_str("default: {text: That is all.}\n");
    let provider = Sandbox::new();
    let simulator = RecordingSimulator::start(&provider, &script);
    let sandbox = panel_project(&simulator);
    for number in 0..3 {
        sandbox.write(&format!("work/src/file{number}.rs"), format!("fn number_{number}() {{}}\n"));
    }
    let mut process = RpcProcess::start(&sandbox, &["--layout", layout]);
    process.prompt("Hello, look at @notes.md.");
    for number in 0..STEPS {
        random_change(&mut random, &sandbox);
        let prompt = step(number);
        let from = clock();
        let shown = show(&sandbox, &["request", &prompt, "--json", "--continue"]);
        let before = simulator.bodies().len();
        process.prompt(&prompt);
        let to = clock();
        let shown = String::from_utf8(shown.stdout).expect("JSON");
        let sent = simulator.bodies().swap_remove(before);
        let [shown, sent] = [shown, sent].map(|body| without_present_time(&body, from, to));
        assert_same(&format!("{layout}, seed {seed}, {prompt}\n{script}"), &shown, &sent);
    }
}

/// How many sessions are tried in each layout: one, or as many as `HARDPAN_CASES` says.
fn cases() -> u64 {
    std::env::var("HARDPAN_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1)
}

#[test]
fn at_any_point_of_a_session_another_process_shows_the_next_request() {
    for case in 0..cases() {
        std::thread::scope(|scope| {
            for (seed, layout) in (1..).zip(LAYOUTS) {
                scope.spawn(move || compare_at_every_point(layout, seed + 10 * case));
            }
        });
    }
}
