//! The choices that are made once for a sandbox: base policy, base, level, backend, filter.

use super::words::words;

words! {
    /// What the sandbox is for, before anything else is granted or denied.
    pub enum BasePolicy("base policy") {
        /// Nothing is writable but what is granted.
        ReadOnly = "read-only",
        /// The workspace is writable.
        WorkspaceWrite = "workspace-write",
        /// No sandbox at all.
        DangerFullAccess = "danger-full-access",
        /// The caller is inside a sandbox already and vouches for it.
        External = "external",
    }
}

words! {
    /// What is readable to begin with.
    pub enum Base("base") {
        /// Everything but the sensitive paths.
        Host = "host",
        /// The system's directories only.
        Minimal = "minimal",
    }
}

words! {
    /// What becomes of what is written to the home directory; later is wider.
    pub enum HomeMode("home mode") {
        /// Nothing can be written there but what is granted.
        ReadOnly = "read-only",
        /// A private layer takes every write and is dropped when the sandbox ends.
        Copy = "copy",
        /// A private layer takes every write and is there again in the next run in this workspace.
        Keep = "keep",
    }
}

words! {
    /// How strong the isolation must be; later is stronger.
    pub enum Level("level") {
        /// None.
        Off = "off",
        /// The strongest of native, Landlock, bwrap and nsjail that works here.
        Default = "default",
        /// Native only, the stricter filter; from here on the base is minimal.
        Enhanced = "enhanced",
        /// A container.
        Container = "container",
        /// A kernel of its own: gVisor, or refuse.
        Maximum = "maximum",
    }
}

words! {
    /// What enforces the policy.
    pub enum Backend("backend") {
        /// Namespaces, mounts, Landlock and seccomp, by Stockade itself.
        Native = "native",
        /// Landlock and seccomp, where user namespaces are refused.
        Landlock = "landlock",
        /// The `bwrap` program.
        Bwrap = "bwrap",
        /// The `nsjail` program.
        Nsjail = "nsjail",
        /// The sandbox of macOS.
        Seatbelt = "seatbelt",
        /// A Docker container.
        Docker = "docker",
        /// A Docker container over gVisor.
        Gvisor = "gvisor",
        /// The caller's own sandbox.
        External = "external",
        /// Nothing.
        None = "none",
    }
}

words! {
    /// Which filter of system calls; later is weaker.
    pub enum SeccompMode("seccomp profile") {
        /// All that ordinary work does not need is refused.
        Strict = "strict",
        /// Only what reaches the kernel or other processes is refused.
        Permissive = "permissive",
        /// Nothing is refused; what strict would refuse is logged. Counts as not enforced.
        Logging = "logging",
    }
}

words! {
    /// How much of the network is there; later is wider.
    pub enum NetworkMode("network mode") {
        /// A private loopback and nothing else.
        Off = "off",
        /// The listed names, through the proxy.
        Allowlist = "allowlist",
        /// The host's network.
        Open = "open",
    }
}
