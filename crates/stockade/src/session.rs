//! A sandbox that stays open for many commands.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stockade_engine::{Attempt, ExecPlan, Finished, Report, Session as Engine, SessionSpec, Spec};
use stockade_linux::Builder;

use crate::child::Child;
use crate::command::{Counted, Output, Stdio, collect, command_setters, stdio};
use crate::error::Error;
use crate::sandbox::Sandbox;

/// A sandbox that stays open: it is built once, then each command costs a fork and an exec.
/// Dropping it kills everything in it.
///
/// Commands share the view of files, `/tmp`, the loopback and what earlier ones left running; each
/// has its own descriptors or terminal, directory, variables, time limit, ending and denials.
///
/// ```no_run
/// # fn main() -> Result<(), stockade::Error> {
/// stockade::init();
/// let session = stockade::Sandbox::builder().build()?.open()?;
/// session.command("make").status()?;
/// let output = session.command("make").arg("test").current_dir("tests").output()?;
/// println!("{:?}", output.ending());
/// session.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Session {
    // Before the overlay: everything inside is dead when the overlay is let go.
    engine: Engine,
    #[cfg(feature = "overlay")]
    pub(crate) overlay: Option<stockade_workspace::Overlay>,
    sandbox: Sandbox,
    /// Each command that runs has a copy.
    commands: Arc<()>,
}

/// A command to be started in a session.
#[derive(Debug)]
pub struct SessionCommand<'a> {
    session: &'a Session,
    spec: SessionSpec,
    standard: [Stdio; 3],
}

impl Sandbox {
    /// Opens a session: a sandbox that stays open for many commands.
    ///
    /// # Errors
    /// If the policy can't be enforced, or not by the backend `native`, which alone has sessions.
    pub fn open(&self) -> Result<Session, Error> {
        let parts = &self.parts;
        #[cfg(feature = "overlay")]
        let mut overlay = self.open_overlay()?;
        let spec = self.session_spec();
        let mut choice = parts.backends.choose(&parts.profile, &parts.helper)?;
        #[cfg_attr(
            not(feature = "overlay"),
            expect(unused_mut, reason = "nothing edits it")
        )]
        let engine = choice.start(&spec, |mut plan| {
            #[cfg(feature = "overlay")]
            if let Some(overlay) = &mut overlay {
                crate::overlay::add_layers(&mut plan, overlay).map_err(Attempt::Final)?;
            }
            parts.require_network(&plan).map_err(Attempt::Final)?;
            let builder = Builder::Program(&parts.helper);
            Engine::open(plan, builder, parts.network.as_deref()).map_err(Attempt::Refused)
        })?;
        Ok(Session {
            engine,
            #[cfg(feature = "overlay")]
            overlay,
            sandbox: self.clone(),
            commands: Arc::default(),
        })
    }

    fn session_spec(&self) -> Spec {
        Spec {
            env: std::env::vars_os().collect(),
            #[cfg(feature = "overlay")]
            overlay: self.parts.overlay.is_some(),
            ..Engine::spec()
        }
    }
}

impl Session {
    /// A command to start; a program without a slash is looked up inside.
    pub fn command(&self, program: impl AsRef<OsStr>) -> SessionCommand<'_> {
        SessionCommand {
            session: self,
            spec: SessionSpec {
                argv: vec![program.as_ref().to_owned()],
                ..SessionSpec::default()
            },
            standard: [Stdio::Inherit, Stdio::Inherit, Stdio::Inherit],
        }
    }

    /// The sandbox that the session is of.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Takes over the hosts and Unix sockets that another sandbox grants and that differs in nothing
    /// else: they hold at once, for commands that run already too. `None`: the sandbox has to be
    /// built again for what differs; then nothing has changed. Otherwise what the user should know.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), stockade::Error> {
    /// # stockade::init();
    /// use stockade::Sandbox;
    ///
    /// let session = Sandbox::builder().allow("api.example.org").build()?.open()?;
    /// let wider = Sandbox::builder().allow("api.example.org").allow("docs.example.org").build()?;
    /// assert!(session.adopt(&wider)?.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the other policy can't be enforced here, or the session has ended.
    pub fn adopt(&self, sandbox: &Sandbox) -> Result<Option<Vec<String>>, Error> {
        let parts = &sandbox.parts;
        let mut choice = parts.backends.choose(&parts.profile, &parts.helper)?;
        #[cfg_attr(
            not(feature = "overlay"),
            expect(unused_mut, reason = "nothing edits it")
        )]
        let mut plan = choice.next(&sandbox.session_spec())?;
        #[cfg(feature = "overlay")]
        if let Some(overlay) = &self.overlay {
            crate::overlay::name_layers(&mut plan, overlay)?;
        }
        let is_adopted = self.engine.adopt(&plan)?;
        Ok(is_adopted.then_some(plan.warnings))
    }

    /// Ends the sandbox, does something with what it left, and builds the sandbox again.
    #[cfg(feature = "overlay")]
    pub(crate) fn rebuild<T>(
        &mut self,
        act: impl FnOnce(&Sandbox) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if Arc::strong_count(&self.commands) > 1 {
            return Err(Error::SessionBusy);
        }
        self.engine.end()?;
        if let Some(overlay) = self.overlay.take() {
            overlay.note()?;
        }
        let acted = act(&self.sandbox);
        *self = self.sandbox.open()?;
        acted
    }

    /// What is enforced for every command.
    pub fn plan(&self) -> &ExecPlan {
        self.engine.plan()
    }

    /// Becomes readable when the session has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.engine.pidfd()
    }

    /// Kills everything in the session; [`Session::pidfd`] tells when it is gone.
    pub fn kill(&self) {
        self.engine.kill();
    }

    /// Ends the session: everything in it is killed and gone when this returns. The report is about
    /// what belongs to no single command: connections that were let pass, and denials of daemons.
    ///
    /// # Errors
    /// If its end can't be known.
    pub fn close(self) -> Result<Report, Error> {
        let report = self.engine.close()?;
        #[cfg(feature = "overlay")]
        if let Some(overlay) = self.overlay {
            overlay.note()?;
        }
        Ok(report)
    }
}

impl SessionCommand<'_> {
    command_setters!(spec.argv);

    /// Sets a variable. The others are those that the policy let pass when the session was opened.
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        let owned = |text: &OsStr| -> OsString { text.to_owned() };
        self.spec
            .env
            .push((owned(name.as_ref()), owned(value.as_ref())));
        self
    }

    /// Where the command starts, as seen inside; a relative path is relative to the session's
    /// directory.
    pub fn current_dir(&mut self, directory: impl AsRef<Path>) -> &mut Self {
        directory.as_ref().clone_into(&mut self.spec.cwd);
        self
    }

    /// Which of the standard three are a new terminal, the command's controlling one;
    /// [`Child::take_terminal`] gives its other end.
    pub fn terminal(&mut self, standard: [bool; 3]) -> &mut Self {
        self.spec.terminal = standard;
        self
    }

    /// When the command is killed, if it has not ended; by default the policy's wall time.
    pub fn timeout(&mut self, limit: Duration) -> &mut Self {
        self.spec.timeout = Some(limit);
        self
    }

    /// Starts the command.
    ///
    /// # Errors
    /// If it could not be started; then nothing of it has run.
    pub fn spawn(&mut self) -> Result<Child, Error> {
        let [stdin, stdout, stderr] = &self.standard;
        let engine = &self.session.engine;
        let is_counted = engine.plan().output.is_some();
        let stdin = stdio::input(stdin)?;
        let stdout = Counted::new(stdio::output(stdout, 1)?, is_counted)?;
        let stderr = Counted::new(stdio::output(stderr, 2)?, is_counted)?;
        let standard = [&stdin.inner, &stdout.inner, &stderr.inner].map(AsFd::as_fd);
        let mut running = engine.start(&self.spec, standard)?;
        let counted = [stdout.relay, stderr.relay];
        running.keep_limits(counted.into_iter().flatten().collect())?;
        Ok(Child {
            running,
            #[cfg(feature = "overlay")]
            overlay: None,
            session: Some(Arc::clone(&self.session.commands)),
            stdin: stdin.outer,
            stdout: stdout.outer,
            stderr: stderr.outer,
        })
    }

    /// Runs the command to its end.
    ///
    /// # Errors
    /// As [`SessionCommand::spawn`], and if it could not be waited for.
    pub fn status(&mut self) -> Result<Finished, Error> {
        self.spawn()?.wait()
    }

    /// Runs the command to its end and collects what it writes until then. What it leaves running
    /// in the background may go on writing, to nobody.
    ///
    /// # Errors
    /// If it could not be started or waited for.
    pub fn output(&mut self) -> Result<Output, Error> {
        self.standard[1] = Stdio::Piped;
        self.standard[2] = Stdio::Piped;
        collect(self.spawn()?)
    }
}
