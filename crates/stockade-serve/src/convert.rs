//! What the engine reports, as the protocol has it.

use rustix::termios::Winsize;
use stockade::{ClauseReport, Denial, Ending, Enforcement, Finished, Subject, UsageScope};

use crate::api;

impl From<&Denial> for api::Denial {
    fn from(denial: &Denial) -> Self {
        let operation = serde_json::to_value(denial.operation).unwrap_or_default();
        Self {
            operation: operation.as_str().unwrap_or_default().to_owned(),
            subject: denial.subject.to_string(),
            host: match &denial.subject {
                Subject::Host { host, .. } => Some(host.clone()),
                _ => None,
            },
            rule: denial.rule.clone(),
            origin: denial.origin.clone(),
            grant: denial.grant.to_string(),
            errno: denial.errno,
        }
    }
}

impl From<api::Size> for Winsize {
    fn from(size: api::Size) -> Self {
        Self {
            ws_row: size.rows,
            ws_col: size.cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }
}

impl From<&ClauseReport> for api::Clause {
    fn from(clause: &ClauseReport) -> Self {
        Self {
            clause: clause.clause.to_string(),
            enforcement: match clause.enforcement {
                Enforcement::Full => api::Enforcement::Full,
                Enforcement::Partial => api::Enforcement::Partial,
                Enforcement::None => api::Enforcement::None,
            },
            mechanism: clause.mechanism.clone(),
            gap: clause.gap.clone(),
        }
    }
}

impl From<&Finished> for api::Waited {
    fn from(finished: &Finished) -> Self {
        let report = &finished.report;
        let (ending, signal) = match report.ending {
            Ending::Exited(_) => (api::Ending::Exited, None),
            Ending::Signalled(signal) => (api::Ending::Signalled, Some(signal)),
            Ending::TimedOut => (api::Ending::TimedOut, None),
            Ending::Killed => (api::Ending::Killed, Some(9)),
            Ending::CpuLimit | Ending::DiskLimit | Ending::MemoryLimit | Ending::OutputLimit => {
                (api::Ending::Limit, None)
            }
            _ => (api::Ending::Lost, None),
        };
        Self {
            exit_code: match report.ending {
                Ending::TimedOut => 124,
                _ => finished.status_code(),
            },
            ending,
            signal,
            denials: report.denials.iter().map(Into::into).collect(),
            wall_micros: report.usage.wall_micros,
            cpu_micros: report.usage.cpu_micros,
            peak_memory_kib: report.usage.peak_memory_kib,
            usage_scope: match report.usage.scope {
                UsageScope::All => api::UsageScope::All,
                UsageScope::Waited => api::UsageScope::Waited,
            },
        }
    }
}
