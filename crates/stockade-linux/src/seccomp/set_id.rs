//! Refuses to make files with a set-user-id or set-group-id bit, where no mediator judges modes.
//!
//! A file that a command leaves behind with such a bit runs as its owner for whoever starts it on
//! the host. A `nosuid` mount only holds inside. The bits are in a register for every call that
//! sets a mode but `openat2`, whose mode lies behind a pointer: that call gets `ENOSYS`, on which
//! programs fall back to `openat`.
//!
//! A filter can't see what a mode is for, so a set-group-id directory is refused too. One that
//! inherits the bit from its parent is not.

use super::filter::{Action, Case, Condition, FilterSpec, Rule};
use super::profile::{ENOSYS, EPERM, RINGS};
use super::table::Arch;

const S_ISUID: u32 = 0o4000;
const S_ISGID: u32 = 0o2000;
const O_CREAT: u32 = 0o100;
const O_TMPFILE: u32 = 0o20_000_000; // __O_TMPFILE, without O_DIRECTORY

/// Adds the rules to a filter. They stay enforced where other refusals are only logged, as do the
/// refusals of entries whose numbers mean other calls.
pub(super) fn apply(spec: &mut FilterSpec) {
    spec.foreign = Action::KillProcess;
    spec.x32 = ENOSYS;
    spec.unknown = ENOSYS;
    spec.add(Rule::always(RINGS, EPERM));
    for rule in rules() {
        spec.add(rule);
    }
}

impl FilterSpec {
    /// A filter that refuses nothing but set-id modes, for a kernel that has its own answer to
    /// every other call.
    pub fn set_id_only(arch: Arch) -> Self {
        Self {
            arch,
            foreign: Action::KillProcess,
            x32: ENOSYS,
            unknown: Action::Allow,
            default: Action::Allow,
            rules: rules(),
        }
    }
}

fn rules() -> Vec<Rule> {
    vec![
        refuse_mode(&["chmod", "creat", "fchmod", "mknod"], 1),
        refuse_mode(&["fchmodat", "fchmodat2", "mknodat"], 2),
        refuse_creation("open", 1, 2),
        refuse_creation("openat", 2, 3),
        Rule::always(&["openat2"], ENOSYS),
    ]
}

fn refuse_mode(syscalls: &[&str], mode: u8) -> Rule {
    let cases = [S_ISUID, S_ISGID].map(|bit| Case::when(has(mode, bit), EPERM));
    Rule::cases(syscalls, cases.to_vec(), Action::Allow)
}

/// Opens that make a file. The others leave the register of the mode as it was.
fn refuse_creation(syscall: &str, flags: u8, mode: u8) -> Rule {
    let mut cases = Vec::new();
    for flag in [O_CREAT, O_TMPFILE] {
        for bit in [S_ISUID, S_ISGID] {
            cases.push(Case::both(has(flags, flag), has(mode, bit), EPERM));
        }
    }
    Rule::cases(&[syscall], cases, Action::Allow)
}

const fn has(arg: u8, bit: u32) -> Condition {
    Condition::int_masked(arg, bit, bit)
}
