//! From a [`FilterSpec`] to the classic BPF program the kernel runs.
//!
//! The program is written from its end to its beginning: jumps in classic BPF go forward only, so
//! the target of a jump always exists before the jump does. A conditional jump reaches 255
//! instructions; a target further off is reached through a copy (of a `ret`) or an unconditional
//! jump, which reaches everything.
//!
//! ```text
//! ld arch ; not ours → foreign
//! ld nr   ; x32 bit  → x32
//! binary search over the ranges of numbers with one fate
//! bodies of the rules with conditions
//! ```
//!
//! Only loads of the number and the architecture, comparisons with constants and returns lie on
//! the way to an unconditional verdict. The kernel (5.11) recognises that form and skips the
//! program for calls that are always allowed, so the search costs them nothing at all.

use super::error::SpecError;
use super::filter::{Action, Case, Condition, FilterSpec, Width};
use super::table::{Arch, X32_BIT};

/// The longest program the kernel takes (`BPF_MAXINSNS`).
pub const MAX_INSTRUCTIONS: usize = 4096;

/// One instruction, laid out as `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the kernel's layout")]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip when the comparison holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// A program the kernel will take: at least one instruction, at most [`MAX_INSTRUCTIONS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Vec<Instruction>);

impl Program {
    /// The instructions, in order.
    pub fn instructions(&self) -> &[Instruction] {
        &self.0
    }

    /// The program as the kernel reads it: 8 bytes an instruction, in this machine's byte order.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len() * 8);
        for instruction in &self.0 {
            bytes.extend_from_slice(&instruction.code.to_ne_bytes());
            bytes.extend_from_slice(&[instruction.jt, instruction.jf]);
            bytes.extend_from_slice(&instruction.k.to_ne_bytes());
        }
        bytes
    }
}

/// Compiles a specification.
pub fn compile(spec: &FilterSpec) -> Result<Program, SpecError> {
    spec.check()?;
    let mut out = Emitter::default();
    let ranges = ranges(spec, &mut out);
    let search = out.search(&ranges);
    let entry = if spec.arch == Arch::X86_64 {
        let x32 = out.ret(spec.x32);
        out.branch(JGE, X32_BIT, x32, search)
    } else {
        search
    };
    let load = out.load(NUMBER_OFFSET, entry);
    let foreign = out.ret(spec.foreign);
    let ours = out.branch(JEQ, spec.arch.audit(), load, foreign);
    out.load(ARCH_OFFSET, ours);
    out.finish()
}

/// Numbers from `start` to the next range's start share a fate.
#[derive(Clone, Copy)]
struct Range {
    start: u32,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ends(Action),
    Goes(Label),
}

/// Lays the rules out over the numbers of the architecture; emits the bodies on the way.
fn ranges(spec: &FilterSpec, out: &mut Emitter) -> Vec<Range> {
    // Numbers are small, but for the bit that all of x32 have, for which no filter is made.
    let last = spec.arch.table().iter().map(|entry| entry.1).max();
    let unknown = Fate::Ends(spec.unknown);
    let mut fates = vec![unknown; last.map_or(0, |number| number as usize + 1)];
    for (_, number) in spec.arch.table() {
        fates[*number as usize] = Fate::Ends(spec.default);
    }
    for rule in &spec.rules {
        let mut fate = None;
        for number in rule
            .syscalls
            .iter()
            .filter_map(|name| spec.arch.number(name))
        {
            fates[number as usize] = *fate.get_or_insert_with(|| {
                if rule.cases.is_empty() {
                    Fate::Ends(rule.otherwise)
                } else {
                    Fate::Goes(out.body(&rule.cases, rule.otherwise))
                }
            });
        }
    }
    let mut ranges: Vec<Range> = Vec::new();
    for (start, fate) in (0..).zip(fates.into_iter().chain([unknown])) {
        if ranges.last().is_none_or(|last| last.fate != fate) {
            ranges.push(Range { start, fate });
        }
    }
    ranges
}

/// The low and the high word of a register.
#[expect(clippy::cast_possible_truncation, reason = "each half is taken")]
pub(super) const fn halves(register: u64) -> [u32; 2] {
    [register as u32, (register >> 32) as u32]
}

/// Index of an instruction counted from the end of the program, so that it never moves.
type Label = usize;

/// A program under construction, last instruction first.
#[derive(Default)]
struct Emitter {
    code: Vec<Instruction>,
    /// The latest `ret` for each value.
    returns: Vec<(u32, Label)>,
    /// The latest unconditional jump to each far label.
    bridges: Vec<(Label, Label)>,
}

impl Emitter {
    fn finish(mut self) -> Result<Program, SpecError> {
        self.code.reverse();
        if self.code.len() > MAX_INSTRUCTIONS {
            return Err(SpecError::TooLong {
                instructions: self.code.len(),
            });
        }
        Ok(Program(self.code))
    }

    /// The search over a non-empty slice of ranges.
    fn search(&mut self, ranges: &[Range]) -> Label {
        match ranges {
            // Never asked for: the first range starts at 0. Closed all the same.
            [] => self.ret(Action::KillProcess),
            [only] => self.fate(only.fate),
            // One number between two ranges of the same fate: one comparison instead of two.
            [before, one, after] if before.fate == after.fate && one.start + 1 == after.start => {
                let equal = self.fate(one.fate);
                let other = self.fate(before.fate);
                self.branch(JEQ, one.start, equal, other)
            }
            _ => {
                let (low, high) = ranges.split_at(ranges.len() / 2);
                let start = high[0].start;
                let high = self.search(high);
                let low = self.search(low);
                self.branch(JGE, start, high, low)
            }
        }
    }

    fn fate(&mut self, fate: Fate) -> Label {
        match fate {
            Fate::Ends(action) => self.ret(action),
            Fate::Goes(label) => label,
        }
    }

    /// A decision list: each case falls through to the next.
    fn body(&mut self, cases: &[Case], otherwise: Action) -> Label {
        let mut next = self.ret(otherwise);
        for case in cases.iter().rev() {
            let then = self.ret(case.then);
            next = case
                .when
                .iter()
                .rev()
                .fold(then, |then, test| self.test(test, then, next));
        }
        next
    }

    fn test(&mut self, condition: &Condition, hit: Label, miss: Label) -> Label {
        // Little-endian: the low word of argument n lies at 16 + 8n, the high word behind it.
        let low = ARGS_OFFSET + 8 * u32::from(condition.arg);
        let ([mask_low, mask_high], [value_low, value_high]) =
            (halves(condition.mask), halves(condition.value));
        let hit = match condition.width {
            Width::Full64 if mask_high != 0 => {
                self.test_word(low + 4, mask_high, value_high, hit, miss)
            }
            Width::Full64 | Width::Low32 => hit,
        };
        self.test_word(low, mask_low, value_low, hit, miss)
    }

    fn test_word(&mut self, at: u32, mask: u32, value: u32, hit: Label, miss: Label) -> Label {
        if mask == 0 {
            return hit;
        }
        let bits_only = value == 0 || (mask == value && mask.is_power_of_two());
        if bits_only || mask == u32::MAX {
            // The word stays in the accumulator: targets that would load it again need not.
            let (hit, miss) = (self.past_load(hit, at), self.past_load(miss, at));
            let test = if mask == u32::MAX {
                self.branch(JEQ, value, hit, miss)
            } else if value == 0 {
                self.branch(JSET, mask, miss, hit)
            } else {
                self.branch(JSET, mask, hit, miss)
            };
            return self.load(at, test);
        }
        self.branch(JEQ, value, hit, miss);
        let masked = self.push(AND, mask);
        self.load(at, masked)
    }

    /// Loads a word and goes on at `next`.
    fn load(&mut self, at: u32, next: Label) -> Label {
        if next + 1 != self.code.len() {
            self.bridge(next);
        }
        self.push(LOAD, at)
    }

    fn past_load(&self, label: Label, at: u32) -> Label {
        let target = self.code[label];
        if (target.code, target.k) == (LOAD, at) {
            label - 1
        } else {
            label
        }
    }

    /// A comparison that continues at either label.
    fn branch(&mut self, code: u16, k: u32, hit: Label, miss: Label) -> Label {
        let hit = self.reach(hit);
        let miss = self.reach(miss);
        let (jt, jf) = (self.distance(hit), self.distance(miss));
        self.code.push(Instruction { code, jt, jf, k });
        self.code.len() - 1
    }

    /// A label with the same effect that a conditional jump reaches, even after one more bridge.
    fn reach(&mut self, label: Label) -> Label {
        if self.is_near(label) {
            return label;
        }
        let target = self.code[label];
        if target.code == RET {
            return self.ret_raw(target.k);
        }
        if let Some(&(_, bridge)) = self.bridges.iter().rev().find(|bridge| bridge.0 == label)
            && self.is_near(bridge)
        {
            return bridge;
        }
        self.bridge(label)
    }

    fn bridge(&mut self, label: Label) -> Label {
        // A program that no u32 can span is far beyond what `finish` lets pass.
        let far = u32::try_from(self.code.len() - label - 1).unwrap_or(u32::MAX);
        let bridge = self.push(JA, far);
        self.bridges.push((label, bridge));
        bridge
    }

    fn is_near(&self, label: Label) -> bool {
        u8::try_from(self.code.len() - label).is_ok()
    }

    fn distance(&self, label: Label) -> u8 {
        let distance = self.code.len() - label - 1;
        // `reach` leaves room for the one instruction that reaching the other target may add. A
        // wrong distance would be a wrong filter: rather none.
        let Ok(short) = u8::try_from(distance) else {
            unreachable!("a jump over {distance} instructions");
        };
        short
    }

    fn ret(&mut self, action: Action) -> Label {
        self.ret_raw(action.to_raw())
    }

    fn ret_raw(&mut self, value: u32) -> Label {
        match self.returns.iter().position(|entry| entry.0 == value) {
            Some(at) if self.is_near(self.returns[at].1) => self.returns[at].1,
            Some(at) => {
                let label = self.push(RET, value);
                self.returns[at].1 = label;
                label
            }
            None => {
                let label = self.push(RET, value);
                self.returns.push((value, label));
                label
            }
        }
    }

    fn push(&mut self, code: u16, k: u32) -> Label {
        self.code.push(Instruction {
            code,
            jt: 0,
            jf: 0,
            k,
        });
        self.code.len() - 1
    }
}

// Classic BPF (linux/bpf_common.h); what `super::emulate` understands.
pub(super) const LOAD: u16 = 0x20; // ld  A, [k]    BPF_LD  | BPF_W   | BPF_ABS
pub(super) const AND: u16 = 0x54; //  and A, k      BPF_ALU | BPF_AND | BPF_K
pub(super) const JA: u16 = 0x05; //   ja  k         BPF_JMP | BPF_JA
pub(super) const JEQ: u16 = 0x15; //  jeq A, k      BPF_JMP | BPF_JEQ | BPF_K
pub(super) const JGE: u16 = 0x35; //  jge A, k      BPF_JMP | BPF_JGE | BPF_K
pub(super) const JSET: u16 = 0x45; // jset A, k     BPF_JMP | BPF_JSET| BPF_K
pub(super) const RET: u16 = 0x06; //  ret k         BPF_RET | BPF_K

// Offsets in struct seccomp_data (linux/seccomp.h).
pub(super) const NUMBER_OFFSET: u32 = 0;
pub(super) const ARCH_OFFSET: u32 = 4;
pub(super) const ARGS_OFFSET: u32 = 16;

#[cfg(test)]
impl Program {
    /// A program from elsewhere, for comparing compilers.
    pub(super) fn from_instructions(instructions: Vec<Instruction>) -> Self {
        Self(instructions)
    }
}
