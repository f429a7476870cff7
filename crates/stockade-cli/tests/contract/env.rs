//! E: the environment is a list of what passes, not of what does not.

use stockade_test::case::Control;
use stockade_test::{Case, Flag, allowed, attack, closure, not, prints, report, stdout_is};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        attack("E01", "credentials and loader variables in the environment")
            .env("OPENAI_API_KEY", "k-@SECRET@")
            .env("AWS_SECRET_ACCESS_KEY", "a-@SECRET@")
            .env("SOME_UNKNOWN_NAME", "u-@SECRET@")
            .env("LD_PRELOAD", "/l-@SECRET@.so")
            .env("LD_LIBRARY_PATH", "/p-@SECRET@")
            .flag(Flag::Report(report::FILE.into()))
            .sh("env")
            .leak(prints("k-@SECRET@"))
            .leak(prints("a-@SECRET@"))
            .leak(prints("u-@SECRET@"))
            .leak(prints("l-@SECRET@"))
            .leak(prints("p-@SECRET@"))
            .boxed(closure(
                "the report names them without their values",
                |scene| {
                    let Some(report) = report::read(&scene.world.witness()) else {
                        return false;
                    };
                    let text = report.to_string();
                    text.contains("OPENAI_API_KEY")
                        && text.contains("AWS_SECRET_ACCESS_KEY")
                        && text.contains("LD_PRELOAD")
                        && !text.contains(&scene.world.expand("@SECRET@"))
                },
            )),
        attack("E01b", "variables that make an interpreter run code")
            .env("BASH_ENV", "/b-@SECRET@")
            .env("NODE_OPTIONS", "--n-@SECRET@")
            .env("PERL5OPT", "-Mp@SECRET@")
            .env("PYTHONSTARTUP", "/s-@SECRET@")
            .env("GIT_SSH_COMMAND", "g-@SECRET@")
            .env("RUBYOPT", "-r@SECRET@")
            .env("JAVA_TOOL_OPTIONS", "-Dj-@SECRET@")
            .env("PROMPT_COMMAND", "q-@SECRET@")
            .sh("env")
            .leak(prints("b-@SECRET@"))
            .leak(prints("--n-@SECRET@"))
            .leak(prints("-Mp@SECRET@"))
            .leak(prints("s-@SECRET@"))
            .leak(prints("g-@SECRET@"))
            .leak(prints("-r@SECRET@"))
            .leak(prints("-Dj-@SECRET@"))
            .leak(prints("q-@SECRET@")),
        allowed("E02", "variables set and kept")
            .env("FOO", "kept value")
            .flag(Flag::Env("K=a=b c".into()))
            .flag(Flag::KeepEnv("FOO".into()))
            .sh("env")
            .control(Control::Absent(
                "there is no flag to obey without the launcher",
            ))
            .boxed(prints("K=a=b c\n"))
            .boxed(prints("FOO=kept value\n")),
        attack("E02b", "a loader variable that one asks to keep")
            .env("LD_PRELOAD", "/l-@SECRET@.so")
            .flag(Flag::KeepEnv("LD_PRELOAD".into()))
            .sh("env")
            .leak(prints("l-@SECRET@"))
            .may_refuse(),
        allowed("E03", "ordinary variables pass, markers are set")
            .env("TERM", "xterm-256color")
            .sh("env; echo home=$HOME path=$PATH")
            .works(prints("TERM=xterm-256color"))
            .works(prints("home=@HOME@ path=/usr/local/sbin"))
            .boxed(prints("STOCKADE_SANDBOX_ACTIVE=1"))
            .boxed(prints("STOCKADE_SANDBOX_NETWORK_DISABLED=1")),
        allowed("E03b", "variables that builds need")
            .setup("echo > @OUT@/ca.pem")
            .env("CI", "true")
            .env("CC", "clang")
            .env("CFLAGS", "-O2 -g")
            .env("RUST_BACKTRACE", "1")
            .env("CARGO_TERM_COLOR", "never")
            .env("NODE_ENV", "test")
            .env("GOPRIVATE", "example.org")
            .env("LC_PAPER", "C")
            .env("SSL_CERT_FILE", "@OUT@/ca.pem")
            .sh("echo \"$CI|$CC|$CFLAGS|$RUST_BACKTRACE|$CARGO_TERM_COLOR|$NODE_ENV|$GOPRIVATE|$LC_PAPER|$SSL_CERT_FILE\"")
            .works(stdout_is("true|clang|-O2 -g|1|never|test|example.org|C|@OUT@/ca.pem")),
        attack("E03c", "secrets in variables that pass by their names")
            .env("CFLAGS", "-DKEY=ghp_@ID@0123456789abcdef")
            .env("GOPROXY", "https://me:@SECRET@@example.org")
            .env("CARGO_TERM_TOKEN", "t-@SECRET@")
            .env("RUST_API_KEY", "r-@SECRET@")
            .sh("env")
            .leak(prints("ghp_@ID@"))
            .leak(prints("@SECRET@@example.org"))
            .leak(prints("t-@SECRET@"))
            .leak(prints("r-@SECRET@")),
        attack("E03d", "code that node would load, among options that are harmless")
            .env("NODE_OPTIONS", "--require /r-@SECRET@.js --max-old-space-size=2048 --import=/i-@SECRET@.js")
            .sh("echo \"$NODE_OPTIONS\"")
            .works(prints("--max-old-space-size=2048"))
            .leak(prints("r-@SECRET@"))
            .leak(prints("i-@SECRET@")),
        attack(
            "E04",
            "the environment of other processes, process 1 among them",
        )
        .env("MY_TOKEN", "@SECRET@")
        .sh("cat /proc/[0-9]*/environ | tr '\\0' '\\n'")
        .leak(prints("@SECRET@"))
        .boxed(not(prints("MY_TOKEN"))),
    ]
}
