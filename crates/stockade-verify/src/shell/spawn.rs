//! Shells started through programs that are not shells.

use stockade_shell::{Command, CommandId, is_shell};

use super::{Judge, has};
use crate::rule::Rule;

/// Programs for which a shell's path is an ordinary argument.
const NAMES_A_SHELL: &[&str] = &[
    "chsh",
    "useradd",
    "usermod",
    "adduser",
    "ls",
    "ll",
    "cat",
    "file",
    "which",
    "type",
    "command",
    "stat",
    "echo",
    "printf",
    "test",
    "[",
    "grep",
    "sed",
    "ldd",
    "readlink",
    "realpath",
    "update-alternatives",
    "dpkg-divert",
    "ln",
    "cp",
    "install",
    "apk",
    "apt-get",
    "apt",
    "docker",
    "podman",
    "kubectl",
    "oc",
    "export",
    "git",
    "shellcheck",
    "shfmt",
    "nix-shell",
    "make",
    "cmake",
    "declare",
    "local",
    "head",
    "tail",
    "less",
    "dirname",
    "basename",
    "add-shell",
    "remove-shell",
    "dpkg-reconfigure",
    "vagrant",
    "buildah",
    "nerdctl",
    "docker-compose",
    "exit",
    "ssh",
    "read",
    "set",
    "trap",
    "touch",
    "rm",
    "mv",
    "chmod",
    "chown",
    "passwd",
    "getent",
    "id",
    "diff",
    "cmp",
    "md5sum",
    "sha256sum",
    "find",
    "whereis",
    "man",
    "locate",
    "dpkg",
    "rpm",
    "pacman",
    "strings",
    "objdump",
    "readelf",
    "nm",
    "gdb",
    "systemd-nspawn",
    "minikube",
    "lxc",
    "lxc-attach",
    "distrobox",
    "toolbox",
    "tmux",
    "screen",
    "crontab",
    "su",
    "runuser",
    "pw",
    "sysadminctl",
    "dscl",
    "case",
    "alias",
    "eval",
    "time",
    "builtin",
    "sudo",
    "tee",
    "env",
    "start-stop-daemon",
    "daemonize",
    "nohup",
    "setsid",
    "exec",
    "timeout",
    "xargs",
    "parallel",
    "awk",
    "perl",
    "python",
    "python3",
    "ruby",
    "lua",
    "php",
    "node",
    "configure",
    "./configure",
    "schroot",
    "proot",
    "unshare",
    "nsenter",
    "bwrap",
    "firejail",
    "chroot",
    "gosu",
    "script",
    "nice",
    "strace",
    "curl",
    "wget",
    "heroku",
    "fly",
    "ansible",
    "winpty",
    "watch",
    "mosh",
    "asdf",
    "rsync",
];

impl Judge<'_> {
    pub(super) fn spawned_shell(&mut self, id: CommandId, name: &str, command: &Command) {
        let span = command.span;
        let first = command.words[0].text.as_str();
        if let Some(escaped) = first.strip_prefix(":!").or_else(|| first.strip_prefix('!')) {
            if names_shell(escaped) {
                return self.add(Rule::ShellEscape, span, "escapes to a shell");
            }
        }
        if is_shell(name) {
            return self.bare_shell(id, name, command);
        }
        match name {
            "vi" | "vim" | "nvim" | "view" | "ex" | "rvim" | "vimdiff" | "ed" | "nano" | "pico"
            | "emacs" => {
                let escapes = command.args().iter().any(|word| {
                    let text = word.text.trim_start_matches(['+', ':', '-', 'c']);
                    text.starts_with('!')
                        || text.starts_with("shell")
                        || text.starts_with("terminal")
                        || text.starts_with("py") && text.contains("import")
                        || text.contains("(term ")
                        || text.contains("system(")
                });
                if escapes {
                    self.add(Rule::ShellEscape, span, format!("`{name}` starts a shell"));
                }
            }
            "tar" | "zip" | "rsync" | "man" | "less" | "more" | "tcpdump" | "apt-get" | "apt"
            | "rpm" | "rpmquery" | "pip" | "pip3" | "restic" | "hg" | "latex" | "pdflatex"
            | "tex" | "xelatex" | "lualatex" | "certbot" | "docker" | "npm" | "yarn"
            | "sqlite3" | "ssh" | "scp" | "sftp" | "xdotool" | "enscript" | "msgfilter"
            | "make" | "dmsetup" | "mysql" | "psql" | "gdb" | "ftp" | "lftp" | "borg" | "cpan"
            | "gem" | "expect" | "dc" | "busctl" | "pkg" | "socat" | "guile" | "jrunscript"
            | "octave" | "octave-cli" | "julia" | "R" | "Rscript" | "tclsh" | "wish" | "gimp"
            | "nmap" | "openvpn" | "tshark" | "sort" | "split" => {
                self.option_shell(name, command);
            }
            _ => {}
        }
        let mentions = command.args().iter().any(|word| names_shell(&word.text));
        if mentions && !NAMES_A_SHELL.contains(&name) {
            return self.add(
                Rule::ShellEscape,
                span,
                format!("`{name}` is given a shell to run"),
            );
        }
    }

    /// A shell with nothing to run but what someone types or sends.
    fn bare_shell(&mut self, id: CommandId, name: &str, command: &Command) {
        let args = command.args();
        let options = args.iter().all(|word| word.text.starts_with(['-', '+']));
        if !options || has(args, "c", &["version", "help"]) {
            return;
        }
        let wrapped = self.script.ancestors(id).any(|parent| {
            parent.name().is_some_and(|wrapper| {
                !is_shell(wrapper)
                    && !matches!(
                        wrapper,
                        "exec"
                            | "command"
                            | "env"
                            | "ssh"
                            | "time"
                            | "tmux"
                            | "screen"
                            | "eval"
                            | "xargs"
                            | "cat"
                            | "echo"
                    )
            }) || parent.name() == Some("env") && command.words[0].text.contains('/')
                || parent.name() == Some("xargs") && command.words[0].text.contains('/')
                || parent.name() == Some("ssh")
                    && parent.args().iter().any(|word| word.text == "localhost")
        });
        let upstream_free =
            command.stage == 0 && self.script.pipelines[command.pipeline].stages == 1;
        if wrapped
            && upstream_free
            && command
                .redirects
                .iter()
                .all(|redirect| redirect.target.text == "/dev/tty")
        {
            self.add(
                Rule::ShellEscape,
                command.span,
                format!("starts an interactive `{name}` through another program"),
            );
        }
    }

    /// Options through which a program is told to run something.
    fn option_shell(&mut self, name: &str, command: &Command) {
        let texts: Vec<&str> = command
            .args()
            .iter()
            .map(|word| word.text.as_str())
            .collect();
        let joined = texts.join(" ");
        let lower = joined.to_ascii_lowercase();
        let marks: &[&str] = match name {
            "tar" => &[
                "--checkpoint-action=exec",
                "--to-command",
                "--rsh-command",
                "-i /bin/sh",
                "--use-compress-program=/bin/sh",
                "--use-compress-program='sh",
            ],
            "zip" => &["-tt ", "--unzip-command"],
            "rsync" => &["-e sh", "-e 'sh", "--rsh=sh"],
            "apt-get" | "apt" => &["pre-invoke", "post-invoke", "changelog::pager"],
            "hg" => &["alias.", "--config hooks", "!/bin"],
            "latex" | "pdflatex" | "tex" | "xelatex" | "lualatex" => {
                &["--shell-escape", "-shell-escape", "write18"]
            }
            "tcpdump" => &[" -z "],
            "npm" | "yarn" => &["exec /bin/"],
            "sqlite3" => &[".shell", ".system"],
            "make" => &["--eval=", "shell=/"],
            "restic" | "borg" => &["--password-command", "--rsh "],
            "certbot" => &["-hook "],
            "pip" | "pip3" => &["--editor"],
            "nmap" => &["--interactive", "os.execute"],
            "openvpn" => &["--up ", "script-security 2"],
            "mysql" => &["\\! "],
            "gdb" => &["!sh", "!/bin", "import os", "shell "],
            "dc" => &["!/", "!sh"],
            "expect" => &["spawn "],
            "sort" => &["--compress-program"],
            "split" => &["--filter"],
            _ => &[],
        };
        let found = marks.iter().any(|mark| lower.contains(mark));
        let harmless = matches!(name, "split" | "sort") && !lower.contains("sh");
        let plain_expect = name == "expect" && !lower.contains("sh");
        if found && !harmless && !plain_expect {
            self.add(
                Rule::ShellEscape,
                command.span,
                format!("`{name}` is told to run another command"),
            );
        }
    }
}

/// Whether a text would start a shell: its path as a word of its own.
fn names_shell(text: &str) -> bool {
    const PATHS: &[&str] = &[
        "/bin/sh",
        "/bin/bash",
        "/bin/dash",
        "/bin/zsh",
        "/bin/ksh",
        "/usr/bin/sh",
        "/usr/bin/bash",
        "/usr/bin/zsh",
    ];
    let Some((at, path)) = PATHS
        .iter()
        .find_map(|path| text.find(path).map(|at| (at, *path)))
    else {
        return false;
    };
    let after = text[at + path.len()..].chars().next();
    let before = &text[..at];
    let ends = after
        .is_none_or(|c| !c.is_ascii_alphanumeric() && c != '/' && c != '.' && c != '-' && c != '_');
    ends && !before.ends_with("#!")
        && !before.ends_with("SHELL=")
        && !before.ends_with("shell=")
        && !before.ends_with("CONFIG_SHELL=")
        && !before.ends_with("--with-shell=")
}
