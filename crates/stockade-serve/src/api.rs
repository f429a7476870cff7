//! The parameters and results of each method.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::bytes::Bytes;
use crate::error::Kind;

/// The version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Parameters of `initialize`, the first request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Initialize {
    /// The version that the client speaks.
    pub protocol: u32,
    /// The client's name, for people.
    #[serde(default)]
    pub client: Option<String>,
}

/// Result of `initialize`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Initialized {
    /// The version that the server speaks.
    pub protocol: u32,
    /// The server's version.
    pub version: String,
    /// What the server bounds.
    pub limits: Limits,
}

/// What the server bounds.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Limits {
    /// Bytes of a message.
    pub line_bytes: usize,
    /// Open sessions.
    pub sessions: usize,
    /// Commands that run, or whose output was not taken, in all sessions.
    pub commands: usize,
    /// Requests that are worked on at once.
    pub requests: usize,
    /// Bytes that wait to be read by one command.
    pub input_bytes: usize,
    /// Bytes of one `files.read` or `files.write`.
    pub file_bytes: usize,
    /// Entries of one `files.list`.
    pub list_entries: usize,
}

/// Parameters of `open`: the policy of a sandbox that stays open. Paths may be relative to the
/// workspace or begin with `~/`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[expect(
    clippy::exhaustive_structs,
    clippy::struct_excessive_bools,
    reason = "a version has these fields, each a flag"
)]
pub struct Open {
    /// The directory that the policy is about and that commands start in; the server's own
    /// directory by default.
    pub workspace: Option<String>,
    /// Collect changes in an overlay instead of the workspace.
    pub overlay: bool,
    /// Make nothing writable but what `write` names.
    pub read_only: bool,
    /// Paths to make readable.
    pub read: Vec<String>,
    /// Paths to make writable.
    pub write: Vec<String>,
    /// Paths to hide.
    pub deny: Vec<String>,
    /// Paths to make read-only.
    pub deny_write: Vec<String>,
    /// Hosts to allow, `HOST` or `HOST:PORT`; every other host is refused.
    pub allow: Vec<String>,
    /// Hosts to refuse that would be allowed otherwise.
    pub block: Vec<String>,
    /// Addresses of names, `NAME=ADDRESS`.
    pub resolve: Vec<String>,
    /// Unix sockets of the host to allow.
    pub sockets: Vec<String>,
    /// `off`, or `open` for the host's whole network; lists of hosts need no mode.
    pub network: Option<String>,
    /// Variables to set for every command.
    pub env: BTreeMap<String, String>,
    /// Variables of the server to hand on.
    pub keep_env: Vec<String>,
    /// Limits: `mem=512M`, `pids=64`, `cpu=60s`, `fsize=1G`, `tmp=64M`, `disk=1G`.
    pub limits: Vec<String>,
    /// Kill a command that takes longer, unless `exec` has a time of its own.
    pub timeout_ms: Option<u64>,
    /// A profile (TOML) or policy (JSON) to begin with.
    pub policy: Option<String>,
    /// Leave out the user's `config.toml` and the workspace's `stockade.toml`.
    pub no_user_files: bool,
    /// Accept a policy that can't be enforced in full; `report` names the gaps.
    pub best_effort: bool,
}

/// Result of `open`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Opened {
    /// The session, for later requests.
    pub session: String,
    /// The directory that commands start in.
    pub workspace: String,
    /// What builds the sandbox.
    pub backend: String,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Parameters of requests about a session as a whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct SessionId {
    /// The session.
    pub session: String,
}

/// Parameters of `exec`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Exec {
    /// The session.
    pub session: String,
    /// Program and arguments; a program without a slash is looked up inside.
    pub argv: Vec<String>,
    /// Where the command starts, relative to the session's workspace.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Variables to set.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Kill the command, and what it started, when it takes longer.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Give the command a terminal of this size; its output is the stream `terminal`.
    #[serde(default)]
    pub terminal: Option<Size>,
    /// Keep standard input open for `stdin`; otherwise it is empty.
    #[serde(default)]
    pub stdin: bool,
    /// Bytes of output that may be sent before `credit` allows more; without it the output is
    /// bounded only by how fast the client reads.
    #[serde(default)]
    pub credit: Option<u64>,
}

/// The size of a terminal.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Size {
    /// Rows.
    pub rows: u16,
    /// Columns.
    pub cols: u16,
}

/// Result of `exec`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Started {
    /// The command, for later requests.
    pub command: String,
}

/// Parameters of requests about a command.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct CommandId {
    /// The session.
    pub session: String,
    /// The command.
    pub command: String,
}

/// Parameters of `stdin`; the answer comes when the command's pipe has taken the bytes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Stdin {
    /// The session.
    pub session: String,
    /// The command.
    pub command: String,
    /// What the command reads.
    #[serde(default)]
    pub data: Option<Bytes>,
    /// Whether this is the end of the input.
    #[serde(default)]
    pub eof: bool,
}

/// Parameters of `credit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Credit {
    /// The session.
    pub session: String,
    /// The command.
    pub command: String,
    /// How many more bytes of output may be sent.
    pub bytes: u64,
}

/// Parameters of `resize`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Resize {
    /// The session.
    pub session: String,
    /// The command, which must have a terminal.
    pub command: String,
    /// The new size.
    pub size: Size,
}

/// Parameters of `signal`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Signal {
    /// The session.
    pub session: String,
    /// The command.
    pub command: String,
    /// The signal's number. 9 kills everything that the command started; any other goes to the
    /// command's process group.
    pub signal: i32,
}

/// Result of `wait`. All output was sent before it.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Waited {
    /// As a shell has it: the command's code, 128 + the signal, 124 if the time was over.
    pub exit_code: i32,
    /// How it ended.
    pub ending: Ending,
    /// The signal that killed the command, if one did.
    pub signal: Option<i32>,
    /// What the policy refused.
    pub denials: Vec<Denial>,
    /// Wall time in microseconds.
    pub wall_micros: u64,
    /// CPU time in microseconds.
    pub cpu_micros: u64,
    /// The largest resident size of any one process, in KiB.
    pub peak_memory_kib: u64,
    /// Whose CPU time it is.
    pub usage_scope: UsageScope,
}

/// The processes whose CPU time was counted.
#[derive(Clone, Copy, Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(
    clippy::exhaustive_enums,
    reason = "the kernel counts in these two ways"
)]
pub enum UsageScope {
    /// Everything that the command started: it had a control group.
    All,
    /// The command's first process and those descendants that were waited for.
    Waited,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// By itself, with a code.
    Exited,
    /// By a signal.
    Signalled,
    /// Its time was over.
    TimedOut,
    /// A limit of CPU time, memory, disk space or output was reached.
    Limit,
    /// It was killed by `signal` 9 or with its session.
    Killed,
    /// How it ended is not known.
    Lost,
}

/// Something that the policy refused.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Denial {
    /// What was tried: `open`, `create`, `reach` and so on.
    pub operation: String,
    /// The path, or `host:port`.
    pub subject: String,
    /// The host, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The rule that decided.
    pub rule: String,
    /// Who stated the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The smallest change that would allow it, as a flag of `stockade run`.
    pub grant: String,
    /// The error that the program got.
    pub errno: i32,
}

/// Parameters of `files.read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct ReadFile {
    /// The session.
    pub session: String,
    /// The path as the sandbox sees it, relative to the workspace.
    pub path: String,
    /// Where to begin.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes to read at most; the server's `file_bytes` by default.
    #[serde(default)]
    pub length: Option<u64>,
}

/// Result of `files.read`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct FileContent {
    /// What was read.
    pub data: Bytes,
    /// Whether the file ends here.
    pub eof: bool,
}

/// Parameters of `files.write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct WriteFile {
    /// The session.
    pub session: String,
    /// The path as the sandbox sees it, relative to the workspace.
    pub path: String,
    /// The content.
    pub data: Bytes,
    /// Whether to add to the end instead of replacing the content.
    #[serde(default)]
    pub append: bool,
    /// Whether to make the directories above the file.
    #[serde(default)]
    pub parents: bool,
    /// The permission bits of a new file.
    #[serde(default)]
    pub mode: Option<u32>,
}

/// Parameters of `files.list` and `files.stat`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct FilePath {
    /// The session.
    pub session: String,
    /// The path as the sandbox sees it, relative to the workspace.
    pub path: String,
}

/// Result of `files.list`, sorted by name.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct FileList {
    /// What is in the directory.
    pub entries: Vec<FileEntry>,
    /// Whether there are more entries than the server lists.
    pub truncated: bool,
}

/// A name in a directory.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct FileEntry {
    /// The name; bytes that are not UTF-8 are replaced.
    pub name: String,
    /// `file`, `directory`, `symlink` or `other`.
    pub kind: FileKind,
}

/// What a file is.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version has these kinds")]
pub enum FileKind {
    /// An ordinary file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device.
    Other,
}

/// Result of `files.stat`; a symbolic link is not followed.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct FileStat {
    /// What it is.
    pub kind: FileKind,
    /// Bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// When the content changed, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Where a symbolic link leads.
    pub target: Option<String>,
}

/// Result of `diff`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Changes {
    /// Each file that differs, by path.
    pub changes: Vec<Change>,
}

/// A file that differs from the workspace.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Change {
    /// Which file, relative to the workspace.
    pub path: String,
    /// Its old name, if it was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `added`, `modified`, `removed`, `renamed`, `retyped` or `attributes`.
    pub kind: String,
    /// The change in lines, where the file is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Parameters of `diff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Diff {
    /// The session.
    pub session: String,
    /// Whether to send the changes in lines too.
    #[serde(default)]
    pub text: bool,
}

/// Parameters of `commit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Commit {
    /// The session.
    pub session: String,
    /// What to commit, with everything below; all changes if there are no paths.
    #[serde(default)]
    pub paths: Vec<String>,
    /// What becomes of files that the host changed meanwhile.
    #[serde(default)]
    pub conflicts: Conflicts,
}

/// What becomes of files that the host changed meanwhile.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there are three ways")]
pub enum Conflicts {
    /// Nothing is committed; the error lists them.
    #[default]
    Refuse,
    /// They become what the overlay has.
    Ours,
    /// They stay, and the overlay's changes are dropped.
    Theirs,
}

/// Result of `commit`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Committed {
    /// Files and directories that were written.
    pub written: u64,
    /// Files and directories that were removed.
    pub removed: u64,
    /// Those of which only attributes changed.
    pub adjusted: u64,
    /// Files that stayed as the host had them.
    pub kept: Vec<String>,
    /// Protected names that were not committed, and why.
    pub kept_back: Vec<KeptBack>,
}

/// A change that was not committed.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct KeptBack {
    /// Where.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Parameters of requests about a snapshot of a session's overlay.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct SnapshotId {
    /// The session.
    pub session: String,
    /// The snapshot: at most 64 letters, digits, `.`, `_` and `-`, with a letter or digit in front.
    pub name: String,
}

/// Result of `snapshots.list`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct SnapshotList {
    /// The names, in order.
    pub snapshots: Vec<String>,
}

/// Result of `fork`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Forked {
    /// The new session, for later requests.
    pub session: String,
    /// The name under which `stockade ws` knows the new overlay.
    pub overlay: String,
}

/// Parameters of `allow`: more grants.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Allow {
    /// The session.
    pub session: String,
    /// Hosts, `HOST` or `HOST:PORT`.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Unix sockets of the host.
    #[serde(default)]
    pub sockets: Vec<String>,
    /// Paths to make readable.
    #[serde(default)]
    pub read: Vec<String>,
    /// Paths to make writable.
    #[serde(default)]
    pub write: Vec<String>,
}

/// Result of `allow`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Allowed {
    /// Whether the sandbox was built again: then `/tmp` is empty and processes in the background
    /// are gone. Otherwise the grants hold at once, for commands that run too.
    pub rebuilt: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Result of `report`: what the session enforces.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Report {
    /// What builds the sandbox.
    pub backend: String,
    /// Landlock's ABI; 0 where it is not used.
    pub landlock_abi: u32,
    /// Each clause of the policy.
    pub enforcement: Vec<Clause>,
    /// Names of variables that were not handed on.
    pub env_removed: Vec<String>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// One clause of the policy.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Clause {
    /// Which one.
    pub clause: String,
    /// How far it holds.
    pub enforcement: Enforcement,
    /// By what.
    pub mechanism: String,
    /// What is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// How far a clause holds.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a version has these values")]
pub enum Enforcement {
    /// In full.
    Full,
    /// With a gap that is named.
    Partial,
    /// Not at all.
    None,
}

/// Result of `close`: what belongs to no single command.
#[derive(Debug, Default, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Closed {
    /// What the policy refused to processes that outlived their command.
    pub denials: Vec<Denial>,
    /// Hosts that were asked for, and what was decided; without what `wait` told as a denial.
    pub network: Vec<Value>,
}

/// An empty result.
#[derive(Debug, Default, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Done {}

/// Parameters of the notification `output`.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct Output {
    /// The session.
    pub session: String,
    /// The command.
    pub command: String,
    /// Where it was written to.
    pub stream: Stream,
    /// What was written.
    pub data: Bytes,
}

/// One of the command's outputs.
#[derive(Clone, Copy, Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "there are three")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// The terminal, which has both.
    Terminal,
}

/// The `error` of an answer.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct ErrorObject {
    /// The number of the kind.
    pub code: i32,
    /// What went wrong, for people.
    pub message: String,
    /// The same for programs.
    pub data: ErrorData,
}

/// What a program needs to act on an error.
#[derive(Debug, JsonSchema, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "a version has these fields")]
pub struct ErrorData {
    /// What went wrong.
    pub kind: Kind,
    /// What the user could do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The error number inside, for file operations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errno: Option<i32>,
    /// What the policy refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denials: Vec<Denial>,
    /// Files that are in conflict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
}
