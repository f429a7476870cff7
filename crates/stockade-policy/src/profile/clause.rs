//! The clauses of a policy: what can be required, and what the enforcement report speaks about.

use super::words::words;

words! {
    /// One promise that a sandbox makes.
    ///
    /// `--require` names clauses that must hold fully or the command is not started; the
    /// enforcement report says of each whether it holds fully, partly or not, and by what.
    pub enum Clause("clause") {
        /// What may not be read can't be read, by any name.
        FsRead = "fs-read",
        /// What may not be written can't be written, created, renamed or removed.
        FsWrite = "fs-write",
        /// Protected names hold where nothing exists yet, and patterns hold for files made later.
        Names = "names",
        /// Only the granted part of the network is reachable.
        Network = "network",
        /// Host sockets, shared memory, message queues and the session bus are out of reach.
        Ipc = "ipc",
        /// Host processes are invisible and can't be signalled or traced; no process outlives
        /// the run.
        Processes = "processes",
        /// No capability, no set-id program, no new namespace gives the command more rights.
        Privileges = "privileges",
        /// System calls outside the filter are refused.
        Seccomp = "seccomp",
        /// Only the granted device nodes exist.
        Devices = "devices",
        /// Memory, processes, time and sizes are bounded.
        Limits = "limits",
        /// Only the listed environment variables are handed on.
        Environment = "environment",
    }
}
