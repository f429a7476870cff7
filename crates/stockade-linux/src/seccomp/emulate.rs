//! A second implementation of the kernel's side: runs a program on one call.
//!
//! It exists to prove filters (the tests at the end try every number on every architecture) and to
//! count what they cost. It understands the instructions that [`compile`](super::compile) emits
//! and takes anything else for a fault, as the kernel's checker would at install time.

use std::fmt;

use super::bpf::{self, Instruction, Program};
use super::filter::{Action, SyscallData};

/// What a program did with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The action it returned.
    pub action: Action,
    /// How many instructions it ran to get there.
    pub steps: usize,
    /// Whether it looked at an argument on the way. Where it did not and the call is allowed, the
    /// kernel (5.11) remembers the answer and runs no instruction at all.
    pub reads_arguments: bool,
}

/// Why a program has no outcome. No compiled program has a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// An instruction that this emulator does not know.
    Instruction(Instruction),
    /// A load outside `struct seccomp_data`, or not of a whole word.
    Load(u32),
    /// The program ran past its end.
    PastEnd,
    /// A return value that is none of the actions.
    Return(u32),
}

/// Runs a program on a call.
pub fn run(program: &Program, data: &SyscallData) -> Result<Outcome, Fault> {
    let code = program.instructions();
    let mut accumulator = 0;
    let mut reads_arguments = false;
    let mut at = 0;
    // Jumps only go forward, so no program runs longer than it is.
    for steps in 1..=code.len() {
        let instruction = code.get(at).ok_or(Fault::PastEnd)?;
        let Instruction { code, jt, jf, k } = *instruction;
        let skipped = match code {
            bpf::RET => {
                let action = Action::from_raw(k).ok_or(Fault::Return(k))?;
                return Ok(Outcome {
                    action,
                    steps,
                    reads_arguments,
                });
            }
            bpf::LOAD => {
                accumulator = load(data, k).ok_or(Fault::Load(k))?;
                reads_arguments |= k >= bpf::ARGS_OFFSET;
                0
            }
            bpf::AND => {
                accumulator &= k;
                0
            }
            bpf::JA => usize::try_from(k).map_err(|_| Fault::PastEnd)?,
            bpf::JEQ | bpf::JGE | bpf::JSET => {
                let holds = match code {
                    bpf::JEQ => accumulator == k,
                    bpf::JGE => accumulator >= k,
                    _ => accumulator & k != 0,
                };
                usize::from(if holds { jt } else { jf })
            }
            _ => return Err(Fault::Instruction(*instruction)),
        };
        at = at.saturating_add(1).saturating_add(skipped);
    }
    Err(Fault::PastEnd)
}

/// One word of `struct seccomp_data`, as a little-endian machine lays it out.
fn load(data: &SyscallData, offset: u32) -> Option<u32> {
    match offset {
        bpf::NUMBER_OFFSET => Some(data.number),
        bpf::ARCH_OFFSET => Some(data.arch),
        _ => {
            let word = offset
                .checked_sub(bpf::ARGS_OFFSET)
                .filter(|at| at % 4 == 0)?
                / 4;
            let arg = *data.args.get(usize::try_from(word / 2).ok()?)?;
            Some(bpf::halves(arg)[usize::from(word % 2 == 1)])
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instruction(instruction) => write!(f, "unknown instruction {instruction:?}"),
            Self::Load(offset) => write!(f, "load from offset {offset} of the call's data"),
            Self::PastEnd => f.write_str("the program runs past its end"),
            Self::Return(value) => write!(f, "return value {value:#x} is no action"),
        }
    }
}

impl std::error::Error for Fault {}
