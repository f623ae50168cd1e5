//! What extensions are told of this process and of the machine.

use std::fs;
use std::num::NonZeroUsize;
use std::thread::available_parallelism;

use rustix::process::{Pid, getegid, geteuid, getppid, test_kill_process};
use serde_json::{Value, json};

/// What `process` knows of itself.
pub fn process() -> Value {
    json!({
        "pid": std::process::id(),
        "ppid": getppid().map_or(0, |pid| pid.as_raw_nonzero().get()),
        "uid": geteuid().as_raw(),
        "gid": getegid().as_raw(),
        "rss": status_bytes("/proc/self/status", "VmRSS:"),
    })
}

/// Whether there is a process of this number.
pub fn is_alive(pid: Option<i64>) -> bool {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0).and_then(Pid::from_raw);
    // One that belongs to somebody else is there, too.
    pid.is_some_and(|pid| match test_kill_process(pid) {
        Ok(()) => true,
        Err(errno) => errno == rustix::io::Errno::PERM,
    })
}

/// What `node:os` tells. Zero where this system says nothing.
pub fn system() -> Value {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let numbers = |path: &str| -> Vec<f64> {
        text(path).split_whitespace().map_while(|word| word.parse().ok()).collect()
    };
    let mut load = numbers("/proc/loadavg");
    load.resize(3, 0.0);
    json!({
        "cpus": available_parallelism().map_or(1, NonZeroUsize::get),
        "totalmem": status_bytes("/proc/meminfo", "MemTotal:"),
        "freemem": status_bytes("/proc/meminfo", "MemAvailable:"),
        "uptime": numbers("/proc/uptime").first().copied().unwrap_or(0.0),
        "loadavg": load,
        "release": text("/proc/sys/kernel/osrelease").trim(),
    })
}

/// A figure of a file of `/proc` that is given in kilobytes.
fn status_bytes(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0).saturating_mul(1024)
}
