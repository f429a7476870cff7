//! How the content of a protected file is judged when it is put in place.

use std::fmt;

use super::git::{ConfigContext, config, index, redirect, sequencer, todo};
use super::{jujutsu, mercurial};

/// How the content of a protected file may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Judge {
    /// Lines of `author-script`: nothing but the author's name, address and date.
    AuthorScript,
    /// A path that leads to the common git directory; see [`Outcome::LeadsTo`].
    CommonDirectory,
    /// Git's configuration, by key.
    Config,
    /// An index whose entries lie in the working tree and in no git directory.
    Index,
    /// Jujutsu's configuration of a repository: aliases of revisions, a name and an address.
    JujutsuConfig,
    /// A path that leads to the `.jj/repo` of another workspace; see [`Outcome::LeadsTo`].
    JujutsuRepository,
    /// Mercurial's configuration of a repository: addresses and a name.
    MercurialConfig,
    /// A path that leads to the `.hg` of another repository; see [`Outcome::LeadsTo`].
    MercurialShare,
    /// No content passes.
    Never,
    /// A `.git` file; see [`Outcome::LeadsTo`].
    Redirect,
    /// `sequencer/opts`: configuration in which only the merge strategy can run something.
    SequencerOptions,
    /// The name of a merge strategy, which must be one that git has built in.
    Strategy,
    /// The commands of a rebase.
    Todo,
}

/// What a judge found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome<'text> {
    /// The content is harmless if this path is: relative to the directory of the file. The caller
    /// looks whether the git directory there is one whose hooks and configuration the sandbox
    /// can't prepare.
    LeadsTo(&'text [u8]),
    /// The content is harmless.
    Pass,
}

/// Why content does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The key or line, printable.
    pub key: String,
    /// What it would do.
    pub effect: Effect,
    /// What git does with it.
    pub reason: &'static str,
}

/// What a setting can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// It makes git, or a program around it, use another file, directory or host.
    Redirects,
    /// It names a program that is run.
    RunsProgram,
    /// Git could not read the content.
    Unreadable,
    /// It switches off or loosens a check.
    WeakensCheck,
}

impl Judge {
    /// No file of the kind is larger.
    pub const fn max_bytes(self) -> u64 {
        match self {
            // 100 bytes for each of five million files.
            Self::Index => 500 << 20,
            _ => 1 << 20,
        }
    }

    /// Judges `new`, which takes the place of `old` (empty if there was no file). What was in
    /// `old` may stay.
    ///
    /// # Errors
    /// If the content must not be put in place.
    pub fn content<'text>(
        self,
        old: &[u8],
        new: &'text [u8],
        context: &ConfigContext<'_>,
    ) -> Result<Outcome<'text>, Refusal> {
        let pass = |()| Outcome::Pass;
        match self {
            Self::AuthorScript => sequencer::judge_author_script(new).map(pass),
            Self::CommonDirectory => Ok(redirect::path_line(new).map_or(
                // Git does not follow an empty path.
                Outcome::Pass,
                Outcome::LeadsTo,
            )),
            Self::Config => config::judge(old, new, context).map(pass),
            Self::Index => index::judge(new).map(pass),
            Self::JujutsuConfig => jujutsu::judge(old, new).map(pass),
            // An empty path leads to `.jj` itself.
            Self::JujutsuRepository => Ok(Outcome::LeadsTo(new)),
            Self::MercurialConfig => mercurial::judge(old, new).map(pass),
            Self::MercurialShare => {
                Ok(mercurial::shared_path(new).map_or(Outcome::Pass, Outcome::LeadsTo))
            }
            Self::Never => Err(Refusal::new("", Effect::RunsProgram, "no content passes")),
            Self::Redirect => Ok(redirect::git_file(new).map_or(Outcome::Pass, Outcome::LeadsTo)),
            Self::SequencerOptions => sequencer::judge_options(old, new).map(pass),
            Self::Strategy => sequencer::judge_strategy(new).map(pass),
            Self::Todo => todo::judge(old, new).map(pass),
        }
    }
}

impl Refusal {
    pub(super) fn new(key: impl Into<String>, effect: Effect, reason: &'static str) -> Self {
        Self {
            key: key.into(),
            effect,
            reason,
        }
    }

    /// A text that is not what git expects.
    pub(super) fn unreadable(reason: &'static str) -> Self {
        Self::new("", Effect::Unreadable, reason)
    }
}

impl Effect {
    /// As messages print it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Redirects => "redirects git",
            Self::RunsProgram => "runs a program",
            Self::Unreadable => "can't be read by git",
            Self::WeakensCheck => "weakens a check",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "`{}` ", self.key)?;
        }
        write!(f, "{}: {}", self.effect.as_str(), self.reason)
    }
}

impl std::error::Error for Refusal {}
