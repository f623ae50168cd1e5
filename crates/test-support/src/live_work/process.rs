//! [`LiveSetup`]: carries planned work out with the binary itself, once as the agent and once as the
//! simulator.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use hardpan_context::LayoutName;
use hardpan_session::SessionStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::check_script::{CHECK_PATH, CHECK_SCRIPT};
use super::outcome::{LiveOutcome, LiveProblem, read_bill, read_session};
use super::plan::{PlannedRun, PlannedWork};

/// How long the cache lives in sessions with pauses, in seconds: longer than any call or request takes.
const SHORT_LIFETIME: u64 = 25;

/// How to carry out planned work.
#[derive(Clone, Debug)]
pub struct LiveSetup {
    /// The binary.
    pub binary: PathBuf,
    /// The model's id.
    pub model: String,
    /// The layout.
    pub layout: LayoutName,
    /// Further lines of `config.toml`.
    pub settings: String,
    /// The number of processes that share the runs: each but the first resumes the session.
    pub processes: usize,
    /// Pauses between runs that are longer than the cache lives, spread over the session. With
    /// pauses the cache lives for seconds, both for the agent and for the simulator.
    pub pauses: usize,
}

/// A process that is ended with its owner.
struct OwnedProcess(Child);

impl Drop for OwnedProcess {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where a run takes place. It is deleted with the value.
struct LiveFolder(TempDir);

impl LiveFolder {
    fn new(work: &PlannedWork) -> Self {
        let folder = LiveFolder(TempDir::new().expect("a folder"));
        for name in ["home", "config", "work"] {
            fs::create_dir(folder.path(name)).expect("a folder");
        }
        let project = folder.path("work");
        work.start.write(&project).expect("the files can be written");
        fs::write(project.join(CHECK_PATH), CHECK_SCRIPT).expect("the files can be written");
        for arguments in [
            &["init", "-q", "-b", "main"][..],
            &["config", "user.name", "A"],
            &["config", "user.email", "a@example.org"],
            &["add", "-A"],
            &["commit", "-q", "-m", "Begin"],
        ] {
            let status = Command::new("git")
                .args(arguments)
                .current_dir(&project)
                .env("HOME", folder.path("home"))
                .status();
            assert!(status.expect("git can be run").success(), "git {arguments:?}");
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The binary, with nothing of the machine's own settings.
    fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        command.current_dir(self.path("work")).env_clear();
        command.env("HOME", self.path("home")).env("HARDPAN_CONFIG_DIR", self.path("config"));
        command.env("HARDPAN_DATA_DIR", self.path("data")).env("ANTHROPIC_API_KEY", "any");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }
}

impl LiveSetup {
    /// Carries the work out. `keep_session` is where the session file is copied to.
    pub fn run(&self, work: &PlannedWork, keep_session: &Path) -> LiveOutcome {
        let folder = LiveFolder::new(work);
        let (script, log) = (folder.path("script.yaml"), folder.path("requests.jsonl"));
        fs::write(&script, work.script()).expect("the script can be written");
        let pauses = self.pause_places(work.runs.len());
        if !pauses.is_empty() {
            let provider = json!({"id": "anthropic", "cache": {"lifetime": SHORT_LIFETIME}});
            let models = json!({"providers": [provider]}).to_string();
            fs::write(folder.path("config/models.json"), models).expect("the settings can be written");
        }
        let (_simulator, url) = self.start_simulator(&folder, &script, &log);
        let config =
            format!("keep_alive = false\n{}\n[providers.anthropic]\nbase_url = \"{url}\"\n", self.settings);
        fs::write(folder.path("config/config.toml"), config).expect("the settings can be written");
        let (mut problems, mut ends) = (Vec::new(), BTreeMap::new());
        let mut next_run = 0;
        for runs in work.runs.chunks(work.runs.len().div_ceil(self.processes.max(1))) {
            let mut agent = AgentProcess::start(self, &folder, next_run > 0);
            for run in runs {
                if pauses.contains(&next_run) {
                    std::thread::sleep(Duration::from_secs(SHORT_LIFETIME + 2));
                }
                problems.extend(agent.carry_out(run, next_run, &mut ends));
                next_run += 1;
            }
            agent.finish();
        }
        problems.extend(unexpected_ends(work, &ends));
        let (bill, refusals) = read_bill(&log).expect("the simulator's log can be read");
        problems.extend(refusals);
        let planned = work.shape.requests;
        if bill.requests != planned {
            problems.push(LiveProblem::RequestCount { planned, answered: bill.requests });
        }
        problems.extend(
            work.end.differences(&folder.path("work")).into_iter().map(|path| LiveProblem::File { path }),
        );
        let sessions = SessionStore::new(folder.path("data/sessions"));
        let session = sessions.list(None).into_iter().next().expect("a session").path;
        let facts = read_session(&session, self.layout);
        if facts.usage != bill.usage {
            problems.push(LiveProblem::SessionUsage { session: facts.usage, billed: bill.usage });
        }
        fs::copy(&session, keep_session).expect("the session can be copied");
        let (folds, garbage) = (facts.folds, facts.garbage);
        let replay = replay_session(folder.command(&self.binary), keep_session);
        LiveOutcome { bill, session: keep_session.into(), folds, garbage, replay, problems }
    }

    /// The runs before which there is a pause.
    fn pause_places(&self, runs: usize) -> Vec<usize> {
        (1..=self.pauses).map(|pause| pause * runs / (self.pauses + 1)).filter(|run| *run > 0).collect()
    }

    fn start_simulator(&self, folder: &LiveFolder, script: &Path, log: &Path) -> (OwnedProcess, String) {
        let mut command = folder.command(&self.binary);
        command
            .stderr(Stdio::null())
            .arg("simulator")
            .arg("--script")
            .arg(script)
            .arg("--log-requests")
            .arg(log);
        let mut process = OwnedProcess(command.spawn().expect("the simulator can be started"));
        let mut line = String::new();
        let output = process.0.stdout.as_mut().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("the simulator says its address");
        let url = line.trim().rsplit(' ').next().expect("an address").to_owned();
        (process, url)
    }
}

/// How the calls ended, by id: tool, whether with an error, and the answer's beginning.
type CallEnds = BTreeMap<String, (String, bool, String)>;

/// Calls that did not run, or ended otherwise than planned.
fn unexpected_ends(work: &PlannedWork, ends: &CallEnds) -> Vec<LiveProblem> {
    let problem = |call: &super::plan::PlannedCall| match ends.get(&call.id) {
        None => Some(LiveProblem::CallNotRun { id: call.id.clone() }),
        Some((_, is_error, _)) if *is_error == call.fails => None,
        Some((tool, _, answer)) => {
            Some(LiveProblem::Call { id: call.id.clone(), tool: tool.clone(), answer: answer.clone() })
        }
    };
    work.calls().filter_map(problem).collect()
}

/// The agent, driven over its RPC as an editor does it.
struct AgentProcess {
    process: OwnedProcess,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl AgentProcess {
    fn start(setup: &LiveSetup, folder: &LiveFolder, resumes: bool) -> Self {
        let mut command = folder.command(&setup.binary);
        command.args(["rpc", "--yes", "--model", &setup.model, "--layout", setup.layout.as_str()]);
        if resumes {
            command.arg("--continue");
        }
        let mut process = OwnedProcess(command.spawn().expect("the agent can be started"));
        let input = process.0.stdin.take().expect("it is piped");
        let output = BufReader::new(process.0.stdout.take().expect("it is piped"));
        AgentProcess { process, input, output }
    }

    /// Sends a prompt and waits for the end of its run.
    fn carry_out(&mut self, run: &PlannedRun, number: usize, ends: &mut CallEnds) -> Option<LiveProblem> {
        let prompt = json!({"id": number, "type": "prompt", "message": run.prompt});
        writeln!(self.input, "{prompt}").expect("the agent reads");
        loop {
            let mut line = String::new();
            let length = self.output.read_line(&mut line).expect("the agent writes text");
            let event: Value = serde_json::from_str(&line).unwrap_or_default();
            match event["type"].as_str() {
                Some("tool_execution_end") => {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let answer = text(&event["content"][0]["text"]).chars().take(300).collect();
                    let is_error = event["is_error"] == true;
                    ends.insert(text(&event["call_id"]), (text(&event["tool_name"]), is_error, answer));
                }
                Some("agent_end") if event["stop"]["reason"] == "done" => return None,
                Some("agent_end") => {
                    return Some(LiveProblem::RunEnd { run: number, reason: event["stop"].to_string() });
                }
                _ if length == 0 || event["success"] == false => {
                    return Some(LiveProblem::RunEnd { run: number, reason: line });
                }
                _ => {}
            }
        }
    }

    /// Ends the input and waits for the process.
    fn finish(self) {
        let AgentProcess { mut process, input, output } = self;
        drop(input);
        output.lines().for_each(drop);
        process.0.wait().expect("the agent ends");
    }
}

/// What `hardpan replay SESSION --json` says about one session.
fn replay_session(mut command: Command, session: &Path) -> Value {
    let output = command.arg("replay").arg(session).arg("--json").output().expect("it can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let replay: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    replay["sessions"][0].clone()
}
