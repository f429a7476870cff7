//! Commands about the system: privileges, accounts, services, processes, traces, protections.

use stockade_shell::{Command, CommandId, Stdin};

use super::{Judge, has, operands, value_of};
use crate::paths::{Kind, Place};
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn system_command(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let span = command.span;
        let first = args
            .iter()
            .find(|word| !word.text.starts_with('-'))
            .map_or("", |word| word.text.as_str())
            .to_owned();
        let any = |texts: &[&str]| args.iter().any(|word| texts.contains(&word.text.as_str()));
        match name {
            "sudo" | "doas" => self.sudo(id, name, command),
            "pkexec" | "run0" => self.warn(
                Rule::PrivilegeChange,
                span,
                format!("`{name}` runs a command as another user"),
            ),
            "su" => self.warn(Rule::PrivilegeChange, span, "`su` becomes another user"),
            "visudo" if !has(args, "c", &["check"]) => {
                self.add(Rule::PrivilegeChange, span, "edits who may use sudo")
            }
            "setcap" if !has(args, "r", &[]) => {
                self.add(Rule::PrivilegeChange, span, "gives a program capabilities")
            }
            "capsh" | "setpriv" | "newuidmap" => self.warn(
                Rule::PrivilegeChange,
                span,
                format!("`{name}` changes credentials"),
            ),
            "useradd" | "adduser" | "usermod" | "userdel" | "deluser" | "groupadd" | "gpasswd"
            | "chpasswd" | "chage" | "vipw" | "newusers" => {
                let system = has(args, "r", &["system"]) || any(&["--system", "--quiet"]);
                let reason = format!("`{name}` changes accounts");
                if system || name == "groupadd" {
                    self.warn(Rule::AccountChange, span, reason);
                } else {
                    self.add(Rule::AccountChange, span, reason);
                }
            }
            "passwd" if !has(args, "S", &["status"]) => {
                self.add(Rule::AccountChange, span, "changes a password")
            }
            "pw" if any(&["useradd", "usermod", "userdel"]) => {
                self.add(Rule::AccountChange, span, "changes accounts")
            }
            "dscl" if any(&["-create", "-passwd"]) => {
                self.add(Rule::AccountChange, span, "changes accounts")
            }
            "crontab" => {
                if has(args, "r", &[]) {
                    self.add(Rule::PersistenceCron, span, "deletes a job table");
                } else if !has(args, "l", &[])
                    && (!args.is_empty() || !matches!(command.stdin, Stdin::Inherited))
                {
                    self.add(Rule::PersistenceCron, span, "installs a job table");
                }
            }
            "at" | "batch" if !has(args, "lrd", &[]) && (!args.is_empty() || name == "batch") => {
                self.add(Rule::PersistenceCron, span, "schedules a command for later");
            }
            "systemctl" | "service" | "launchctl" | "rc-service" | "initctl" | "sc" | "sysrc" => {
                self.service(name, command, &first)
            }
            "update-rc.d" | "chkconfig" | "rc-update" => self.warn(
                Rule::PersistenceStartup,
                span,
                "changes what starts with the system",
            ),
            "systemd-run"
                if has(
                    args,
                    "",
                    &["on-calendar", "on-boot", "on-active", "timer-property"],
                ) =>
            {
                self.add(Rule::PersistenceCron, span, "schedules a command for later");
            }
            "shutdown" | "reboot" | "halt" | "poweroff" | "init" | "telinit" => {
                let stops =
                    !matches!(name, "init" | "telinit") || matches!(first.as_str(), "0" | "6");
                if stops && !has(args, "c", &["wtmp-only", "help"]) {
                    self.add(Rule::SystemStop, span, "stops the machine");
                }
            }
            "kill" | "killall" | "killall5" | "pkill" | "skill" => self.kill(name, command),
            "history" if has(args, "cdw", &[]) => {
                if has(args, "cd", &[]) {
                    self.add(Rule::TraceRemoval, span, "clears the shell's history");
                }
            }
            "set" if any(&["+o"]) && any(&["history"]) => {
                self.add(Rule::TraceRemoval, span, "stops recording history")
            }
            "unset" if any(&["HISTFILE", "HISTSIZE", "HISTFILESIZE", "PROMPT_COMMAND"]) => {
                self.add(Rule::TraceRemoval, span, "stops recording history");
            }
            "journalctl"
                if has(
                    args,
                    "",
                    &["vacuum-time", "vacuum-size", "vacuum-files", "rotate"],
                ) =>
            {
                self.warn(Rule::TraceRemoval, span, "deletes old log entries");
            }
            "dmesg" if has(args, "cC", &["clear", "read-clear"]) => {
                self.add(Rule::TraceRemoval, span, "clears the kernel's log")
            }
            "logrotate" => {}
            "touch" => self.touch(command),
            "date"
                if operands(args).any(|word| {
                    !word.text.starts_with('+')
                        && word.text.len() >= 8
                        && word.text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
                }) || name == "date" && has(args, "s", &["set"]) =>
            {
                self.add(Rule::TraceRemoval, span, "changes the machine's clock");
            }
            "chattr"
                if args.iter().any(|word| {
                    word.text.starts_with('+') && word.text.contains('i')
                        || word.text.starts_with('-')
                            && word.text.contains('i')
                            && !word.text.starts_with("--")
                }) =>
            {
                self.warn(
                    Rule::ProtectionOff,
                    span,
                    "changes whether files can be changed",
                );
            }
            "setenforce" if matches!(first.as_str(), "0" | "Permissive" | "permissive") => {
                self.add(Rule::ProtectionOff, span, "switches SELinux off")
            }
            "aa-disable" | "aa-complain" | "aa-teardown" | "apparmor_parser"
                if name != "apparmor_parser" || has(args, "R", &["remove"]) =>
            {
                self.add(Rule::ProtectionOff, span, "switches AppArmor off");
            }
            "iptables" | "ip6tables" | "nft" | "ufw" | "firewall-cmd" | "pfctl" | "ipfw" => {
                self.firewall(name, command)
            }
            "auditctl" if any(&["-e", "-D"]) => {
                self.add(Rule::ProtectionOff, span, "switches auditing off")
            }
            "spctl" if any(&["--master-disable", "--global-disable"]) => {
                self.add(Rule::ProtectionOff, span, "switches Gatekeeper off")
            }
            "csrutil" if first == "disable" => self.add(
                Rule::ProtectionOff,
                span,
                "switches system integrity protection off",
            ),
            "mokutil" if any(&["--disable-validation"]) => {
                self.add(Rule::ProtectionOff, span, "switches boot validation off")
            }
            "sysctl"
                if has(args, "w", &["write"])
                    || args
                        .iter()
                        .any(|word| word.text.contains('=') && word.text.contains('.')) =>
            {
                let kernel = args.iter().any(|word| {
                    [
                        "kernel.randomize_va_space=0",
                        "kernel.yama",
                        "kernel.core_pattern",
                        "kernel.kptr",
                        "kernel.unprivileged",
                        "kernel.dmesg_restrict=0",
                        "kernel.modprobe",
                        "fs.protected",
                        "fs.suid_dumpable",
                        "kernel.perf_event_paranoid=-1",
                    ]
                    .iter()
                    .any(|key| word.text.starts_with(key))
                });
                if kernel {
                    self.add(Rule::KernelChange, span, "weakens the kernel's protections");
                } else {
                    self.warn(Rule::KernelChange, span, "changes the kernel's settings");
                }
            }
            "insmod" | "kexec" | "bpftool" => self.add(
                Rule::KernelChange,
                span,
                format!("`{name}` changes the running kernel"),
            ),
            "modprobe" | "rmmod"
                if !has(args, "nDc", &["show-depends", "showconfig", "dry-run"]) =>
            {
                self.warn(
                    Rule::KernelChange,
                    span,
                    format!("`{name}` changes the running kernel"),
                );
            }
            "docker" | "podman" | "nerdctl" => self.container(name, command),
            "nsenter"
                if value_of(args, 't', &["target"]) == Some("1") || has(args, "a", &["all"]) =>
            {
                self.add(
                    Rule::ContainerEscape,
                    span,
                    "enters the namespaces of the machine's first process",
                );
            }
            "mount"
                if args
                    .iter()
                    .any(|word| Place::new(&word.text).is(Kind::Disk)) =>
            {
                self.warn(Rule::ContainerEscape, span, "mounts a disk");
            }
            "chroot"
                if operands(args).next().is_some_and(|word| {
                    matches!(word.text.as_str(), "/host" | "/hostfs" | "/rootfs")
                }) =>
            {
                self.add(Rule::ContainerEscape, span, "enters the host's file system");
            }
            "gdb" | "strace" | "ltrace" | "gcore" | "reptyr"
                if has(args, "p", &["pid"]) || name == "gcore" =>
            {
                self.add(
                    Rule::ProcessTamper,
                    span,
                    format!("`{name}` attaches to another process"),
                );
            }
            "mimipenguin"
            | "linpeas"
            | "linpeas.sh"
            | "linenum"
            | "linenum.sh"
            | "lse.sh"
            | "pspy"
            | "pspy64"
            | "lazagne"
            | "mimikatz"
            | "les.sh"
            | "linux-exploit-suggester.sh"
            | "unix-privesc-check" => {
                self.add(
                    Rule::SystemSurvey,
                    span,
                    format!("`{name}` looks for ways to more rights"),
                );
            }
            "xmrig" | "minerd" | "cgminer" | "cpuminer" | "ethminer" | "t-rex" | "nbminer"
            | "xmr-stak" => {
                self.add(
                    Rule::NetworkHost,
                    span,
                    format!("`{name}` mines for someone"),
                );
            }
            "hydra" | "medusa" | "john" | "hashcat" | "msfconsole" | "msfvenom" | "responder"
            | "crackmapexec" | "netexec" | "sqlmap" | "aircrack-ng" | "evil-winrm" => {
                self.add(
                    Rule::SystemSurvey,
                    span,
                    format!("`{name}` attacks passwords or services"),
                );
            }
            "import" if has(args, "", &["window"]) => {
                self.add(Rule::Surveillance, span, "takes a picture of the screen")
            }
            "screencapture" | "xwd" | "scrot" | "grim" | "xwdtopnm" | "fswebcam" | "arecord"
            | "logkeys" => {
                self.warn(
                    Rule::Surveillance,
                    span,
                    format!("`{name}` records screen, camera, sound or keys"),
                );
            }
            "xinput" if first == "test" || any(&["--test-xi2", "test-xi2"]) => {
                self.add(Rule::Surveillance, span, "records keys")
            }
            "ld.so" => {}
            "pip" | "pip3" | "npm" | "yarn" | "pnpm" | "gem" | "go" | "cargo" | "uv" => {
                self.install(name, command)
            }
            "snap" if any(&["--dangerous", "--devmode"]) => {
                self.add(Rule::ProtectionOff, span, "installs an unchecked snap")
            }
            "openssl"
                if any(&["enc", "smime", "rsautl", "pkeyutl"])
                    && any(&["-encrypt", "-e"])
                    && self
                        .script
                        .commands
                        .iter()
                        .any(|other| matches!(other.name(), Some("rm" | "shred" | "find"))) =>
            {
                self.warn(Rule::DestroyData, span, "encrypts files and removes others");
            }
            _ => {}
        }
    }

    fn sudo(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let shell = has(args, "is", &["login", "shell"])
            && !self
                .script
                .commands
                .iter()
                .skip(id + 1)
                .take(2)
                .any(|inner| inner.parent == Some(id));
        if shell {
            self.add(
                Rule::PrivilegeChange,
                command.span,
                format!("`{name}` opens a shell with all rights"),
            );
        } else if has(args, "l", &["list"]) && args.len() == 1 {
            self.add(
                Rule::SystemSurvey,
                command.span,
                "asks what sudo would allow",
            );
        } else {
            self.warn(
                Rule::PrivilegeChange,
                command.span,
                format!("`{name}` runs a command with other rights"),
            );
        }
    }

    fn service(&mut self, name: &str, command: &Command, first: &str) {
        const GUARDS: &[&str] = &[
            "auditd",
            "firewalld",
            "ufw",
            "apparmor",
            "fail2ban",
            "rsyslog",
            "syslog",
            "clamav-daemon",
            "falcon-sensor",
            "osqueryd",
            "wazuh-agent",
            "crowdstrike",
            "selinux",
            "cron",
            "crond",
            "sshd",
            "ssh",
        ];
        let span = command.span;
        let verb = command
            .args()
            .iter()
            .map(|word| word.text.as_str())
            .find(|text| {
                matches!(
                    *text,
                    "stop"
                        | "disable"
                        | "mask"
                        | "kill"
                        | "enable"
                        | "load"
                        | "poweroff"
                        | "reboot"
                        | "halt"
                        | "rescue"
                        | "emergency"
                        | "bootstrap"
                        | "start"
                        | "restart"
                        | "submit"
                )
            });
        let guard = command
            .args()
            .iter()
            .any(|word| GUARDS.contains(&word.text.trim_end_matches(".service")));
        match verb {
            Some("stop" | "disable" | "mask" | "kill") if guard => {
                self.add(
                    Rule::ProtectionOff,
                    span,
                    format!("`{name}` stops a service that guards or records"),
                );
            }
            Some("poweroff" | "reboot" | "halt" | "rescue" | "emergency")
                if name == "systemctl" =>
            {
                self.add(Rule::SystemStop, span, "stops the machine");
            }
            Some("enable" | "load" | "bootstrap" | "submit") => {
                self.warn(
                    Rule::PersistenceStartup,
                    span,
                    format!("`{name}` makes something start with the system"),
                );
            }
            Some("start")
                if command
                    .args()
                    .iter()
                    .any(|word| word.text.contains("tor") && word.text.len() <= 11) =>
            {
                self.add(Rule::NetworkHost, span, "starts an anonymising network");
            }
            _ => {
                let _ = first;
            }
        }
    }

    fn kill(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let everything = name == "kill" && args.iter().skip(1).any(|word| word.text == "-1")
            || args.iter().skip(1).any(|word| word.text == "1") && name == "kill";
        let broad = name == "killall5"
            || name == "pkill" && has(args, "u", &["euid", "uid"]) && operands(args).count() <= 1
            || matches!(name, "pkill" | "killall")
                && operands(args)
                    .any(|word| matches!(word.text.as_str(), "." | "-u" | "init" | "systemd"));
        if everything || broad {
            return self.add(Rule::SystemStop, command.span, "stops every process it may");
        }
        let guards = ["cron", "crond", "sshd", "auditd", "rsyslogd", "syslogd"];
        let names = operands(args).map(|word| word.text.trim_matches(['^', '$']).to_owned());
        let inner = args
            .iter()
            .flat_map(stockade_shell::Word::substitutions)
            .flatten();
        let inner = inner
            .flat_map(|other| self.script.commands[other].args())
            .map(|word| word.text.clone());
        if names
            .chain(inner)
            .any(|target| guards.contains(&target.as_str()))
        {
            self.add(
                Rule::ProtectionOff,
                command.span,
                "stops a service that guards or records",
            );
        }
    }

    fn touch(&mut self, command: &Command) {
        let args = command.args();
        if has(args, "t", &[]) || has(args, "r", &["reference"]) || has(args, "d", &["date"]) {
            let old = value_of(args, 't', &[]).is_some_and(|time| !time.starts_with("202"));
            let system = value_of(args, 'r', &["reference"])
                .is_some_and(|path| Place::new(path).kinds().contains(&Kind::Base));
            if old || system {
                self.add(Rule::TraceRemoval, command.span, "forges a file's times");
            }
        }
    }

    fn firewall(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let any = |texts: &[&str]| args.iter().any(|word| texts.contains(&word.text.as_str()));
        let off = match name {
            "iptables" | "ip6tables" => {
                any(&["-F", "--flush", "-X"]) || any(&["-P"]) && any(&["ACCEPT"])
            }
            "nft" => any(&["flush"]) && any(&["ruleset"]),
            "ufw" => any(&["disable", "reset"]),
            "firewall-cmd" => args.iter().any(|word| {
                word.text.starts_with("--panic-off")
                    || word.text.contains("set-default-zone=trusted")
            }),
            "pfctl" => any(&["-d", "-F"]),
            _ => any(&["flush"]),
        };
        if off {
            self.add(
                Rule::ProtectionOff,
                command.span,
                format!("`{name}` drops the firewall's rules"),
            );
        } else if any(&["-A", "-I", "allow", "add"]) {
            self.warn(
                Rule::ProtectionOff,
                command.span,
                format!("`{name}` changes the firewall"),
            );
        }
    }

    fn container(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let span = command.span;
        for (at, word) in args.iter().enumerate() {
            let text = word.text.as_str();
            let next = args.get(at + 1).map_or("", |word| word.text.as_str());
            let value = text.split_once('=').map_or(next, |(_, value)| value);
            let flag = text.split('=').next().unwrap_or(text);
            match flag {
                "--privileged" if !text.ends_with("=false") => self.add(
                    Rule::ContainerEscape,
                    span,
                    format!("`{name}` gives a container all rights"),
                ),
                "-v" | "--volume" | "--mount" => {
                    let source = value
                        .split(',')
                        .find_map(|part| {
                            part.strip_prefix("source=")
                                .or_else(|| part.strip_prefix("src="))
                        })
                        .unwrap_or_else(|| value.split(':').next().unwrap_or(value));
                    let place = Place::new(source);
                    if place.path == "/"
                        || place.is(Kind::Socket)
                        || matches!(
                            place.path.as_str(),
                            "/etc" | "/proc" | "/sys" | "/boot" | "/var/run" | "/var/lib/docker"
                        )
                    {
                        self.add(
                            Rule::ContainerEscape,
                            span,
                            format!("`{name}` gives a container the host's {source}"),
                        );
                    } else if place.is(Kind::Credential) {
                        self.add(
                            Rule::CredentialRead,
                            span,
                            format!("`{name}` gives a container {source}"),
                        );
                    }
                }
                "--pid" | "--ipc" | "--userns" | "--uts" | "--cgroupns" if value == "host" => self
                    .add(
                        Rule::ContainerEscape,
                        span,
                        format!("`{name}` shares the host's {flag}"),
                    ),
                "--cap-add"
                    if matches!(
                        value.to_ascii_uppercase().trim_start_matches("CAP_"),
                        "ALL" | "SYS_ADMIN" | "SYS_PTRACE" | "SYS_MODULE" | "DAC_READ_SEARCH"
                    ) =>
                {
                    self.add(
                        Rule::ContainerEscape,
                        span,
                        format!("`{name}` gives a container {value}"),
                    );
                }
                "--security-opt" if value.contains("unconfined") => self.add(
                    Rule::ContainerEscape,
                    span,
                    format!("`{name}` runs a container unconfined"),
                ),
                "--device" if Place::new(value).is(Kind::Disk) => self.add(
                    Rule::ContainerEscape,
                    span,
                    format!("`{name}` gives a container a disk"),
                ),
                _ => {}
            }
        }
    }

    fn install(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let installs = args
            .iter()
            .any(|word| matches!(word.text.as_str(), "install" | "i" | "add" | "get"));
        if !installs {
            return;
        }
        let odd = args.iter().find(|word| {
            let text = word.text.as_str();
            let plain = text.starts_with("http://") || text.starts_with("git+http://");
            plain && !crate::hosts::host_of(text).is_some_and(crate::hosts::is_local)
                || crate::hosts::is_url(text) && crate::hosts::suspicion(text).is_some()
        });
        if let Some(word) = odd {
            self.add(
                Rule::DownloadRun,
                command.span,
                format!("`{name}` installs from {}", word.text),
            );
        }
    }

    /// Variables that change what other programs load or run.
    pub(super) fn assignments(&mut self, command: &Command) {
        for assignment in &command.assignments {
            let value = assignment.value.text.as_str();
            match assignment.name.as_str() {
                "LD_PRELOAD" | "LD_AUDIT" | "DYLD_INSERT_LIBRARIES" if !value.is_empty() => {
                    let known = [
                        "libfaketime",
                        "libjemalloc",
                        "libtcmalloc",
                        "libasan",
                        "libmimalloc",
                        "libfakeroot",
                        "libeatmydata",
                        "libgtk3-nocsd",
                        "libstdc++",
                        "libSegFault",
                        "libtsan",
                        "libubsan",
                        "libsandbox",
                    ];
                    let reason = format!("loads {value} into other programs");
                    if known.iter().any(|name| value.contains(name))
                        || assignment.value.literal().is_none()
                    {
                        self.warn(Rule::ProcessTamper, assignment.span, reason);
                    } else {
                        self.add(Rule::ProcessTamper, assignment.span, reason);
                    }
                }
                "HISTFILE" | "HISTSIZE" | "HISTFILESIZE"
                    if matches!(value, "" | "0" | "/dev/null") =>
                {
                    self.add(
                        Rule::TraceRemoval,
                        assignment.span,
                        "stops recording history",
                    );
                }
                "BASH_ENV" | "PROMPT_COMMAND" | "PYTHONSTARTUP" | "PERL5OPT" | "NODE_OPTIONS"
                    if value.contains("/tmp/") || value.contains("curl ") =>
                {
                    self.add(
                        Rule::PersistencePreload,
                        assignment.span,
                        format!("makes other programs run {value}"),
                    );
                }
                "GIT_SSH_COMMAND" | "GIT_EXTERNAL_DIFF" | "PAGER" | "EDITOR" | "VISUAL"
                    if value.contains("/bin/sh") || value.contains("sh -c") =>
                {
                    self.add(
                        Rule::ShellEscape,
                        assignment.span,
                        format!("makes another program run {value}"),
                    );
                }
                _ => {}
            }
        }
    }
}
