//! `stockade exec`: a command in a session that another process owns.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};

use stockade_engine::{Attended, Ending, RunError, attend, catch_signals};
use stockade_linux::Channel;
use stockade_linux::plan::Text;

use super::directory::{Directory, check_name};
use super::protocol::{Answer, Exec, Request, receive, send};
use super::{gone, unknown, unreachable};
use crate::args::ExecArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Format};

pub(crate) fn run(args: &ExecArgs) -> Result<Exit, Failure> {
    check_name(&args.name)?;
    let request = Request::Exec(exec(args)?);
    let channel = Directory::open()?.connect(&args.name);
    let channel = channel.map_err(unreachable)?;
    let channel = channel.ok_or_else(|| unknown(&args.name))?;
    let standard = [
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
        rustix::stdio::stderr(),
    ];
    let failed = |error: RunError| Failure::new(Exit::NotSetUp, error);
    let signals = catch_signals().map_err(failed)?;
    send(&channel, &request, &standard).map_err(unreachable)?;
    let answered = receive::<Answer>(&channel).map_err(unreachable)?;
    let (answer, mut terminal) = answered.ok_or_else(|| gone(&args.name))?;
    let Answer::Started = answer.or_refusal()? else {
        return Err(gone(&args.name));
    };
    let mut remote = Remote {
        channel,
        is_stopped: false,
        is_ending: false,
        ended: None,
    };
    attend(&mut remote, &signals, terminal.pop()).map_err(failed)?;
    let (code, remarks) = remote.ended.ok_or_else(|| gone(&args.name))?;
    if !args.quiet {
        for remark in remarks {
            output::warn(&remark, Format::of(args.output.json));
        }
    }
    Ok(Exit::Command(code))
}

fn exec(args: &ExecArgs) -> Result<Exec, Failure> {
    let text = |word: &OsString| {
        let refuse = || {
            let text = format!("`{}` contains a NUL byte", word.display());
            Failure::text(Exit::Usage, text)
        };
        Text::new(word.clone()).ok_or_else(refuse)
    };
    let variable = |word: &OsString| {
        if word.as_encoded_bytes().contains(&b'=') {
            return text(word);
        }
        let text = format!("`--env {}` has no value", word.display());
        Err(Failure::text(Exit::Usage, text).hint("--env NAME=VALUE"))
    };
    let cwd = args.cwd.as_ref().map(|dir| dir.clone().into_os_string());
    Ok(Exec {
        argv: args.command.iter().map(text).collect::<Result<_, _>>()?,
        env: args.env.iter().map(variable).collect::<Result<_, _>>()?,
        cwd: cwd.as_ref().map(text).transpose()?,
        // This program's own terminal never gets into a sandbox. Input that is not typed stays what
        // it is, so that its end is seen.
        terminal: [
            io::stdin().is_terminal(),
            args.tty || io::stdout().is_terminal(),
            args.tty || io::stderr().is_terminal(),
        ],
        timeout: args.timeout,
    })
}

/// A command that the owner of a session holds.
struct Remote {
    channel: Channel,
    is_stopped: bool,
    is_ending: bool,
    ended: Option<(u8, Vec<String>)>,
}

impl Attended for Remote {
    fn messages(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    fn hear(&mut self) -> Result<bool, RunError> {
        let failed = |source| RunError::Io {
            act: "hear the owner of the session",
            source,
        };
        match receive(&self.channel).map_err(failed)? {
            Some((Answer::Ended { code, remarks }, _)) => {
                self.ended = Some((code, remarks));
                return Ok(false);
            }
            Some((Answer::Stopped, _)) => self.is_stopped = true,
            Some(_) => {}
            None => return Ok(false),
        }
        Ok(true)
    }

    fn take_stopped(&mut self) -> bool {
        std::mem::take(&mut self.is_stopped)
    }

    fn signal(&self, signal: i32) -> io::Result<()> {
        send(&self.channel, &Request::Signal(signal), &[])
    }

    fn end(&mut self, _why: Ending) {
        // The owner kills the command when this program hangs up.
        self.is_ending = true;
    }

    fn is_ending(&self) -> bool {
        self.is_ending
    }
}
