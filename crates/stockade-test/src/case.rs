//! One case: a policy, a command, and the signs of what it did.

use std::time::Duration;

use crate::flag::Flag;
use crate::hostside::HostSide;
use crate::need::Need;
use crate::sign::Sign;
use crate::stage::Role;

/// What is run. Text may hold the placeholders of [`World::expand`](crate::world::World::expand).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Program {
    /// `sh -c`; prints the token first, so that a run which never started shows.
    Sh(String),
    /// Python source behind the attack prelude; prints the token first.
    Python(String),
    /// Words as they are. Nothing proves a start but the case's own signs.
    Argv(Vec<String>),
    /// A script on the host in which `@RUN@` starts a boxed command (or, in the control, nothing
    /// but the command itself). Something inside must print `@MARK@`.
    Launcher(String),
}

/// One command of a case.
#[derive(Debug, Clone)]
pub struct Step {
    /// What is run.
    pub program: Program,
    /// Its flags, if they are not the case's.
    pub flags: Option<Vec<Flag>>,
}

/// Whether and how the attack is first run without the sandbox.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Control {
    /// The same command, bare.
    Bare,
    /// The same command behind these words, for instance a weaker sandbox.
    Behind(&'static str),
    /// The same command in a sandbox with these flags: for what narrows one that has more.
    Confined(Vec<Flag>),
    /// Another script, where the case has no attack of its own to run (a launcher that walks).
    Script(&'static str),
    /// Only root can show the effect on this machine; the reason.
    RootOnly(&'static str, Option<&'static str>),
    /// None, and why the case proves something all the same.
    Absent(&'static str),
}

/// How a sign is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reading {
    /// Must show in the control and must not show inside.
    Leak,
    /// Must show in both.
    Works,
    /// Must show inside; the control is not asked.
    Boxed,
}

/// What a boxed run must do before anything else is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// The command starts: its token is printed.
    Begins,
    /// The launcher refuses with this code and the command never starts.
    Refused(i32),
    /// Either is sound as long as nothing leaks.
    Either,
}

/// A case; built with [`attack`] or [`allowed`].
#[derive(Debug)]
pub struct Case {
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    pub(crate) needs: Vec<Need>,
    pub(crate) role: Option<(Role, &'static str)>,
    pub(crate) setup: Vec<&'static str>,
    pub(crate) root_setup: Vec<&'static str>,
    pub(crate) cleanup: Vec<&'static str>,
    pub(crate) sides: Vec<HostSide>,
    pub(crate) flags: Vec<Flag>,
    pub(crate) env: Vec<(&'static str, &'static str)>,
    pub(crate) cwd: &'static str,
    pub(crate) stdin: Option<&'static str>,
    pub(crate) steps: Vec<Step>,
    pub(crate) control: Control,
    pub(crate) signs: Vec<(Reading, Sign)>,
    pub(crate) start: Start,
    pub(crate) bound: Duration,
    pub(crate) gap: Option<&'static str>,
    pub(crate) cli_only: Option<&'static str>,
    pub(crate) guarded: bool,
    pub(crate) alone: bool,
}

/// When a command hangs. Only that: a machine may be busy with other things, and how quick the
/// product is, benchmarks say.
pub(crate) const BOUND: Duration = Duration::from_secs(120);

/// A case whose point is that something does not happen; it must have a leak and is on the ledger.
pub fn attack(id: &'static str, title: &'static str) -> Case {
    Case {
        id,
        title,
        needs: Vec::new(),
        role: None,
        setup: Vec::new(),
        root_setup: Vec::new(),
        cleanup: Vec::new(),
        sides: Vec::new(),
        flags: Vec::new(),
        env: Vec::new(),
        cwd: "@P@",
        stdin: None,
        steps: Vec::new(),
        control: Control::Bare,
        signs: Vec::new(),
        start: Start::Begins,
        bound: BOUND,
        gap: None,
        cli_only: None,
        guarded: false,
        alone: false,
    }
}

/// A case whose point is that something works inside as it does outside.
pub fn allowed(id: &'static str, title: &'static str) -> Case {
    attack(id, title)
}

impl Case {
    /// Its id, as in the ledger.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// What it tries, in a few words.
    pub fn title(&self) -> &'static str {
        self.title
    }

    /// Whether it is a denial, and so belongs on the ledger.
    pub fn denies(&self) -> bool {
        self.signs
            .iter()
            .any(|(reading, _)| *reading == Reading::Leak)
    }

    /// Something the machine must have.
    #[must_use]
    pub fn needs(mut self, need: Need) -> Self {
        self.needs.push(need);
        self
    }

    /// Only for one of the users, and why.
    #[must_use]
    pub fn only(mut self, role: Role, reason: &'static str) -> Self {
        self.role = Some((role, reason));
        self
    }

    /// A host script of the actor that prepares the fixture, in the project directory.
    #[must_use]
    pub fn setup(mut self, script: &'static str) -> Self {
        self.setup.push(script);
        self
    }

    /// The same by root; the case then needs root.
    #[must_use]
    pub fn root_setup(mut self, script: &'static str) -> Self {
        self.root_setup.push(script);
        self.needs(Need::Root)
    }

    /// A host script of the suite's user, run whatever happened, for what lies outside the fixture.
    #[must_use]
    pub fn cleanup(mut self, script: &'static str) -> Self {
        self.cleanup.push(script);
        self
    }

    /// Something that waits on the host.
    #[must_use]
    pub fn side(mut self, side: HostSide) -> Self {
        self.sides.push(side);
        self
    }

    /// A flag of every boxed command.
    #[must_use]
    pub fn flag(mut self, flag: Flag) -> Self {
        self.flags.push(flag);
        self
    }

    /// Many flags of every boxed command.
    #[must_use]
    pub fn flags(mut self, flags: impl IntoIterator<Item = Flag>) -> Self {
        self.flags.extend(flags);
        self
    }

    /// A variable in the launcher's environment.
    #[must_use]
    pub fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.env.push((name, value));
        self
    }

    /// Where the launcher starts; the project unless said.
    #[must_use]
    pub fn cwd(mut self, dir: &'static str) -> Self {
        self.cwd = dir;
        self
    }

    /// A file as standard input.
    #[must_use]
    pub fn stdin(mut self, file: &'static str) -> Self {
        self.stdin = Some(file);
        self
    }

    /// A shell script to run.
    #[must_use]
    pub fn sh(self, script: impl Into<String>) -> Self {
        self.step(Program::Sh(script.into()))
    }

    /// Python source to run, behind the attack prelude.
    #[must_use]
    pub fn python(self, source: impl Into<String>) -> Self {
        self.step(Program::Python(source.into()))
            .needs(Need::Tool("python3"))
    }

    /// A command line to run.
    #[must_use]
    pub fn argv(self, words: &[&str]) -> Self {
        self.step(Program::Argv(
            words.iter().map(|&word| word.to_owned()).collect(),
        ))
    }

    /// A host script that starts boxed commands with `@RUN@`.
    #[must_use]
    pub fn launcher(self, script: impl Into<String>) -> Self {
        self.step(Program::Launcher(script.into()))
    }

    fn step(mut self, program: Program) -> Self {
        self.steps.push(Step {
            program,
            flags: None,
        });
        self
    }

    /// A flag of every boxed command, also of those with flags of their own: for running the same
    /// cases in another tier.
    #[must_use]
    pub fn everywhere(mut self, flag: &Flag) -> Self {
        let own = self.steps.iter_mut().filter_map(|step| step.flags.as_mut());
        for flags in own.chain([&mut self.flags]) {
            flags.push(flag.clone());
        }
        self
    }

    /// Flags of the last step alone, in place of the case's.
    #[must_use]
    pub fn with_flags(mut self, flags: impl IntoIterator<Item = Flag>) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.flags = Some(flags.into_iter().collect());
        }
        self
    }

    /// How the control is run, where it is not the bare command.
    #[must_use]
    pub fn control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }

    /// Must show without the sandbox and must not show inside.
    #[must_use]
    pub fn leak(self, sign: Sign) -> Self {
        self.sign(Reading::Leak, sign)
    }

    /// Must show in both.
    #[must_use]
    pub fn works(self, sign: Sign) -> Self {
        self.sign(Reading::Works, sign)
    }

    /// Must show inside.
    #[must_use]
    pub fn boxed(self, sign: Sign) -> Self {
        self.sign(Reading::Boxed, sign)
    }

    fn sign(mut self, reading: Reading, sign: Sign) -> Self {
        self.signs.push((reading, sign));
        self
    }

    /// The launcher must refuse to start the command, with this code.
    #[must_use]
    pub fn refused(mut self, code: i32) -> Self {
        self.start = Start::Refused(code);
        self
    }

    /// Refusing to start is as good as starting.
    #[must_use]
    pub fn may_refuse(mut self) -> Self {
        self.start = Start::Either;
        self
    }

    /// Time for each command, where the usual two minutes are too few.
    #[must_use]
    pub fn bound(mut self, bound: Duration) -> Self {
        self.bound = bound;
        self
    }

    /// Not stopped yet: it must still leak, or this note must go. Names the ledger's section.
    #[must_use]
    pub fn known_gap(mut self, note: &'static str) -> Self {
        self.gap = Some(note);
        self
    }

    /// Would harm the host if the sandbox did not hold: as root, the launcher itself is started in
    /// mount, process and name namespaces of its own.
    #[must_use]
    pub fn guarded(mut self) -> Self {
        self.guarded = true;
        self
    }

    /// Its setup changes what other rows are planned from, and some backends can't start when that
    /// changes between plan and start: the matrix of backends runs it after all others.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Makes no sense through the library, and why.
    #[must_use]
    pub fn cli_only(mut self, reason: &'static str) -> Self {
        self.cli_only = Some(reason);
        self
    }
}
