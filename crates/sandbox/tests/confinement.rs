//! What programs in the sandbox can and cannot do, tried by programs: `sandbox_commands`
//! runs them. Each attempt is made in every mode, and as an ordinary user if the tests run as root.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::fs;
use std::os::unix::net::{UnixDatagram, UnixListener};

use hardpan_sandbox::{
    Enforcement, Namespaces, OutputLimits, ProcessEnd, Program, ResourceLimits, SandboxLauncher,
    SandboxPolicy, run_program,
};
use serde_json::{Value, json};
use support::{Caller, Place, Policy, callers};

const EPERM: &str = "EPERM";

/// System calls that are refused in every mode, with arguments that the kernel would otherwise refuse
/// differently, or accept.
fn refused_calls() -> Vec<(&'static str, i64, &'static str)> {
    vec![
        ("io_uring_setup", libc::SYS_io_uring_setup, "1, 0"),
        ("io_uring_enter", libc::SYS_io_uring_enter, "-1, 0, 0, 0, 0, 0"),
        ("io_uring_register", libc::SYS_io_uring_register, "-1, 0, 0, 0"),
        // PTRACE_TRACEME
        ("ptrace", libc::SYS_ptrace, "0, 0, 0, 0"),
        ("process_vm_readv", libc::SYS_process_vm_readv, "1, 0, 0, 0, 0, 0"),
        ("process_vm_writev", libc::SYS_process_vm_writev, "1, 0, 0, 0, 0, 0"),
        ("process_madvise", libc::SYS_process_madvise, "-1, 0, 0, 0, 0"),
        ("pidfd_getfd", libc::SYS_pidfd_getfd, "-1, 0, 0"),
        ("kcmp", libc::SYS_kcmp, "1, 1, 9, 0, 0"),
        ("add_key", libc::SYS_add_key, "0, 0, 0, 0, 0"),
        ("keyctl", libc::SYS_keyctl, "0, -3, 1"),
        ("request_key", libc::SYS_request_key, "0, 0, 0, 0"),
        ("bpf", libc::SYS_bpf, "99, 0, 0"),
        ("perf_event_open", libc::SYS_perf_event_open, "0, 0, -1, -1, 0"),
        ("userfaultfd", libc::SYS_userfaultfd, "1"),
        ("init_module", libc::SYS_init_module, "0, 0, 0"),
        ("finit_module", libc::SYS_finit_module, "-1, 0, 0"),
        ("delete_module", libc::SYS_delete_module, "0, 0"),
        ("kexec_load", libc::SYS_kexec_load, "0, 0, 0, 99"),
        ("name_to_handle_at", libc::SYS_name_to_handle_at, "-100, 0, 0, 0, 0"),
        ("open_by_handle_at", libc::SYS_open_by_handle_at, "-1, 0, 0"),
        ("fanotify_init", libc::SYS_fanotify_init, "99999, 0"),
        ("mount", libc::SYS_mount, "0, 0, 0, 0, 0"),
        ("umount2", libc::SYS_umount2, "0, 0"),
        ("pivot_root", libc::SYS_pivot_root, "0, 0"),
        ("chroot", libc::SYS_chroot, "0"),
        ("setns", libc::SYS_setns, "-1, 0"),
        ("open_tree", libc::SYS_open_tree, "-1, 0, 0"),
        ("move_mount", libc::SYS_move_mount, "-1, 0, -1, 0, 0"),
        ("fsopen", libc::SYS_fsopen, "0, 0"),
        ("fsconfig", libc::SYS_fsconfig, "-1, 0, 0, 0, 0"),
        ("fsmount", libc::SYS_fsmount, "-1, 0, 0"),
        ("fspick", libc::SYS_fspick, "-1, 0, 0"),
        ("mount_setattr", libc::SYS_mount_setattr, "-1, 0, 0, 0, 0"),
        ("swapon", libc::SYS_swapon, "0, 0"),
        ("swapoff", libc::SYS_swapoff, "0"),
        ("reboot", libc::SYS_reboot, "0, 0, 0, 0"),
        ("acct", libc::SYS_acct, "1"),
        ("quotactl", libc::SYS_quotactl, "99, 0, 0, 0"),
        ("quotactl_fd", libc::SYS_quotactl_fd, "-1, 0, 0, 0"),
        ("settimeofday", libc::SYS_settimeofday, "1, 0"),
        ("clock_settime", libc::SYS_clock_settime, "99, 0"),
        ("clock_adjtime", libc::SYS_clock_adjtime, "99, 0"),
        ("adjtimex", libc::SYS_adjtimex, "0"),
        ("sethostname", libc::SYS_sethostname, "0, -1"),
        ("setdomainname", libc::SYS_setdomainname, "0, -1"),
        ("syslog", libc::SYS_syslog, "10, 0, 0"),
        ("unshare NEWUSER", libc::SYS_unshare, "0x10000000"),
        ("unshare NEWNS", libc::SYS_unshare, "0x20000"),
        ("unshare NEWPID", libc::SYS_unshare, "0x20000000"),
        ("unshare NEWNET", libc::SYS_unshare, "0x40000000"),
        ("unshare NEWIPC", libc::SYS_unshare, "0x8000000"),
        ("unshare NEWUTS", libc::SYS_unshare, "0x4000000"),
        ("unshare NEWCGROUP", libc::SYS_unshare, "0x2000000"),
        ("unshare NEWTIME", libc::SYS_unshare, "0x80"),
        ("unshare NEWUSER FILES", libc::SYS_unshare, "0x10000400"),
        ("clone NEWUSER", libc::SYS_clone, "0x10000011, 0, 0, 0, 0"),
        ("clone NEWNS", libc::SYS_clone, "0x20011, 0, 0, 0, 0"),
        ("clone NEWNET", libc::SYS_clone, "0x40000011, 0, 0, 0, 0"),
        ("ioctl TIOCSTI", libc::SYS_ioctl, "0, 0x5412, 0"),
        ("ioctl TIOCLINUX", libc::SYS_ioctl, "0, 0x541C, 0"),
        // RLIMIT_NOFILE of the first process of the sandbox.
        ("prlimit of another", libc::SYS_prlimit64, "os.getppid(), 7, buffer, 0"),
        // Numbers that only x32 has: ioctl, ptrace, process_vm_readv; and one that both have.
        #[cfg(target_arch = "x86_64")]
        ("x32 ioctl TIOCSTI", 0x4000_0000 + 514, "0, 0x5412, 0"),
        #[cfg(target_arch = "x86_64")]
        ("x32 ptrace", 0x4000_0000 + 521, "0, 0, 0, 0"),
        #[cfg(target_arch = "x86_64")]
        ("x32 process_vm_readv", 0x4000_0000 + 539, "1, 0, 0, 0, 0, 0"),
        #[cfg(target_arch = "x86_64")]
        ("x32 getpid", 0x4000_0000 + libc::SYS_getpid, ""),
    ]
}

/// Sockets and what becomes of them without a network, and with one.
fn sockets() -> Vec<(&'static str, i64, &'static str, [&'static str; 2])> {
    let (socket, pair) = (libc::SYS_socket, libc::SYS_socketpair);
    let (never, open) = ([EPERM; 2], [EPERM, "ok"]);
    vec![
        ("unix stream", socket, "1, 1, 0", never),
        ("unix dgram", socket, "1, 2, 0", never),
        ("unix raw", socket, "1, 3, 0", never),
        ("unix seqpacket", socket, "1, 5, 0", never),
        ("unix stream, flags", socket, "1, 0x80801, 0", never),
        ("unix, high bits", socket, "0xff00000001, 1, 0", never),
        ("inet stream", socket, "2, 1, 0", open),
        ("inet6 stream", socket, "10, 0x80001, 6", open),
        ("inet dgram", socket, "2, 2, 0", open),
        ("inet mptcp", socket, "2, 1, 262", [EPERM, "any"]),
        ("netlink route", socket, "16, 3, 0", open),
        ("netlink audit", socket, "16, 3, 9", never),
        ("netlink generic", socket, "16, 3, 16", never),
        ("packet", socket, "17, 3, 0", never),
        ("alg", socket, "38, 5, 0", never),
        ("vsock", socket, "40, 1, 0", never),
        ("bluetooth", socket, "31, 3, 0", never),
        ("xdp", socket, "44, 3, 0", never),
        ("pair stream", pair, "1, 1, 0, buffer", ["ok"; 2]),
        ("pair stream, flags", pair, "1, 0x80801, 0, buffer", ["ok"; 2]),
        ("pair seqpacket", pair, "1, 5, 0, buffer", ["ok"; 2]),
        // Their ends could send to any path.
        ("pair dgram", pair, "1, 2, 0, buffer", never),
        ("pair dgram, flags", pair, "1, 0x80002, 0, buffer", never),
        ("pair raw", pair, "1, 3, 0, buffer", never),
    ]
}

/// Calls that builds and tests need, in every mode.
fn needed_calls() -> Vec<(&'static str, i64, &'static str)> {
    vec![
        ("getpid", libc::SYS_getpid, ""),
        ("prlimit of its own", libc::SYS_prlimit64, "0, 7, 0, buffer"),
        ("prlimit to look", libc::SYS_prlimit64, "os.getpid(), 7, 0, buffer"),
        ("unshare FILES", libc::SYS_unshare, "0x400"),
        ("memfd_create", libc::SYS_memfd_create, "name, 0"),
        ("eventfd2", libc::SYS_eventfd2, "0, 0"),
        ("inotify_init1", libc::SYS_inotify_init1, "0"),
        ("prctl", libc::SYS_prctl, "38, 1, 0, 0, 0"),
        ("seccomp", libc::SYS_seccomp, "2, 0, pointer"),
    ]
}

/// Calls that are newer than the filter. They do not exist for a program, which then does without.
fn unknown_calls() -> Vec<(&'static str, i64, &'static str)> {
    vec![
        ("open_tree_attr", 467, "-1, 0, 0, 0, 0"),
        ("file_setattr", 469, "-1, 0, 0, 0, 0"),
        ("of the future", 500, ""),
    ]
}

/// A script that makes system calls and prints the name of each with its outcome.
fn script(calls: impl Iterator<Item = (&'static str, i64, &'static str)>) -> String {
    let mut script = String::from(
        "import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
buffer, name, pointer = ctypes.create_string_buffer(64), b'name', ctypes.create_string_buffer(8)
def attempt(what, number, *arguments):
    ctypes.set_errno(0)
    wide = lambda value: ctypes.c_long(value) if isinstance(value, int) else value
    result = libc.syscall(ctypes.c_long(number), *map(wide, arguments))
    if 'clone' in what and result == 0: os._exit(0)
    print(what + '=' + ('ok' if result >= 0 else errno.errorcode[ctypes.get_errno()]), flush=True)
",
    );
    for (name, number, arguments) in calls {
        script += &format!("attempt({name:?}, {number}, {arguments})\n");
    }
    script
}

fn modes() -> [(&'static str, Enforcement, Value); 4] {
    [
        ("off", Enforcement::Full, json!(false)),
        ("on", Enforcement::Full, json!(true)),
        ("hosts", Enforcement::Full, json!(["crates.io"])),
        ("without Landlock", Enforcement::SystemCalls, json!(false)),
    ]
}

#[test]
fn each_system_call_is_refused_or_allowed_as_the_table_says_in_every_mode() {
    let sockets = sockets();
    let calls = refused_calls().into_iter().chain(needed_calls()).chain(unknown_calls());
    let calls = calls.chain(sockets.iter().map(|(name, number, arguments, _)| (*name, *number, *arguments)));
    let script = script(calls);
    for caller in callers() {
        for (mode, enforcement, network) in modes() {
            let place = Place::new(caller);
            place.write("work/try.py", &script);
            let column = usize::from(network != json!(false));
            let policy = Policy { enforcement, network, ..place.policy() };
            let output = place.run(&policy, "python3 try.py");
            let outcomes: Vec<(&str, &str)> =
                output.stdout.lines().filter_map(|line| line.split_once('=')).collect();
            let outcome = |name: &str| {
                let found = outcomes.iter().find(|(tried, _)| *tried == name);
                found.unwrap_or_else(|| panic!("{name}: {output:?}")).1
            };
            for (name, ..) in refused_calls() {
                assert_eq!(outcome(name), EPERM, "{name} ({mode}, {caller:?})");
            }
            for (name, _, _) in needed_calls() {
                assert_ne!(outcome(name), EPERM, "{name} ({mode}, {caller:?})");
            }
            for (name, ..) in unknown_calls() {
                assert_eq!(outcome(name), "ENOSYS", "{name} ({mode}, {caller:?})");
            }
            for (name, _, _, expected) in &sockets {
                if expected[column] != "any" {
                    assert_eq!(outcome(name), expected[column], "{name} ({mode}, {caller:?})");
                }
            }
        }
    }
}

#[test]
fn no_server_with_a_path_or_a_name_is_reached_whatever_the_network() {
    let attempts = r#"
import socket, os
def attempt(what, work):
    try:
        work(); print(what, "reached")
    except OSError as error:
        print(what, "refused")
kinds = {"stream": socket.SOCK_STREAM, "dgram": socket.SOCK_DGRAM, "seqpacket": socket.SOCK_SEQPACKET}
for name, kind in kinds.items():
    for address in ("../other/" + name, "\0hardpan-test-" + name):
        def connect():
            s = socket.socket(socket.AF_UNIX, kind); s.connect(address); s.send(b"x")
        attempt(name, connect)
        def pair():
            a, b = socket.socketpair(socket.AF_UNIX, kind); a.connect(address); a.send(b"x")
        attempt(name + " pair", pair)
        def sendto():
            a, b = socket.socketpair(socket.AF_UNIX, kind); b.close(); a.sendto(b"x", address)
        attempt(name + " sendto", sendto)
        def sendmsg():
            a, b = socket.socketpair(socket.AF_UNIX, kind); b.close(); a.sendmsg([b"x"], [], 0, address)
        attempt(name + " sendmsg", sendmsg)
        def sendto_alone():
            socket.socket(socket.AF_UNIX, kind).sendto(b"x", address)
        attempt(name + " sendto alone", sendto_alone)
"#;
    for caller in callers() {
        for (mode, enforcement, network) in modes() {
            let place = Place::new(caller);
            place.write("work/try.py", attempts);
            let stream = UnixListener::bind(place.path("other/stream")).unwrap();
            let datagrams = UnixDatagram::bind(place.path("other/dgram")).unwrap();
            for name in ["stream", "dgram"] {
                place.open_to_all(&format!("other/{name}"));
            }
            stream.set_nonblocking(true).unwrap();
            datagrams.set_nonblocking(true).unwrap();
            let policy = Policy { enforcement, network, ..place.policy() };
            let output = place.run(&policy, "python3 try.py");
            assert!(!output.stdout.contains("reached"), "{mode}, {caller:?}: {output:?}");
            assert_eq!(output.stdout.lines().count(), 30, "{output:?}");
            assert!(stream.accept().is_err() && datagrams.recv(&mut [0; 9]).is_err(), "{mode}, {caller:?}");
        }
    }
}

#[test]
fn what_a_program_starts_is_gone_when_it_has_ended() {
    for caller in callers() {
        for namespaces in [Namespaces::WhereAllowed, Namespaces::Never] {
            let place = Place::new(caller);
            let script = "setsid sleep 4711 & (setsid sh -c 'trap \"\" TERM HUP; sleep 4712; sleep 4712' >/dev/null 2>&1 &) ; nohup sleep 4713 >/dev/null 2>&1 & echo started";
            let output = place.run(&Policy { namespaces, ..place.policy() }, script);
            assert_eq!(&*output.stdout, "started\n", "{output:?}");
            assert_eq!(place.processes(), [""; 0], "{namespaces:?}, {caller:?}");
        }
    }
}

#[test]
fn what_a_program_starts_is_gone_when_its_caller_was_killed() {
    for caller in callers() {
        for namespaces in [Namespaces::WhereAllowed, Namespaces::Never] {
            let place = Place::new(caller);
            let script = "setsid sleep 4711 & sleep 4712 & echo started > begun; wait";
            let mut command = place.command(&Policy { namespaces, ..place.policy() }, &[script]);
            let mut running = command.spawn().unwrap();
            place.wait_for("work/begun");
            running.kill().unwrap();
            running.wait().unwrap();
            place.wait_for_the_end();
        }
    }
}

#[test]
fn modes_times_and_owners_outside_stay_as_they_are_in_namespaces() {
    for caller in callers() {
        let place = Place::new(caller);
        place.write("other/notes", "notes");
        place.write("work/mine", "mine");
        place.give("other/notes");
        place.give("work/mine");
        let before = fs::metadata(place.path("other/notes")).unwrap();
        let script = "chmod 600 mine && touch -d @1 mine || echo failed; chmod 777 ../other/notes; touch -d @1 ../other/notes; chown $(id -u) ../other/notes; setfattr -n user.a -v b ../other/notes; true";
        let output = place.run(&place.policy(), script);
        assert_eq!(output.stdout, "", "{output:?}");
        let after = fs::metadata(place.path("other/notes")).unwrap();
        assert_eq!(before.permissions(), after.permissions(), "{output:?}");
        assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    }
}

#[test]
fn a_writable_folder_that_became_a_link_leads_nowhere() {
    for caller in callers() {
        for namespaces in [Namespaces::WhereAllowed, Namespaces::Never] {
            let place = Place::new(caller);
            place.write("work/nested/a", "");
            place.give("work/nested");
            let mut policy = Policy { namespaces, ..place.policy() };
            policy.writable.push(place.path("work/nested"));
            let commands =
                ["mv nested moved && ln -s ../other nested", "echo x > nested/b", "echo x > moved/b"];
            let outputs = place.run_all(&policy, &commands);
            let ends = outputs.iter().map(|output| output.end == ProcessEnd::Exit(0));
            // The folder itself is still writable, where it is now.
            assert_eq!(ends.collect::<Vec<_>>(), [true, false, true], "{caller:?}: {outputs:?}");
            assert!(!place.path("other/b").exists() && place.path("work/moved/b").exists());
        }
    }
}

#[test]
fn a_workspace_in_a_writable_folder_that_became_a_link_leads_nowhere() {
    for caller in callers() {
        for namespaces in [Namespaces::WhereAllowed, Namespaces::Never] {
            let place = Place::new(caller);
            fs::create_dir_all(place.path("parent/project")).unwrap();
            place.give("parent");
            place.give("parent/project");
            let mut policy = Policy { namespaces, folder: place.path("parent"), ..Policy::default() };
            policy.writable = vec![place.path("parent/project"), place.path("parent")];
            let swap = "mv project moved && ln -s ../other project";
            let outputs = place.run_all(&policy, &[swap, "echo x > project/b", "echo x > ../other/b"]);
            assert_eq!(outputs[0].end, ProcessEnd::Exit(0), "{outputs:?}");
            assert!(!place.path("other/b").exists(), "{caller:?}: {outputs:?}");
        }
    }
}

#[test]
fn the_processes_that_keep_a_command_cannot_be_written_into() {
    let script = r#"
import os
def parent(process):
    for line in open(f"/proc/{process}/status"):
        if line.startswith("PPid:"): return int(line.split()[1])
process = os.getppid()
for level in ("shell", "init", "supervisor", "caller"):
    try:
        open(f"/proc/{process}/mem", "r+b"); print(level, "opened")
    except OSError as error:
        print(level, "refused")
    process = parent(process)
    if not process: break
"#;
    for caller in callers() {
        for (mode, enforcement, network) in modes() {
            for namespaces in [Namespaces::WhereAllowed, Namespaces::Never] {
                if network.is_array() && namespaces == Namespaces::Never {
                    continue;
                }
                let place = Place::new(caller);
                place.write("work/try.py", script);
                let policy = Policy { enforcement, network: network.clone(), namespaces, ..place.policy() };
                let output = place.run(&policy, "python3 try.py; true");
                let opened: Vec<&str> =
                    output.stdout.lines().filter(|line| line.ends_with("opened")).collect();
                // Its own processes it may write into, where files are not restricted.
                assert!(opened.iter().all(|line| *line == "shell opened"), "{mode} {caller:?} {output:?}");
                assert!(output.stdout.contains("init refused"), "{mode} {caller:?} {output:?}");
            }
        }
    }
}

#[test]
fn what_the_caller_has_open_is_not_open_in_a_command() {
    for caller in callers() {
        for namespaces in [Namespaces::WhereAllowed, Namespaces::Never] {
            let place = Place::new(caller);
            place.write("other/open", "");
            place.open_to_all("other/open");
            let policy = Policy { namespaces, ..place.policy() };
            let command = place.command(&policy, &["echo x >&9; echo x >&47; ls /proc/self/fd"]);
            // A shell that has a file open twice starts the caller.
            let mut shell = std::process::Command::new("bash");
            let script = format!("exec 9>>{0} 47>>{0}; exec \"$@\"", place.path("other/open").display());
            shell.args(["-c", &script, "bash"]).arg(command.get_program()).args(command.get_args());
            let output = shell.output().unwrap();
            let output = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(fs::read_to_string(place.path("other/open")).unwrap(), "", "{output}");
            assert!(output.contains(r#""stdout":"0\n1\n2\n3\n""#), "{output}");
        }
    }
}

#[test]
fn shared_memory_is_the_sandboxs_own() {
    for caller in callers() {
        let place = Place::new(caller);
        let name = format!("/dev/shm/hardpan-test-{}-{caller:?}", std::process::id());
        let script = format!(
            "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1]))'; echo x > {name}; cat {name}"
        );
        let output = place.run(&place.policy(), &script);
        assert_eq!(output.stdout, "[1]\nx\n", "{output:?}");
        assert!(!fs::exists(&name).unwrap());
        let policy = Policy { namespaces: Namespaces::Never, ..place.policy() };
        let output = place.run(&policy, &format!("echo x > {name}"));
        assert!(output.end != ProcessEnd::Exit(0) && !fs::exists(&name).unwrap(), "{output:?}");
    }
}

#[test]
fn limits_hold_and_cores_are_not_dumped() {
    for caller in callers() {
        let place = Place::new(caller);
        let limits =
            ResourceLimits { memory: Some(64 << 20), file_size: Some(1 << 20), processes: Some(100) };
        let policy = Policy { limits, ..place.policy() };
        let output = place.run(&policy, "ulimit -c; ulimit -f; ulimit -d; ulimit -u; head -c 2000000 /dev/zero > big; stat -c %s big; python3 -c 'bytearray(200 << 20)' && echo enough");
        let lines: Vec<&str> = output.stdout.lines().collect();
        assert_eq!(lines, ["0", "1024", "65536", "100", "1048576"], "{output:?}");
    }
}

#[test]
fn a_launcher_that_was_replaced_on_disk_is_not_asked() {
    let place = Place::new(Caller::Current);
    let copy = place.path("launcher");
    support::copy_program(support::launcher_path(), &copy);
    let launcher = SandboxLauncher::open(&copy, "__sandbox").unwrap();
    fs::remove_file(&copy).unwrap();
    place.write("launcher", "#!/bin/sh\necho replaced\n");
    place.open_to_all("launcher");
    let program = Program::new("/bin/sh", "/").arguments(["-c", "echo ran"]);
    let limits = OutputLimits { max_bytes: 1000, time: std::time::Duration::from_secs(60) };
    let output = run_program(Some((&launcher, &SandboxPolicy::default())), &program, limits).unwrap();
    assert_eq!(output.stdout, b"ran\n", "{output:?}");
}

#[test]
fn of_a_list_of_hosts_only_those_are_reached_and_only_through_the_proxy() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut client, _)) = server.accept() {
            let _ = std::io::Read::read(&mut client, &mut [0; 4096]);
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved";
            let _ = std::io::Write::write_all(&mut client, answer.as_bytes());
        }
    });
    let script = format!(
        r#"
import socket, os, urllib.request
# The server is on this machine's loopback, not on that of the sandbox.
os.environ.pop("NO_PROXY"); os.environ.pop("no_proxy")
def attempt(what, work):
    try:
        print(what, work())
    except OSError as error:
        print(what, "failed")
get = lambda url: urllib.request.build_opener(urllib.request.ProxyHandler({{"http": os.environ["HTTP_PROXY"]}})).open(url).read().decode()
def tunnel(target):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(b"CONNECT %s HTTP/1.1\r\n\r\n" % target.encode())
    head = s.recv(1000).decode()
    if " 200 " not in head: return head.split()[1]
    s.sendall(b"GET / HTTP/1.0\r\n\r\n")
    return s.recv(1000).decode().split()[-1]
attempt("http", lambda: get("http://127.0.0.1:{port}/"))
attempt("tunnel", lambda: tunnel("127.0.0.1:{port}"))
attempt("other port", lambda: tunnel("127.0.0.1:{other}"))
attempt("other name", lambda: tunnel("localhost:{port}"))
attempt("other host", lambda: tunnel("evil.example:443"))
attempt("directly", lambda: socket.create_connection(("127.0.0.1", {port}), 5))
attempt("elsewhere", lambda: socket.create_connection(("192.0.2.1", 3128), 5))
attempt("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)))
own = socket.create_server(("127.0.0.1", 0))
attempt("its own", lambda: bool(socket.create_connection(own.getsockname())))
"#,
        other = port.wrapping_add(1).max(1)
    );
    for caller in callers() {
        let place = Place::new(caller);
        place.write("work/try.py", &script);
        let network = json!([format!("127.0.0.1:{port}")]);
        let output = place.run(&Policy { network, ..place.policy() }, "python3 try.py");
        let expected = "http served\ntunnel served\nother port 403\nother name 403\nother host 403\ndirectly failed\nelsewhere failed\nudp failed\nits own True\n";
        assert_eq!(output.stdout, expected, "{caller:?}: {output:?}");
        // Without namespaces nothing could tell hosts apart: the command does not run.
        let network = json!(["crates.io"]);
        let policy = Policy { network, namespaces: Namespaces::Never, ..place.policy() };
        let refused = place.command(&policy, &["echo ran"]).output().unwrap();
        assert!(!refused.status.success() && refused.stdout.is_empty());
    }
}
