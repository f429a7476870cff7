//! The keys of git's configuration that can do harm, and what their values may be.
//!
//! The table is made from git's own documentation (git-config(1) and the pages of single
//! commands). Every key that is not listed passes, known or not; a test asks the installed git
//! for its keys and fails if one is in no list. Tools beside git keep settings in the same files:
//! those that run programs from there are listed as well.

use super::config::{ConfigContext, KeyParts, Setting};
use super::values;
use crate::protected::judge::{Effect, Refusal};

/// A key, or several, that can do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Key {
    /// `section.variable`, `section.subsection.variable`, `section[.*].variable` with or without
    /// a subsection, or `section.**` for everything in a section. A subsection may end with `*`,
    /// and a variable may be `*`.
    pub name: &'static str,
    /// What the key can do.
    pub effect: Effect,
    /// Which values are harmless.
    pub value: Value,
    /// What git, or another program, does with the value.
    pub reason: &'static str,
}

/// Which values of a key are harmless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// Addresses whose transport git has built in; paths if the context says so.
    Address,
    /// Several addresses with white space between them.
    Addresses,
    /// Another name for a command of git that runs nothing else.
    Alias,
    /// True or false.
    Boolean,
    /// A format for one line.
    InstructionFormat,
    /// Options of `git merge` that neither choose a strategy nor skip a check.
    MergeOptions,
    /// None.
    Never,
    /// One of these, without regard to case.
    OneOf(&'static [&'static str]),
    /// A name without a slash, which can't lead out of the directory it is looked up in.
    PlainName,
    /// A mode that lets not everybody write.
    SharedMode,
    /// Any, if the subsection is a harmless address (see [`Value::Address`]).
    SubsectionAddress,
    /// True.
    True,
    /// Names of windows and the signs between them.
    VimLayout,
    /// What the context says.
    Worktree,
}

/// The entries of the table that are about a key, such as `core.editor`.
pub fn entries_for(key: &[u8]) -> impl Iterator<Item = &'static Key> {
    let parts = KeyParts::of(key);
    KEYS.iter().filter(move |entry| entry.matches(parts))
}

/// Judges one setting.
pub(super) fn judge(setting: &Setting, context: &ConfigContext<'_>) -> Result<(), Refusal> {
    let parts = KeyParts::of(&setting.key);
    let value = setting.value.as_deref();
    let refuse = |effect, reason| {
        let name = String::from_utf8_lossy(&setting.key);
        Err(Refusal::new(
            name.escape_debug().to_string(),
            effect,
            reason,
        ))
    };
    let mut is_listed = false;
    for key in entries_for(&setting.key) {
        // The entry about names of remotes says nothing about their variables.
        is_listed |= key.value != Value::SubsectionAddress;
        if !values::is_harmless(key.value, parts, value, context) {
            return refuse(key.effect, key.reason);
        }
    }
    let is_boolean = || values::is_harmless(Value::Boolean, parts, value, context);
    if !is_listed && names_a_program(parts.variable) && !is_boolean() {
        return refuse(Effect::RunsProgram, "its name says that it is a program");
    }
    Ok(())
}

/// Whether a variable that is in no list is called like those that tools run: git-annex alone has
/// dozens.
fn names_a_program(variable: &[u8]) -> bool {
    const ENDINGS: &[&str] = &["cmd", "command", "hook", "prog", "program", "-options"];
    ENDINGS
        .iter()
        .any(|ending| variable.ends_with(ending.as_bytes()))
}

impl Key {
    /// Whether the table's entry is about this key.
    fn matches(&self, parts: KeyParts<'_>) -> bool {
        let same = |name: &str, part: &[u8]| name.as_bytes().eq_ignore_ascii_case(part);
        let is_variable = |name| name == "*" || same(name, parts.variable);
        if let Some((section, variable)) = self.name.split_once("[.*].") {
            return same(section, parts.section) && is_variable(variable);
        }
        let (section, rest) = self.name.split_once('.').unwrap_or((self.name, ""));
        if !same(section, parts.section) {
            return false;
        }
        if rest == "**" {
            return true;
        }
        match (rest.rsplit_once('.'), parts.subsection) {
            (None, None) => is_variable(rest),
            (Some((pattern, variable)), Some(subsection)) => {
                let fits = match pattern.strip_suffix('*') {
                    Some(prefix) => subsection
                        .get(..prefix.len())
                        .is_some_and(|start| same(prefix, start)),
                    None => same(pattern, subsection),
                };
                fits && is_variable(variable)
            }
            _ => false,
        }
    }
}

const fn key(effect: Effect, name: &'static str, value: Value, reason: &'static str) -> Key {
    Key {
        name,
        effect,
        value,
        reason,
    }
}

use Effect::{Redirects, RunsProgram, WeakensCheck};
use Value::{
    Address, Addresses, Alias, Boolean, InstructionFormat, MergeOptions, Never, OneOf, PlainName,
    SharedMode, SubsectionAddress, True, VimLayout, Worktree,
};

const STRATEGY: Value = OneOf(super::sequencer::STRATEGIES);
const NEVER: Value = OneOf(&["never"]);
const EMPTY: Value = OneOf(&[""]);
const SEVERE: Value = OneOf(&["error"]);

/// Every key that can do harm.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    // Programs that git runs in everyday commands.
    key(RunsProgram, "alias.**", Alias, "an alias may run a shell command"),
    key(RunsProgram, "core.alternateRefsCommand", Never, "git runs it to list references of alternates"),
    key(RunsProgram, "core.askPass", Never, "git runs it to ask for a password"),
    key(RunsProgram, "core.editor", Never, "git runs it to edit messages"),
    key(RunsProgram, "core.fsmonitor", Boolean, "a path names a program that every `git status` runs"),
    key(RunsProgram, "core.gitProxy", Never, "git runs it to connect"),
    key(RunsProgram, "core.hooksPath", Never, "git runs the programs in this directory"),
    key(RunsProgram, "core.pager", Never, "git runs it to show output"),
    key(RunsProgram, "core.sshCommand", Never, "git runs it to connect"),
    key(RunsProgram, "core.virtualFilesystem", Never, "Microsoft's git runs it on every command"),
    key(RunsProgram, "credential[.*].helper", OneOf(&["", "cache"]), "git runs it to get a password"),
    key(RunsProgram, "diff.external", Never, "git runs it to compare files"),
    key(RunsProgram, "diff.*.command", Never, "git runs it to compare files"),
    key(RunsProgram, "diff.*.textconv", Never, "git runs it to show files"),
    key(RunsProgram, "filter.*.clean", OneOf(&["git-lfs clean -- %f"]), "git runs it on every file that is added"),
    key(RunsProgram, "filter.*.process", OneOf(&["git-lfs filter-process", "git-lfs filter-process --skip"]), "git runs it on every file that is added or checked out"),
    key(RunsProgram, "filter.*.smudge", OneOf(&["git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"]), "git runs it on every file that is checked out"),
    key(RunsProgram, "gc.recentObjectsHook", Never, "git runs it to collect garbage"),
    key(RunsProgram, "gpg.program", Never, "git runs it to sign and to verify"),
    key(RunsProgram, "gpg.*.program", Never, "git runs it to sign and to verify"),
    key(RunsProgram, "gpg.ssh.defaultKeyCommand", Never, "git runs it to find a key"),
    key(RunsProgram, "hook.**", Never, "git runs hooks that the configuration names"),
    key(RunsProgram, "init.templateDir", Never, "`git init` and `git clone` copy hooks from it"),
    key(RunsProgram, "interactive.diffFilter", Never, "git runs it in `git add -p`"),
    key(RunsProgram, "merge.*.driver", Never, "git runs it to merge files"),
    key(RunsProgram, "pager.**", Boolean, "a value that is not a boolean is a program to run"),
    key(RunsProgram, "sequence.editor", Never, "git runs it to edit a rebase"),
    key(RunsProgram, "tar.*.command", Never, "`git archive` runs it"),
    key(RunsProgram, "trailer.*.cmd", Never, "git runs it for every commit message"),
    key(RunsProgram, "trailer.*.command", Never, "git runs it for every commit message"),
    key(RunsProgram, "uploadpack.packObjectsHook", Never, "git runs it to serve a fetch"),
    key(RunsProgram, "rebase.instructionFormat", InstructionFormat, "a second line in a rebase's todo may be `exec`"),

    // Strategies are programs called git-merge-NAME.
    key(RunsProgram, "branch.*.mergeOptions", MergeOptions, "`--strategy` runs `git-merge-STRATEGY`"),
    key(RunsProgram, "pull.octopus", STRATEGY, "git runs `git-merge-STRATEGY`"),
    key(RunsProgram, "pull.twohead", STRATEGY, "git runs `git-merge-STRATEGY`"),

    // Tools that git starts by name. A name with a slash leads to any shell script.
    key(RunsProgram, "browser.*.cmd", Never, "git runs it to show a page"),
    key(RunsProgram, "browser.*.path", Never, "git runs it to show a page"),
    key(RunsProgram, "diff.guitool", PlainName, "git runs a script of this name"),
    key(RunsProgram, "diff.tool", PlainName, "git runs a script of this name"),
    key(RunsProgram, "difftool.*.cmd", Never, "git runs it to compare files"),
    key(RunsProgram, "difftool.*.path", Never, "git runs it to compare files"),
    key(RunsProgram, "guitool.*.cmd", Never, "git gui runs it"),
    key(RunsProgram, "help.browser", PlainName, "git runs a browser of this name"),
    key(RunsProgram, "instaweb.browser", PlainName, "git runs a browser of this name"),
    key(RunsProgram, "instaweb.httpd", Never, "git runs it as a web server"),
    key(RunsProgram, "instaweb.modulePath", Never, "the web server loads modules from it"),
    key(RunsProgram, "man.*.cmd", Never, "git runs it to show a manual page"),
    key(RunsProgram, "man.*.path", Never, "git runs it to show a manual page"),
    key(RunsProgram, "man.viewer", PlainName, "git runs a viewer of this name"),
    key(RunsProgram, "merge.guitool", PlainName, "git runs a script of this name"),
    key(RunsProgram, "merge.tool", PlainName, "git runs a script of this name"),
    key(RunsProgram, "mergetool.*.cmd", Never, "git runs it to merge files"),
    key(RunsProgram, "mergetool.*.layout", VimLayout, "it becomes part of a command line of vim"),
    key(RunsProgram, "mergetool.*.path", Never, "git runs it to merge files"),
    key(RunsProgram, "web.browser", PlainName, "git runs a browser of this name"),

    // Mail and other servers.
    key(RunsProgram, "gitcvs.dbDriver", Never, "the server loads a Perl module of this name"),
    key(RunsProgram, "gitcvs.*.dbDriver", Never, "the server loads a Perl module of this name"),
    key(RunsProgram, "imap.tunnel", Never, "git runs it to connect"),
    key(RunsProgram, "sendemail[.*].ccCmd", Never, "git runs it for every mail"),
    key(RunsProgram, "sendemail[.*].headerCmd", Never, "git runs it for every mail"),
    key(RunsProgram, "sendemail[.*].sendmailCmd", Never, "git runs it for every mail"),
    key(RunsProgram, "sendemail[.*].smtpServer", Never, "an absolute path is a program to run, a name is another host"),
    key(RunsProgram, "sendemail[.*].smtpServerOption", Never, "options of the program that sends mail"),
    key(RunsProgram, "sendemail[.*].toCmd", Never, "git runs it for every mail"),
    key(RunsProgram, "svn.authorsProg", Never, "git svn runs it for every author"),

    // Addresses: a helper named in one is a program, and some were taken for options
    // (gitremote-helpers(7), CVE-2017-1000117).
    key(RunsProgram, "branch.*.pushRemote", Address, "an address may name a program"),
    key(RunsProgram, "branch.*.remote", Address, "an address may name a program"),
    key(RunsProgram, "bundle.*.uri", Address, "an address may name a program"),
    key(RunsProgram, "extensions.partialClone", Address, "an address may name a program"),
    key(RunsProgram, "fetch.bundleURI", Address, "an address may name a program"),
    key(RunsProgram, "remote.*.*", SubsectionAddress, "the name of a remote without `url` is its address"),
    key(RunsProgram, "remote.*.pushurl", Address, "an address may name a program"),
    key(RunsProgram, "remote.*.receivepack", OneOf(&["git-receive-pack", "git receive-pack"]), "git runs it to push"),
    key(RunsProgram, "remote.*.uploadpack", OneOf(&["git-upload-pack", "git upload-pack"]), "git runs it to fetch"),
    key(RunsProgram, "remote.*.url", Address, "an address may name a program"),
    key(RunsProgram, "remote.*.vcs", Never, "git runs `git-remote-VCS`"),
    key(RunsProgram, "remote.pushDefault", Address, "an address may name a program"),
    key(RunsProgram, "remotes.*", Addresses, "an address may name a program"),
    key(RunsProgram, "submodule.*.update", OneOf(&["checkout", "merge", "none", "rebase"]), "`!` begins a shell command"),
    key(RunsProgram, "submodule.*.url", Address, "an address may name a program"),
    key(RunsProgram, "svn-remote.*.pushurl", Address, "an address may name a program"),
    key(RunsProgram, "svn-remote.*.url", Address, "an address may name a program"),
    key(Redirects, "url.*.insteadOf", Never, "it sends every address to another host"),
    key(Redirects, "url.*.pushInsteadOf", Never, "it sends every address to another host"),

    // Other files, directories and hosts.
    key(Redirects, "core.worktree", Worktree, "git checks out files there"),
    key(Redirects, "format.outputDirectory", Never, "`git format-patch` writes files there"),
    key(Redirects, "gc.repackFilterTo", Never, "git writes packs there"),
    key(Redirects, "gitcvs[.*].dbName", Never, "the server writes a database there"),
    key(Redirects, "gitcvs[.*].logFile", Never, "the server writes a log there"),
    key(Redirects, "help.htmlPath", Never, "git shows pages from there"),
    key(Redirects, "http[.*].cookieFile", Never, "git writes cookies to it with `http.saveCookies`"),
    key(Redirects, "http[.*].curloptResolve", Never, "it sends a host's traffic to another address"),
    key(Redirects, "http[.*].proxy", EMPTY, "it sends traffic through another host"),
    key(Redirects, "imap.host", Never, "git sends mail and a password there"),
    key(Redirects, "include.path", Never, "git reads more configuration from it"),
    key(Redirects, "includeIf.*.path", Never, "git reads more configuration from it"),
    key(Redirects, "maintenance.repo", Never, "scheduled jobs run git there"),
    key(Redirects, "remote.*.proxy", EMPTY, "it sends traffic through another host"),
    key(Redirects, "scalar.repo", Never, "scheduled jobs run git there"),
    key(Redirects, "trace2.eventTarget", Boolean, "git writes a log there"),
    key(Redirects, "trace2.normalTarget", Boolean, "git writes a log there"),
    key(Redirects, "trace2.perfTarget", Boolean, "git writes a log there"),

    // Checks.
    key(WeakensCheck, "core.protectHFS", True, "files may be checked out into .git"),
    key(WeakensCheck, "core.protectNTFS", True, "files may be checked out into .git"),
    key(WeakensCheck, "core.sharedRepository", SharedMode, "other users may write hooks and configuration"),
    key(WeakensCheck, "credential[.*].protectProtocol", True, "a host's name may carry other commands to the helper"),
    key(WeakensCheck, "credential[.*].sanitizePrompt", True, "a host's name may fake a prompt"),
    key(WeakensCheck, "daemon.receivepack", OneOf(&["false"]), "anybody may push to a served repository"),
    key(WeakensCheck, "fetch.fsck.*", SEVERE, "malformed objects are accepted"),
    key(WeakensCheck, "fetch.fsckObjects", True, "malformed objects are accepted"),
    key(WeakensCheck, "filter.*.required", True, "content is stored as it is if a filter fails"),
    key(WeakensCheck, "gpg.minTrustLevel", OneOf(&["fully", "ultimate"]), "signatures by less trusted keys are accepted"),
    key(WeakensCheck, "gpg.ssh.allowedSignersFile", Never, "it says whose signatures are valid"),
    key(WeakensCheck, "gpg.ssh.revocationFile", Never, "it says whose signatures are not valid"),
    key(WeakensCheck, "http[.*].delegation", OneOf(&["none", "policy"]), "the server may act for the user"),
    key(WeakensCheck, "http[.*].pinnedPubkey", Never, "another server's key is accepted"),
    key(RunsProgram, "http[.*].proxySSLCert", Never, "a `pkcs11:` address may load a module"),
    key(RunsProgram, "http[.*].proxySSLKey", Never, "a `pkcs11:` address may load a module"),
    key(RunsProgram, "http[.*].sslCert", Never, "a `pkcs11:` address may load a module"),
    key(RunsProgram, "http[.*].sslKey", Never, "a `pkcs11:` address may load a module"),
    key(WeakensCheck, "http[.*].proxySSLCAInfo", Never, "it says which certificates are valid"),
    key(WeakensCheck, "http[.*].schannelCheckRevoke", True, "revoked certificates are accepted"),
    key(WeakensCheck, "http[.*].sslCAInfo", Never, "it says which certificates are valid"),
    key(WeakensCheck, "http[.*].sslCAPath", Never, "it says which certificates are valid"),
    key(WeakensCheck, "http[.*].sslCipherList", Never, "weak encryption is accepted"),
    key(WeakensCheck, "http[.*].sslVerify", True, "any server is accepted"),
    key(WeakensCheck, "http[.*].sslVersion", OneOf(&["tlsv1.2", "tlsv1.3"]), "weak encryption is accepted"),
    key(WeakensCheck, "http.receivepack", OneOf(&["false"]), "anybody may push to a served repository"),
    key(WeakensCheck, "imap.sslverify", True, "any server is accepted"),
    key(WeakensCheck, "instaweb.local", True, "the web server answers to other machines"),
    key(WeakensCheck, "merge.verifySignatures", True, "commits without a valid signature are merged"),
    key(WeakensCheck, "protocol.allow", NEVER, "transports that run programs are accepted"),
    key(WeakensCheck, "protocol.*.allow", NEVER, "transports that run programs are accepted"),
    key(WeakensCheck, "receive.fsck.*", SEVERE, "malformed objects are accepted"),
    key(WeakensCheck, "receive.fsckObjects", True, "malformed objects are accepted"),
    key(WeakensCheck, "safe.bareRepository", OneOf(&["explicit"]), "a repository hidden in a project is used"),
    key(WeakensCheck, "safe.directory", EMPTY, "repositories of other users are used"),
    key(WeakensCheck, "sendemail[.*].smtpEncryption", OneOf(&["ssl", "tls"]), "mail and a password are sent in the clear"),
    key(WeakensCheck, "sendemail[.*].smtpSSLCertPath", Never, "it says which certificates are valid"),
    key(WeakensCheck, "tar.*.remote", OneOf(&["false"]), "others may start the archiver"),
    key(WeakensCheck, "transfer.fsckObjects", True, "malformed objects are accepted"),

    // Tools beside git that keep their settings in its files.
    key(RunsProgram, "delta[.*].pager", Never, "delta runs it to show output"),
    key(RunsProgram, "gitflow.path.hooks", Never, "git flow runs the programs in this directory"),
    key(RunsProgram, "lfs.customtransfer.*.*", Never, "Git LFS runs it to transfer files"),
    key(RunsProgram, "lfs.extension.*.*", Never, "Git LFS runs it on every file"),
    key(RunsProgram, "lfs.pushurl", Address, "an address may name a program"),
    key(RunsProgram, "lfs.url", Address, "an address may name a program"),
    key(RunsProgram, "remote.*.lfspushurl", Address, "an address may name a program"),
    key(RunsProgram, "remote.*.lfsurl", Address, "an address may name a program"),
    key(RunsProgram, "secrets.providers", Never, "git-secrets runs them"),
    key(RunsProgram, "stgit.**", Never, "StGit runs its editor, pager and aliases"),
    key(RunsProgram, "tig.**", Never, "tig binds keys to commands"),
];
