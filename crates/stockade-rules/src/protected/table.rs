//! The one table of protected names.
//!
//! `docs/protected-names.md` lists what is left out, and why; its source is `tests/documents.rs`.

use super::judge::Judge;

/// A protected name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProtectedName {
    /// One or more components with `/` between them, below the anchor.
    pub name: &'static str,
    /// Who runs code because of the file.
    pub guard: Guard,
    /// What the directory must be that the name hangs in.
    pub anchor: Anchor,
    /// Whether the name is a file, or a directory with everything below it.
    pub extent: Extent,
    /// How the content of a file that is put there is judged.
    pub judge: Judge,
    /// What happens on the host if the row is left out.
    pub reason: &'static str,
    /// Patterns below the root of a project by which a path rule can stand for the row, where
    /// nothing judges content. Empty if such a rule would stop git's ordinary work, and for
    /// [`Anchor::Root`], where the name itself is the pattern.
    pub patterns: &'static [&'static str],
}

/// Why a name is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Guard {
    /// Configuration of agents: commands, hooks, servers that they start.
    Agent,
    /// Configuration of editors: tasks and settings that run programs.
    Editor,
    /// Git's configuration, which names programs to run; `git_config = true` lifts these.
    GitConfig,
    /// Programs that git runs.
    GitHooks,
    /// The index, whose entries name the files that git writes.
    GitIndex,
    /// Files that send git to another repository's hooks and configuration.
    GitRedirect,
    /// State of a rebase or cherry-pick in progress, which can hold commands.
    GitSequence,
    /// What belongs to another worktree or a submodule of the repository.
    GitWorktree,
    /// Stockade's own policy for the project.
    Policy,
    /// Files that a shell or a session runs when it starts.
    Startup,
    /// Configuration of tools, which names programs to run.
    Tool,
}

impl Guard {
    /// The origin of the rules, as explanations print it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Agent => "built-in: agents run what it says",
            Self::Editor => "built-in: editors run what it says",
            Self::GitConfig => "built-in: git config names programs to run; see git_config",
            Self::GitHooks => "built-in: git runs hooks",
            Self::GitIndex => "built-in: git writes files where its entries say",
            Self::GitRedirect => "built-in: it sends git to other hooks and config",
            Self::GitSequence => "built-in: git runs what it says when a rebase continues",
            Self::GitWorktree => "built-in: it belongs to another worktree or a submodule",
            Self::Policy => "built-in: a sandbox does not edit its own policy",
            Self::Startup => "built-in: shells run it when they start",
            Self::Tool => "built-in: a tool's config that names programs to run",
        }
    }
}

/// What the directory that a name hangs in must be for its row to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Anchor {
    /// Any directory: nothing but git uses the name.
    Anywhere,
    /// A git directory: one that is called `.git`, or one with entries `objects` and `refs`; also
    /// where it keeps the git directory of a submodule or the state of a worktree.
    ///
    /// `HEAD` is not asked for: git looks for it in the directory that a redirect names, and takes
    /// hooks and configuration from the common directory, where `objects` and `refs` are.
    GitDirectory,
    /// The workspace, the root of a repository that was there when the run began, or the home
    /// directory. Elsewhere, in dependencies and in new repositories, nobody reads the file
    /// before a person opens that directory as a project.
    Root,
}

/// How far a protected name reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Extent {
    /// The name is a file. A directory of that name has no effect.
    File,
    /// The name is a directory, and everything below is protected. An empty directory of that
    /// name has no effect.
    Subtree,
}

impl ProtectedName {
    /// A row for what is protected by its role in one run and not by its name.
    pub const fn special(guard: Guard, reason: &'static str) -> Self {
        Self {
            name: "",
            guard,
            anchor: Anchor::Anywhere,
            extent: Extent::Subtree,
            judge: Judge::Never,
            patterns: &[],
            reason,
        }
    }

    /// Whether content passes that no sandboxed command can have written, because it is older. Not for
    /// git's own files and Stockade's policy: nobody checks them out.
    pub fn accepts_old_content(&self) -> bool {
        let kinds = [Guard::Agent, Guard::Editor, Guard::Startup, Guard::Tool];
        self.anchor == Anchor::Root && self.judge == Judge::Never && kinds.contains(&self.guard)
    }

    /// Whether the row leaves out a file of this name: git copies its sample hooks into every new
    /// repository, and runs none of them, nor what rsync calls them while it copies
    /// (`.update.sample.O4XV0K`).
    pub fn excepts(&self, file_name: &[u8]) -> bool {
        let is_copy = file_name.starts_with(b".")
            && !file_name.contains(&b'/')
            && file_name.windows(8).any(|part| part == b".sample.");
        self.guard == Guard::GitHooks && (file_name.ends_with(b".sample") || is_copy)
    }
}

const fn git(
    anchor: Anchor,
    name: &'static str,
    guard: Guard,
    extent: Extent,
    judge: Judge,
    reason: &'static str,
    patterns: &'static [&'static str],
) -> ProtectedName {
    ProtectedName {
        name,
        guard,
        anchor,
        extent,
        judge,
        reason,
        patterns,
    }
}

const fn root(
    guard: Guard,
    extent: Extent,
    name: &'static str,
    reason: &'static str,
) -> ProtectedName {
    git(Anchor::Root, name, guard, extent, Judge::Never, reason, &[])
}

use Anchor::{Anywhere, GitDirectory};
use Extent::{File, Subtree};
use Guard::{
    Agent, Editor, GitConfig, GitHooks, GitIndex, GitRedirect, GitSequence, Policy, Startup, Tool,
};

/// Every protected name.
#[rustfmt::skip]
pub const PROTECTED: &[ProtectedName] = &[
    git(GitDirectory, "hooks", GitHooks, Subtree, Judge::Never, "git runs the programs in it", &[".git/hooks", ".git/modules/**/hooks"]),
    git(GitDirectory, "config", GitConfig, File, Judge::Config, "its keys name programs, files and hosts", &[".git/config", ".git/modules/**/config"]),
    git(GitDirectory, "branches", GitConfig, Subtree, Judge::Never, "old form of remotes: an address may name a program", &[]),
    git(GitDirectory, "remotes", GitConfig, Subtree, Judge::Never, "old form of remotes: an address may name a program", &[]),
    git(GitDirectory, "index", GitIndex, File, Judge::Index, "an entry `.git/hooks/pre-commit` becomes a hook at `git checkout .`", &[]),
    git(Anywhere, "config.worktree", GitConfig, File, Judge::Config, "configuration of one worktree", &[".git/config.worktree", ".git/modules/**/config.worktree", ".git/worktrees/*/config.worktree"]),
    git(Anywhere, ".git", GitRedirect, File, Judge::Redirect, "as a file it names another git directory", &[]),
    git(Anywhere, "commondir", GitRedirect, File, Judge::CommonDirectory, "it names the directory of hooks and config", &[".git/commondir"]),
    git(Anywhere, "rebase-merge/git-rebase-todo", GitSequence, File, Judge::Todo, "`exec` lines run at `git rebase --continue`", &[]),
    git(Anywhere, "rebase-merge/author-script", GitSequence, File, Judge::AuthorScript, "git before 2.21 makes every line an environment variable of `git commit`", &[]),
    git(Anywhere, "rebase-merge/strategy", GitSequence, File, Judge::Strategy, "git runs `git-merge-STRATEGY`", &[]),
    git(Anywhere, "sequencer/opts", GitSequence, File, Judge::SequencerOptions, "`options.strategy` runs `git-merge-STRATEGY`", &[]),

    git(Anywhere, ".hg/hgrc", Tool, File, Judge::MercurialConfig, "its hooks, extensions and aliases run at any command of hg", &[".hg/hgrc"]),
    git(Anywhere, ".hg/hgrc-not-shared", Tool, File, Judge::MercurialConfig, "as `.hg/hgrc`, where another repository shares its store", &[".hg/hgrc-not-shared"]),
    git(Anywhere, ".hg/sharedpath", Tool, File, Judge::MercurialShare, "hg reads `hgrc` from the directory that it names", &[".hg/sharedpath"]),

    git(Anywhere, ".jj/repo", Tool, File, Judge::JujutsuRepository, "as a file it names the directory that jj reads `config.toml` from", &[]),
    git(Anywhere, ".jj/repo/config.toml", Tool, File, Judge::JujutsuConfig, "it names the pager, editor and tools that jj runs; jj before 0.37 reads it, and later ones adopt it", &[".jj/repo/config.toml"]),
    git(Anywhere, ".jj/workspace-config.toml", Tool, File, Judge::JujutsuConfig, "as `.jj/repo/config.toml`, for one workspace", &[".jj/workspace-config.toml"]),

    // At the root of a project too: people keep their dotfiles in a repository and link to them.
    git(Anchor::Root, ".gitconfig", GitConfig, File, Judge::Config, "git's configuration of the user", &[]),
    root(GitConfig, Subtree, ".config/git", "git's configuration of the user; gitk runs a file in it"),

    root(Agent, Subtree, ".agents", "agents load skills from it"),
    root(Agent, File, ".aider.conf.yml", "it names commands that the agent runs to check its work"),
    root(Agent, File, ".claude.json", "it names servers that the agent starts"),
    root(Agent, Subtree, ".claude/agents", "agents that may run commands"),
    root(Agent, Subtree, ".claude/commands", "commands that the agent runs"),
    root(Agent, Subtree, ".claude/hooks", "programs that the agent runs"),
    root(Agent, File, ".claude/settings.json", "hooks and permissions of the agent"),
    root(Agent, File, ".claude/settings.local.json", "hooks and permissions of the agent"),
    root(Agent, Subtree, ".claude/skills", "scripts that the agent runs"),
    root(Agent, Subtree, ".codex", "it names servers and programs that the agent starts"),
    root(Agent, Subtree, ".cursor", "it names servers and hooks that the agent starts"),
    root(Agent, Subtree, ".gemini", "it names servers that the agent starts"),
    root(Agent, File, ".mcp.json", "it names servers that agents start"),
    root(Agent, Subtree, ".opencode", "plugins that the agent runs"),
    root(Agent, Subtree, ".qwen", "it names servers and hooks that the agent starts"),
    root(Agent, Subtree, ".vtcode", "it names servers and hooks that the agent starts"),
    root(Agent, File, "opencode.json", "it names servers and plugins that the agent starts"),
    root(Agent, File, "opencode.jsonc", "it names servers and plugins that the agent starts"),

    root(Editor, File, ".exrc", "vim runs it where `exrc` is set"),
    root(Editor, Subtree, ".idea", "run configurations and file watchers"),
    root(Editor, File, ".nvim.lua", "neovim runs it where `exrc` is set"),
    root(Editor, File, ".nvimrc", "neovim runs it where `exrc` is set"),
    root(Editor, File, ".vimrc", "vim runs it at start"),
    root(Editor, Subtree, ".vscode", "tasks and settings that name programs"),
    root(Editor, Subtree, ".zed", "tasks and settings that name programs"),

    root(Startup, File, ".bash_aliases", "Debian's .bashrc runs it"),
    root(Startup, File, ".bash_login", "bash runs it at login"),
    root(Startup, File, ".bash_logout", "bash runs it at logout"),
    root(Startup, File, ".bash_profile", "bash runs it at login"),
    root(Startup, File, ".bashrc", "bash runs it at start"),
    root(Startup, Subtree, ".config/autostart", "the desktop starts the programs it names"),
    root(Startup, Subtree, ".config/fish", "fish runs it at start"),
    root(Startup, Subtree, ".config/systemd", "systemd starts the services it names"),
    root(Startup, File, ".envrc", "direnv runs it, without a question where the directory is on its whitelist"),
    root(Startup, File, ".inputrc", "it binds keys to text that the shell then runs"),
    root(Startup, File, ".profile", "shells run it at login"),
    root(Startup, File, ".zlogin", "zsh runs it at login"),
    root(Startup, File, ".zlogout", "zsh runs it at logout"),
    root(Startup, File, ".zprofile", "zsh runs it at login"),
    root(Startup, File, ".zshenv", "zsh runs it at start"),
    root(Startup, File, ".zshrc", "zsh runs it at start"),

    root(Tool, Subtree, ".config/hg", "Mercurial's configuration of the user"),
    root(Tool, Subtree, ".config/jj", "Jujutsu's configuration of the user and of repositories"),
    root(Tool, File, ".hgrc", "Mercurial's configuration of the user"),
    root(Tool, File, ".jjconfig.toml", "Jujutsu's configuration of the user"),
    root(Tool, File, ".ripgreprc", "`--pre` in it names a program"),

    root(Policy, Subtree, ".stockade", "Stockade's settings of the project"),
    root(Policy, File, "stockade.toml", "Stockade's policy of the project"),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_relative() {
        let mut seen = BTreeSet::new();
        for row in PROTECTED {
            assert!(seen.insert(row.name), "{} twice", row.name);
            let mut parts = row.name.split('/');
            assert!(
                parts.all(|part| !matches!(part, "" | "." | "..")),
                "{}",
                row.name
            );
            assert!(!row.reason.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn only_sample_hooks_are_excepted() {
        let row = |name| PROTECTED.iter().find(|row| row.name == name).unwrap();
        assert!(row("hooks").excepts(b"pre-commit.sample"));
        assert!(!row("hooks").excepts(b"pre-commit"));
        assert!(!row(".vscode").excepts(b"tasks.sample"));
    }
}
