//! The lists of names: what passes, what is a secret, what makes programs run other programs.

/// Marker: `1` inside a sandbox. A hint for tools that cooperate, never a proof.
pub const STOCKADE_SANDBOX_ACTIVE: &str = "STOCKADE_SANDBOX_ACTIVE";
/// Marker: `1` where the sandbox has no network.
pub const STOCKADE_SANDBOX_NETWORK_DISABLED: &str = "STOCKADE_SANDBOX_NETWORK_DISABLED";
/// Marker: the kind of sandbox, as [`SandboxType`](crate::SandboxType) names it.
pub const STOCKADE_SANDBOX_TYPE: &str = "STOCKADE_SANDBOX_TYPE";
/// Marker: the writable roots, joined as `PATH` is on this system.
pub const STOCKADE_SANDBOX_WRITABLE_ROOTS: &str = "STOCKADE_SANDBOX_WRITABLE_ROOTS";

/// Variables that hold credentials or steer the loader, by name.
///
/// [`should_filter_env_var`](super::should_filter_env_var) knows patterns as well.
pub const FILTERED_ENV_VARS: &[&str] = &[
    // API keys
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "XAI_API_KEY",
    "DEEPSEEK_API_KEY",
    "META_API_KEY",
    "MODEL_API_KEY",
    "OPENROUTER_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "COHERE_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "HUGGINGFACE_API_KEY",
    "HF_TOKEN",
    // Clouds
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CLOUD_PROJECT",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
    "AZURE_SUBSCRIPTION_ID",
    // Forges and registries
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_PAT",
    "NPM_TOKEN",
    "NPM_AUTH_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "PYPI_TOKEN",
    // Databases
    "DATABASE_URL",
    "DB_PASSWORD",
    "PGPASSWORD",
    "MYSQL_PWD",
    "REDIS_PASSWORD",
    "MONGO_PASSWORD",
    // Agents
    "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO",
    // The loader
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "LD_DEBUG",
    "LD_PROFILE",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "DYLD_FRAMEWORK_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    // Others
    "VAULT_TOKEN",
    "CONSUL_HTTP_TOKEN",
    "DOCKER_AUTH_CONFIG",
    "KUBECONFIG",
    "KUBE_TOKEN",
    "SLACK_TOKEN",
    "SLACK_BOT_TOKEN",
    "DISCORD_TOKEN",
    "TELEGRAM_BOT_TOKEN",
];

/// Variables that pass into a sandbox without being asked for.
///
/// `PYTHONPATH` and `NODE_PATH`, which comparable lists have, are left out on purpose: they make
/// an interpreter load code from wherever the parent pointed it. `--keep-env` brings them back.
pub const PRESERVED_ENV_VARS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "XDG_BIN_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "PYTHON",
    "COLORTERM",
    "FORCE_COLOR",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "TMPDIR",
    "TEMP",
    "TMP",
    // Terminals, editors, pagers
    "COLUMNS",
    "LINES",
    "LESS",
    "LS_COLORS",
    "MANWIDTH",
    // Builds: which compiler, with which flags, how loud
    "CI",
    "CC",
    "CXX",
    "CPP",
    "AR",
    "AS",
    "NM",
    "RANLIB",
    "STRIP",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "PKG_CONFIG_PATH",
    "SOURCE_DATE_EPOCH",
    "CMAKE_BUILD_TYPE",
    "CMAKE_GENERATOR",
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "RUSTUP_TOOLCHAIN",
    "CARGO_BUILD_JOBS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TARGET_DIR",
    "NODE_ENV",
    "VIRTUAL_ENV",
    "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "GO111MODULE",
    "GOARCH",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GONOPROXY",
    "GONOSUMDB",
    "GOOS",
    "GOPRIVATE",
    "GOPROXY",
    "GOSUMDB",
    "GOTOOLCHAIN",
    "GOMAXPROCS",
];

/// Beginnings of names that pass whatever follows, unless they are credentials or hooks.
pub(super) const PRESERVED_PREFIXES: &[&str] =
    &["LC_", "RUST_", "CARGO_PROFILE_", "CARGO_TERM_", "CGO_"];

/// Options of node that load no code: the rest of `NODE_OPTIONS` is left out.
pub(super) const HARMLESS_NODE_OPTIONS: &[&str] = &[
    "--enable-source-maps",
    "--max-http-header-size",
    "--max-old-space-size",
    "--max-semi-space-size",
    "--no-deprecation",
    "--no-warnings",
    "--stack-trace-limit",
    "--throw-deprecation",
    "--trace-deprecation",
    "--trace-uncaught",
    "--trace-warnings",
    "--unhandled-rejections",
    "--use-openssl-ca",
    "--use-system-ca",
];

/// How well-known tokens begin; what is shorter than [`MIN_TOKEN_BYTES`] is none.
pub(super) const TOKEN_PREFIXES: &[&str] = &[
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "AIza",
    "npm_",
    "pypi-",
    "hf_",
    "eyJ",
    "dop_v1_",
];

/// The shortest of those tokens.
pub(super) const MIN_TOKEN_BYTES: usize = 20;

/// Variables that make a program load or run something it was not asked for.
///
/// They never come from the parent's environment, not even when kept by name: an agent that can
/// ask for a variable to be kept must not gain a way to run code in every later tool. Setting one
/// to a value is the user's own statement and works.
pub(super) const HOOKS: &[&str] = &[
    // Shells
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "IFS",
    "CDPATH",
    "GLOBIGNORE",
    "ZDOTDIR",
    // Interpreters and their tools
    "NODE_OPTIONS",
    "NODE_REPL_EXTERNAL_MODULE",
    "BUN_OPTIONS",
    "DENO_NODE_COMPAT",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "PYTHONUSERBASE",
    "PERL5OPT",
    "PERL5LIB",
    "PERLLIB",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "BUNDLE_GEMFILE",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "MAVEN_OPTS",
    "GRADLE_OPTS",
    "DOTNET_STARTUP_HOOKS",
    "CORECLR_PROFILER_PATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "R_PROFILE",
    "R_PROFILE_USER",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_ZFLAGS",
    // Build tools
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MFLAGS",
    "GOFLAGS",
    // git, ssh, pagers
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_DIR",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
    "MANPAGER",
    // libc and libraries
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "LOCPATH",
    "NLSPATH",
    "RES_OPTIONS",
    "RESOLV_HOST_CONF",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
];

/// Beginnings of names that are hooks whatever follows.
pub(super) const HOOK_PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "BASH_FUNC_", // exported functions, CVE-2014-6271
    "GIT_CONFIG", // GIT_CONFIG_COUNT and its pairs set core.sshCommand and the like
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
];

/// Beginnings of names that belong to a cloud's credentials.
pub(super) const SECRET_PREFIXES: &[&str] = &["AWS_", "AZURE_", "GOOGLE_", "GCP_", "CLOUDSDK_"];

/// Where systems keep the certificates that they trust, in one file: Debian, Fedora, openSUSE, Alpine
/// and the BSDs.
pub const CERTIFICATE_FILES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What programs read to find the certificates that they trust: OpenSSL, Go and Rust; curl; Python's
/// requests and pip; node; git; cargo; the clouds' tools; deno; gRPC.
pub const CERTIFICATE_VARIABLES: &[&str] = &[
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

/// Names that are secrets when they stand alone. `PWD` is the shell's directory, not a password.
pub(super) const SECRET_NAMES: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "CREDENTIALS",
    "APIKEY",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
];

/// Ends of names that are secrets.
pub(super) const SECRET_SUFFIXES: &[&str] = &[
    "_TOKEN",
    "_KEY",
    "_APIKEY",
    "_SECRET",
    "_PASS",
    "_PASSWD",
    "_PASSWORD",
    "_PASSPHRASE",
    "_PWD",
    "_CREDENTIALS",
    "_DSN",
    "_PAT",
    "_URI",
];
