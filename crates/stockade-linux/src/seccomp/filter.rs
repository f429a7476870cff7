//! What a filter decides, as plain data: the printable form, and a second opinion on the program.
//!
//! A [`FilterSpec`] is part of the plan of a run. It can be printed, compared, stored and read
//! back, and [`FilterSpec::verdict`] says in a few naive lines what it means; the program that the
//! kernel runs is compiled from it ([`compile`](super::compile)) and proved equal to it.
//!
//! A rule is a list of cases. The first case whose conditions all hold decides, else `otherwise`
//! does: allow-lists ("these socket families, no others") and deny-lists ("not these ioctls")
//! take the same form.

use serde::{Deserialize, Serialize};

use super::error::SpecError;
use super::table::{self, Arch, X32_BIT};

/// A whole filter for one native architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterSpec {
    /// The architecture whose calls the rules name.
    pub arch: Arch,
    /// Calls entered through any other architecture (`int 0x80`, 32-bit Arm programs).
    pub foreign: Action,
    /// Calls with the x32 bit; only `x86_64` has such calls.
    pub x32: Action,
    /// Numbers that the table of `arch` does not name: holes, and calls newer than the table.
    pub unknown: Action,
    /// Calls that no rule names.
    pub default: Action,
    /// Rules; a call is named at most once among them.
    pub rules: Vec<Rule>,
}

/// One decision list, shared by the calls it names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The calls this rule is about.
    pub syscalls: Vec<String>,
    /// Cases in order; the first that applies decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cases: Vec<Case>,
    /// The action when no case applies.
    pub otherwise: Action,
}

/// One line of a decision list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Conditions that must all hold.
    pub when: Vec<Condition>,
    /// The action when they do.
    pub then: Action,
}

/// A masked comparison of one argument: `(argument & mask) == value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Index of the argument, 0 to 5.
    pub arg: u8,
    /// How much of the register the kernel looks at.
    pub width: Width,
    /// Bits that count.
    pub mask: u64,
    /// What those bits must be.
    pub value: u64,
}

/// How much of an argument register means something.
///
/// A register holds 64 bits, but the kernel reads an `int` from its low half and ignores the rest.
/// A filter that compares 64 bits is passed by setting a bit in the upper half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "a register has these two readings and no other"
)]
pub enum Width {
    /// Pointers, sizes and other `long` arguments.
    Full64,
    /// `int` and `unsigned int` arguments.
    Low32,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Action {
    /// The call goes through.
    Allow,
    /// The call fails with this errno, 1 to 4095.
    Errno(u16),
    /// The whole process dies by `SIGSYS`.
    KillProcess,
    /// The call goes through and the kernel logs it (Linux 4.14).
    Log,
    /// A supervisor answers the call (`SECCOMP_RET_USER_NOTIF`, Linux 5.0).
    Notify,
}

/// The part of `struct seccomp_data` that filters look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "the kernel's layout; tests build it"
)]
pub struct SyscallData {
    /// System call number, with the x32 bit where it was set.
    pub number: u32,
    /// `AUDIT_ARCH_*` of the entry that was used.
    pub arch: u32,
    /// Argument registers.
    pub args: [u64; 6],
}

impl FilterSpec {
    /// Adds a rule. Where a call already has one, both apply and the stricter action wins, as if
    /// two filters were stacked.
    pub fn add(&mut self, rule: Rule) {
        let Rule {
            syscalls,
            cases,
            otherwise,
        } = rule;
        let mut fresh = Vec::new();
        for name in syscalls {
            let Some(old) = self
                .rules
                .iter_mut()
                .find(|old| old.syscalls.contains(&name))
            else {
                fresh.push(name);
                continue;
            };
            old.syscalls.retain(|other| *other != name);
            let both = old.stricter(&cases, otherwise, name);
            self.rules.push(both);
        }
        self.rules.retain(|rule| !rule.syscalls.is_empty());
        if !fresh.is_empty() {
            self.rules.push(Rule {
                syscalls: fresh,
                cases,
                otherwise,
            });
        }
    }

    /// What this filter does with a call. The program is proved against this.
    pub fn verdict(&self, data: &SyscallData) -> Action {
        if data.arch != self.arch.audit() {
            return self.foreign;
        }
        if self.arch == Arch::X86_64 && data.number >= X32_BIT {
            return self.x32;
        }
        let Some(name) = self.arch.name(data.number) else {
            return self.unknown;
        };
        match self.rule(name) {
            Some(rule) => rule.verdict(&data.args),
            None => self.default,
        }
    }

    /// The rule about a call, if there is one.
    pub fn rule(&self, syscall: &str) -> Option<&Rule> {
        self.rules
            .iter()
            .find(|rule| rule.syscalls.iter().any(|name| name == syscall))
    }

    /// Whether any call can end at a supervisor, so that a listener is needed.
    pub fn notifies(&self) -> bool {
        self.actions().any(|action| action == Action::Notify)
    }

    /// Every action the filter can take.
    pub(super) fn actions(&self) -> impl Iterator<Item = Action> + '_ {
        let rules = self.rules.iter().flat_map(|rule| {
            rule.cases
                .iter()
                .map(|case| case.then)
                .chain(std::iter::once(rule.otherwise))
        });
        [self.foreign, self.x32, self.unknown, self.default]
            .into_iter()
            .chain(rules)
    }

    /// Refuses names, conditions and actions that would not do what they seem to say.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.arch == Arch::X32 {
            return Err(SpecError::UnsupportedArch);
        }
        for action in self.actions() {
            match action {
                Action::Errno(number) if !(1..=4095).contains(&number) => {
                    return Err(SpecError::Errno(number));
                }
                _ => {}
            }
        }
        let mut names: Vec<&str> = self
            .rules
            .iter()
            .flat_map(|rule| &rule.syscalls)
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(SpecError::DuplicateSyscall(pair[0].to_owned()));
        }
        check_names(self.arch, names)?;
        for rule in &self.rules {
            for condition in rule.cases.iter().flat_map(|case| &case.when) {
                if !condition.can_hold() {
                    let syscall = rule.syscalls.first().cloned().unwrap_or_default();
                    return Err(SpecError::Condition {
                        syscall,
                        condition: *condition,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Refuses names that no architecture has.
pub(super) fn check_names<'a>(
    arch: Arch,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<(), SpecError> {
    for name in names {
        if arch.number(name).is_none() && !table::is_known(name) {
            return Err(SpecError::UnknownSyscall(name.to_owned()));
        }
    }
    Ok(())
}

impl Rule {
    /// A rule without conditions.
    pub fn always(syscalls: &[&str], action: Action) -> Self {
        Self::cases(syscalls, Vec::new(), action)
    }

    /// A rule with conditions.
    pub fn cases(syscalls: &[&str], cases: Vec<Case>, otherwise: Action) -> Self {
        let syscalls = syscalls.iter().map(|name| (*name).to_owned()).collect();
        Self {
            syscalls,
            cases,
            otherwise,
        }
    }

    fn verdict(&self, args: &[u64; 6]) -> Action {
        self.cases
            .iter()
            .find(|case| case.when.iter().all(|condition| condition.holds(args)))
            .map_or(self.otherwise, |case| case.then)
    }

    /// The rule for `name` that takes the stricter action of this one and another.
    ///
    /// In the order (first of ours, first of theirs), (first of ours, second of theirs) … the
    /// first pair whose conditions all hold joins the case each list would have chosen alone.
    fn stricter(&self, cases: &[Case], otherwise: Action, name: String) -> Self {
        let with_else = |cases: &[Case], otherwise| {
            let mut all = cases.to_vec();
            all.push(Case {
                when: Vec::new(),
                then: otherwise,
            });
            all
        };
        let mut pairs = Vec::new();
        for ours in with_else(&self.cases, self.otherwise) {
            for theirs in with_else(cases, otherwise) {
                let mut when = ours.when.clone();
                when.extend(
                    theirs
                        .when
                        .iter()
                        .filter(|condition| !ours.when.contains(condition)),
                );
                pairs.push(Case {
                    when,
                    then: ours.then.stricter(theirs.then),
                });
            }
        }
        // The last pair is the one without conditions: what remains.
        let otherwise = pairs.pop().map_or(otherwise, |last| last.then);
        if pairs.iter().all(|case| case.then == otherwise) {
            pairs.clear();
        }
        Self {
            syscalls: vec![name],
            cases: pairs,
            otherwise,
        }
    }
}

impl Case {
    /// A case with one condition.
    pub fn when(condition: Condition, then: Action) -> Self {
        Self {
            when: vec![condition],
            then,
        }
    }

    /// A case with two conditions.
    pub fn both(first: Condition, second: Condition, then: Action) -> Self {
        Self {
            when: vec![first, second],
            then,
        }
    }
}

impl Condition {
    /// An `int` argument has exactly this value.
    pub const fn int_is(arg: u8, value: u32) -> Self {
        Self::int_masked(arg, u32::MAX, value)
    }

    /// The masked bits of an `int` argument have exactly this value.
    pub const fn int_masked(arg: u8, mask: u32, value: u32) -> Self {
        Self {
            arg,
            width: Width::Low32,
            mask: mask as u64,
            value: value as u64,
        }
    }

    /// The masked bits of a `long` argument have exactly this value.
    pub const fn long_masked(arg: u8, mask: u64, value: u64) -> Self {
        Self {
            arg,
            width: Width::Full64,
            mask,
            value,
        }
    }

    fn can_hold(&self) -> bool {
        let room = match self.width {
            Width::Full64 => u64::MAX,
            Width::Low32 => u64::from(u32::MAX),
        };
        self.arg < 6 && self.mask & !room == 0 && self.value & !self.mask == 0
    }

    fn holds(&self, args: &[u64; 6]) -> bool {
        // The mask of a `Low32` condition has no upper bits, so it also drops the upper half.
        args.get(usize::from(self.arg))
            .is_some_and(|arg| arg & self.mask == self.value)
    }
}

impl Action {
    /// The value a program returns for this action (`SECCOMP_RET_*`).
    pub const fn to_raw(self) -> u32 {
        match self {
            Self::Allow => 0x7fff_0000,
            Self::Errno(number) => 0x0005_0000 | number as u32,
            Self::KillProcess => 0x8000_0000,
            Self::Log => 0x7ffc_0000,
            Self::Notify => 0x7fc0_0000,
        }
    }

    /// The action a program's return value stands for, if it is one of these.
    pub fn from_raw(raw: u32) -> Option<Self> {
        match raw {
            0x7fff_0000 => Some(Self::Allow),
            0x8000_0000 => Some(Self::KillProcess),
            0x7ffc_0000 => Some(Self::Log),
            0x7fc0_0000 => Some(Self::Notify),
            _ if raw >> 16 == 5 => u16::try_from(raw & 0xffff).ok().map(Self::Errno),
            _ => None,
        }
    }

    /// Whether the call does not happen, whoever asks.
    pub const fn refuses(self) -> bool {
        matches!(self, Self::Errno(_) | Self::KillProcess)
    }

    /// The action that wins where two filters are stacked (seccomp(2), "in decreasing order of
    /// precedence"); of two errnos, the first.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        if other.rank() > self.rank() {
            other
        } else {
            self
        }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Log => 1,
            Self::Notify => 2,
            Self::Errno(_) => 3,
            Self::KillProcess => 4,
        }
    }
}
