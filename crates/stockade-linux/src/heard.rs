//! What the launcher has heard about a command so far.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::control::Report;
use crate::mediator::Denial;
use crate::spawn::{Outcome, Usage, UsageScope};

#[derive(Debug, Default)]
pub(crate) struct Heard {
    /// The launcher's end of the command's terminal.
    pub(crate) terminal: Option<OwnedFd>,
    /// A copy of what the mediator listens on.
    listener: Option<OwnedFd>,
    /// The wait status, and whether the CPU time was over.
    exited: Option<(i32, bool)>,
    pub(crate) used: Usage,
    /// Whether the kernel killed a process for want of memory.
    memory_limit: bool,
    pub(crate) denials: Vec<Denial>,
    pub(crate) stopped: bool,
}

impl Heard {
    /// Hears one message; false when there will be no more.
    pub(crate) fn hear(&mut self, line: BorrowedFd<'_>) -> io::Result<bool> {
        let Some(report) = Report::receive(line)? else {
            return Ok(false);
        };
        self.take(report);
        Ok(true)
    }

    pub(crate) fn take(&mut self, report: Report) {
        match report {
            Report::Denied(denial) => self.denials.push(denial),
            Report::Exited { status, cpu_limit } => self.exited = Some((status, cpu_limit)),
            Report::Used {
                user_micros,
                system_micros,
                peak_kib,
                memory_limit,
            } => {
                self.memory_limit = memory_limit;
                self.used = Usage {
                    user_micros,
                    system_micros,
                    peak_kib,
                    scope: UsageScope::All,
                };
            }
            Report::Listener(listener) => self.listener = Some(listener),
            Report::Failed(_) | Report::Sockets(_) | Report::Started(_) => {}
            Report::Stopped => self.stopped = true,
            Report::Terminal(terminal) => self.terminal = Some(terminal),
        }
    }

    pub(crate) fn outcome(&self) -> Outcome {
        Outcome {
            status: self.exited.map(|(status, _)| status),
            cpu_limit: self.exited.is_some_and(|(_, cpu_limit)| cpu_limit),
            memory_limit: self.memory_limit,
            usage: self.used,
        }
    }
}
