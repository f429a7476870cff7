//! What is being sent, judged by the names of files, variables and the commands that make it.

use stockade_shell::{Command, CommandId, Script, Word};

/// How much it would matter if the data left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Data {
    /// None is sent.
    #[default]
    None,
    /// A text that stands in the command itself.
    Literal,
    /// A file or the output of a command, of unknown content.
    Local,
    /// The environment, the history, a description of the machine.
    Environment,
    /// Credentials, keys, personal stores.
    Sensitive,
}

/// Parts of paths that hold credentials or personal data, lower-case.
const SENSITIVE_PATHS: [&str; 71] = [
    "/etc/passwd",
    "/etc/shadow",
    "/etc/master.passwd",
    "/etc/sudoers",
    "/etc/gshadow",
    "etc/ssh/",
    ".ssh/",
    ".ssh",
    "id_rsa",
    "id_ed25519",
    "id_ecdsa",
    "id_dsa",
    "authorized_keys",
    "known_hosts",
    ".aws/",
    ".aws",
    ".azure",
    ".config/gcloud",
    ".boto",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".pypirc",
    ".gem/credentials",
    ".git-credentials",
    ".gitconfig",
    ".kube/",
    ".kube/config",
    ".docker/config",
    ".dockercfg",
    ".gnupg",
    ".env",
    "bash_history",
    "zsh_history",
    ".histfile",
    ".vault-token",
    "wallet.dat",
    "keychain",
    "login.keychain",
    "cookies.sqlite",
    "/cookies",
    "login data",
    "logins.json",
    "key4.db",
    "credentials",
    "credential",
    "secret",
    "password",
    "passwd",
    "shadow",
    "serviceaccount/token",
    "/proc/self/environ",
    "tfstate",
    ".kdbx",
    "private_key",
    "privatekey",
    "ssn",
    ".password-store",
    ".config/gh/",
    ".config/rclone",
    "google-chrome",
    ".mozilla",
    ".thunderbird",
    ".bitcoin",
    ".ethereum",
    ".s3cfg",
    ".m2/settings",
    ".keytab",
    "ntds.dit",
    "wp-config.php",
];

const SENSITIVE_ENDINGS: [&str; 9] = [
    ".pem",
    ".key",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".ppk",
    ".ovpn",
    ".asc",
];

/// Judges a path or any other text that names data.
pub(super) fn of_path(path: &str) -> Data {
    let lower = path.to_ascii_lowercase();
    if matches!(lower.as_str(), "/dev/null" | "/dev/zero" | "/dev/stdin") {
        return Data::None;
    }
    let sensitive = SENSITIVE_PATHS.iter().any(|part| lower.contains(part))
        || SENSITIVE_ENDINGS.iter().any(|end| lower.ends_with(end));
    // Public halves of key pairs are meant to be given away.
    let public = lower.strip_suffix(".pub").is_some();
    if sensitive && !public && !lower.contains(".env.example") {
        Data::Sensitive
    } else if lower == "/proc/self/environ"
        || lower.starts_with("/proc/")
        || matches!(
            lower.as_str(),
            "/etc/hosts" | "/etc/hostname" | "/etc/machine-id" | "/etc/group" | "/etc/resolv.conf"
        )
    {
        Data::Environment
    } else {
        Data::Local
    }
}

/// Judges the name of a variable.
pub(super) fn of_variable(name: &str) -> Data {
    let upper = name.to_ascii_uppercase();
    // Addresses of databases and queues hold their passwords.
    let secret = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASS",
        "CREDENTIAL",
        "PRIVATE",
        "DATABASE_URL",
        "DB_URL",
        "DSN",
        "REDIS_URL",
        "MONGO",
        "AMQP_URL",
        "CONNECTION_STRING",
        "COOKIE",
    ];
    if secret.iter().any(|part| upper.contains(part)) {
        Data::Sensitive
    } else {
        Data::Local
    }
}

/// Judges a word: its text, the variables in it, the commands whose output it holds.
pub(super) fn of_word(script: &Script, word: &Word) -> Data {
    let variables = word.variables().map(of_variable).max().unwrap_or_default();
    let output = word
        .substitutions()
        .flatten()
        .map(|id| of_command(script, id))
        .max()
        .unwrap_or_default();
    variables
        .max(output)
        .max(of_file_text(script, word))
        .max(Data::Literal)
}

/// `$(<file)`, which the parser reads as a constant: the command in it has no name.
fn of_file_text(script: &Script, word: &Word) -> Data {
    // Few scripts are longer, and every word would be compared with every command.
    const MAX_COMMANDS: usize = 64;
    if script.commands.len() > MAX_COMMANDS {
        return Data::None;
    }
    script
        .commands
        .iter()
        .filter(|inner| {
            inner.place == stockade_shell::Place::Substitution
                && inner.words.is_empty()
                && word.span.start < inner.span.start
                && inner.span.end < word.span.end
        })
        .flat_map(|inner| &inner.redirects)
        .map(|redirect| of_path(&redirect.target.text))
        .max()
        .unwrap_or_default()
}

/// Judges what a command prints.
pub(super) fn of_command(script: &Script, id: CommandId) -> Data {
    let Some(command) = script.commands.get(id) else {
        return Data::None;
    };
    let paths = arguments(command)
        .filter(|text| !text.starts_with('-'))
        .map(of_path)
        .filter(|data| *data > Data::Local)
        .max()
        .unwrap_or_default();
    let files = command
        .redirects
        .iter()
        .map(|redirect| of_path(&redirect.target.text))
        .filter(|data| *data > Data::Local)
        .max()
        .unwrap_or_default();
    let own = match command.name().unwrap_or_default() {
        // `uname -m` names a platform, as downloads do; `uname -a` this machine.
        "uname"
            if command.args().iter().all(|word| {
                let letters = word.text.trim_start_matches('-');
                letters.chars().all(|c| "srmpioov".contains(c))
                    || matches!(letters, "machine" | "kernel-name" | "operating-system")
            }) =>
        {
            Data::Literal
        }
        "env" | "printenv" | "set" | "export" | "history" | "declare" | "whoami" | "id"
        | "uname" | "hostname" | "ifconfig" | "ip" | "ps" | "netstat" | "lsof" | "crontab"
        | "last" | "w" => Data::Environment,
        "security" | "pass" | "gpg" | "secret-tool" | "op" | "vault" | "mysqldump" | "pg_dump"
        | "mongodump" => Data::Sensitive,
        "xclip" | "xsel" | "pbpaste" | "wl-paste" | "tcpdump" | "script" | "arecord" | "scrot"
        | "redis-cli" | "mysql" | "psql" | "journalctl" | "dmesg" | "rsync" | "pigz" | "xz"
        | "bzip2" | "zstd" | "uuencode" | "ldapsearch" | "lsblk" | "cat" | "tar" | "zip"
        | "gzip" | "find" | "grep" | "head" | "tail" | "ls" | "dd" | "cpio" | "sqlite3" | "7z"
        | "xxd" | "base64" | "openssl" | "git" | "docker" | "kubectl" => Data::Local,
        "echo" | "printf" | "true" | ":" => command
            .args()
            .iter()
            .map(|word| of_echoed(script, word))
            .max()
            .unwrap_or(Data::Literal),
        _ => Data::Literal,
    };
    own.max(paths).max(files)
}

fn of_echoed(script: &Script, word: &Word) -> Data {
    match of_word(script, word) {
        Data::Local => Data::Literal.max(
            word.substitutions()
                .flatten()
                .map(|id| of_command(script, id))
                .max()
                .unwrap_or_default(),
        ),
        other => other,
    }
}

/// Judges what flows into a command's standard input.
pub(super) fn of_stdin(script: &Script, id: CommandId) -> Data {
    use stockade_shell::{RedirectOp, Stdin};
    let Some(command) = script.commands.get(id) else {
        return Data::None;
    };
    let piped = script
        .upstream(id)
        .into_iter()
        .map(|before| of_command(script, before))
        .max()
        .unwrap_or_default();
    let redirected = command
        .redirects
        .iter()
        .filter(|redirect| redirect.fd.is_none_or(|fd| fd == 0))
        .filter_map(|redirect| match redirect.op {
            RedirectOp::Read => Some(of_path(&redirect.target.text)),
            RedirectOp::HereString | RedirectOp::HereDocument => {
                Some(of_word(script, &redirect.target))
            }
            _ => None,
        })
        .max()
        .unwrap_or_default();
    let own = match command.stdin {
        Stdin::Text(_) => Data::Literal,
        _ => Data::None,
    };
    piped.max(redirected).max(own)
}

fn arguments(command: &Command) -> impl Iterator<Item = &str> {
    command.args().iter().map(|word| word.text.as_str())
}

impl Data {
    /// What a person is told was sent.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None | Self::Literal => "a text",
            Self::Local => "local data",
            Self::Environment => "the environment or system information",
            Self::Sensitive => "sensitive data",
        }
    }
}
