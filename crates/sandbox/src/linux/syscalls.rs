//! seccomp: system calls that a program in the sandbox is refused.
//!
//! A filter sees numbers, not what pointers lead to. So it cannot tell the address of a socket, and
//! refuses by kind: no sockets that reach a server by path or name, whatever the network allows.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use super::wire::NetworkMode;

/// Calls that no command needs and that reach beyond it: into other processes, the kernel, the
/// machine, or past the checks of the other ones. `io_uring` performs calls that no filter sees.
const REFUSED: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Keys that the kernel keeps for the user.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Code and counters in the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    // Files past their paths.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    // The machine.
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
];

/// Those that only some processors have.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[i64] =
    &[libc::SYS_kexec_file_load, libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE: &[i64] = &[libc::SYS_kexec_file_load];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REFUSED_HERE: &[i64] = &[];

/// Flags of `clone` and `unshare` that make namespaces.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// The bits of a socket's type that are its kind; the others are flags.
const SOCKET_KIND: u64 = 0xf;

/// Restricts this process, and every process that it starts, for good.
pub(super) fn restrict(network: NetworkMode) -> io::Result<()> {
    // Without seccomp, Landlock still blocks TCP. The caller has warned the user (`SandboxSupport`).
    let Ok(filters) = filters(network) else { return Ok(()) };
    for filter in filters {
        seccompiler::apply_filter(&filter)
            .map_err(|error| io::Error::other(format!("the sandbox (seccomp): {error}")))?;
    }
    Ok(())
}

/// The filters, to be applied in this order.
pub(super) fn filters(network: NetworkMode) -> Result<[BpfProgram; 3], seccompiler::Error> {
    // Its flags are behind a pointer. A libc that learns that it does not exist calls `clone`.
    let unknown = filter(BTreeMap::from([(libc::SYS_clone3, vec![])]), libc::ENOSYS)?;
    Ok([unknown, filter(refused_calls(network)?, libc::EPERM)?, refuse_unknown()])
}

fn refused_calls(network: NetworkMode) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, vec![])).collect();
    // TIOCSTI types into a terminal on the user's behalf, TIOCLINUX pastes into a console.
    let terminal = [libc::TIOCSTI, TIOCLINUX].map(|request| rule(&[(1, SeccompCmpOp::Eq, request)]));
    calls.insert(libc::SYS_ioctl, terminal.into_iter().collect::<Result<_, _>>()?);
    // Limits of other processes: with them one can end Hardpan.
    let pointer = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    let process = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    calls.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![process, pointer])?]);
    for call in [libc::SYS_clone, libc::SYS_unshare] {
        calls.insert(call, namespace_rules(call == libc::SYS_unshare)?);
    }
    // A pair is for a program and its children. Its datagrams could be sent to any other path; of a
    // stream, both ends are given (SOCK_RAW is another name of datagrams).
    let is_pair = |kind: u64| kind == libc::SOCK_STREAM as u64 || kind == libc::SOCK_SEQPACKET as u64;
    let kinds = (0..=SOCKET_KIND).filter(|kind| !is_pair(*kind));
    let pairs = kinds.map(|kind| rule(&[(1, SeccompCmpOp::MaskedEq(SOCKET_KIND), kind)]));
    calls.insert(libc::SYS_socketpair, pairs.collect::<Result<_, _>>()?);
    calls.insert(libc::SYS_socket, socket_rules(network)?);
    if network == NetworkMode::Off {
        calls.insert(libc::SYS_connect, vec![]);
    }
    Ok(calls)
}

fn namespace_rules(is_unshare: bool) -> Result<Vec<SeccompRule>, BackendError> {
    // In `clone`, this bit belongs to the signal that tells of the end.
    let time = is_unshare.then_some(CLONE_NEWTIME);
    let flags = NAMESPACES.iter().copied().chain(time);
    #[allow(clippy::cast_sign_loss, reason = "the bits of a flag")]
    let flags = flags.map(|flag| u64::from(flag as u32));
    flags.map(|flag| rule(&[(0, SeccompCmpOp::MaskedEq(flag), flag)])).collect()
}

const CLONE_NEWTIME: i32 = 0x80;
const TIOCLINUX: u64 = 0x541C;

/// The sockets that are refused. None of an unknown family, as those that talk to the host of a
/// virtual machine.
fn socket_rules(network: NetworkMode) -> Result<Vec<SeccompRule>, BackendError> {
    use SeccompCmpOp::{Eq, Ne};
    #[allow(clippy::cast_sign_loss, reason = "families are positive")]
    let [inet, inet6, netlink] =
        [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK].map(|family| family as u64);
    // An empty list of rules refuses all.
    Ok(match network {
        NetworkMode::Off => Vec::new(),
        // A network of its own has nobody in it.
        NetworkMode::On | NetworkMode::Own => {
            vec![
                rule(&[(0, Ne, inet), (0, Ne, inet6), (0, Ne, netlink)])?,
                // Of what the kernel tells, only addresses and routes, which names are resolved with.
                rule(&[(0, Eq, netlink), (2, Ne, 0)])?,
            ]
        }
    })
}

/// The first number of a system call that nobody here has looked at; up to here they are those of Linux
/// 6.14. From 424 on, all processors have the same numbers.
const FIRST_UNKNOWN: u32 = 467;

/// From here on, the x32 calls of x86-64. Some of them, `ptrace` among them, have numbers of their own,
/// and no program of a usual system needs any.
const FIRST_X32: u32 = 0x4000_0000;

/// Refuses calls by ranges of their numbers. To a program, unknown calls do not exist.
fn refuse_unknown() -> BpfProgram {
    const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
    const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    // Classic BPF: load the number of the call, jump if it is at least so large, return.
    let [load, jump, end] = [0x20, 0x35, 0x06];
    vec![
        sock_filter { code: load, jt: 0, jf: 0, k: 0 },
        sock_filter { code: jump, jt: 2, jf: 0, k: FIRST_X32 },
        sock_filter { code: jump, jt: 2, jf: 0, k: FIRST_UNKNOWN },
        sock_filter { code: end, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
        sock_filter { code: end, jt: 0, jf: 0, k: REFUSE },
        sock_filter { code: end, jt: 0, jf: 0, k: UNKNOWN },
    ]
}

fn filter(calls: BTreeMap<i64, Vec<SeccompRule>>, error: i32) -> Result<BpfProgram, seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    #[allow(clippy::cast_sign_loss, reason = "error numbers are positive")]
    let refuse = SeccompAction::Errno(error as u32);
    Ok(SeccompFilter::new(calls, SeccompAction::Allow, refuse, arch)?.try_into()?)
}

/// A rule that holds if all of its conditions do: argument, comparison, value.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions.iter().map(|(argument, operator, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}
