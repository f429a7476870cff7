//! Files are generated with secrets in every position; none of them may be in the copy, and what
//! was beside them must be.

use proptest::prelude::*;

use super::*;

/// Secrets that are known by how they look, wherever they stand.
fn strong() -> impl Strategy<Value = String> {
    prop_oneof![
        "ghp_[A-Za-z0-9]{36}",
        "npm_[A-Za-z0-9]{36}",
        "glpat-[A-Za-z0-9]{20}",
        "pypi-AgEI[A-Za-z0-9]{60}",
        "[0-9a-f]{39}[a-f]",
        "[A-Za-z]{9}[0-9][A-Za-z0-9]{20}",
        "[A-Za-z0-9]{11}[a-z][0-9][A-Za-z0-9]{16}==",
        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}",
    ]
}

/// Secrets that are known only by where they stand.
fn weak() -> impl Strategy<Value = String> {
    "zq[a-z]{3,9}qz"
}

/// Lines of a file: `STRONG` and `WEAK` are the secrets, and `KEPT` must be in the copy.
struct Sample {
    format: SettingsFormat,
    /// Lines, or blocks of lines, in any order.
    blocks: &'static [&'static str],
    before: &'static str,
    after: &'static str,
    /// What of each block must be in the copy.
    kept: &'static [&'static str],
}

const SAMPLES: &[Sample] = &[
    Sample {
        format: SettingsFormat::Ini,
        before: "",
        blocks: &[
            "registry=https://registry.test/npm/",
            "@corp:registry = \"https://corp.test/\"",
            "//registry.test/:_authToken=STRONG",
            "//registry.test/:_authToken = \"WEAK\"",
            "//corp.test/:_password=WEAK",
            "_auth=WEAK",
            "; _authToken=WEAK",
            "# STRONG",
            "email=STRONG",
            "STRONG=true",
            "proxy=http://WEAK:WEAK@proxy.test:3128/",
            "https-proxy=http://STRONG@proxy2.test:3128",
            "noproxy = \"https://WEAK:x@a.test/?t=STRONG\"",
            "node-options=--x STRONG ; WEAK",
            "key=\"-----BEGIN PRIVATE KEY-----\\nWEAK\\n-----END\"",
            "init-license = 'STRONG'",
            "save-exact=true ; WEAK",
            "cache[]=/var/cache/npm",
            "user-agent=\"password=WEAK\"",
            "always-auth=true",
            "[STRONG]",
            "foo=Bearer WEAK",
        ],
        after: "",
        kept: &[
            "https://registry.test/npm/",
            "https://corp.test/",
            "http://proxy.test:3128/",
            "http://proxy2.test:3128",
            "cache[]=/var/cache/npm",
            "save-exact=true",
        ],
    },
    Sample {
        format: SettingsFormat::Pip,
        before: "[global]\n",
        blocks: &[
            "index-url = https://WEAK:WEAK@index.test/simple",
            "extra-index-url =\n    https://STRONG@extra.test/simple\n    # WEAK\n    https://plain.test/simple",
            "trusted-host: index.test",
            "proxy = WEAK:WEAK@proxy.test:3128",
            "password = WEAK",
            "pass: WEAK",
            "keyring-provider = import",
            "# password = WEAK",
            "; STRONG",
            "cert = /etc/ssl/corp.pem",
            "timeout = 60",
            "STRONG = 1",
            "note = STRONG",
            "other =\n  STRONG\n  x",
            "find-links = https://links.test/?token=WEAK",
            "log = a token=WEAK",
            "[STRONG]\nsecretless = 1\n[global]",
            "[auth]\nvalue = WEAK\n[global]",
        ],
        after: "",
        kept: &[
            "https://index.test/simple",
            "https://extra.test/simple",
            "https://plain.test/simple",
            "trusted-host = index.test",
            "proxy = proxy.test:3128",
            "cert = /etc/ssl/corp.pem",
            "timeout = 60",
            "https://links.test/",
        ],
    },
    Sample {
        format: SettingsFormat::Git,
        before: "",
        blocks: &[
            "[user]\n\tname = Jane Doe\n\temail = jane@example.test # STRONG",
            "[credential]\n\thelper = WEAK",
            "[credential \"https://h.test\"]\n\tusername = WEAK",
            "[http \"https://h.test\"]\n\textraHeader = \"Authorization: Basic WEAK\"",
            "[http]\n\tproxy = http://WEAK:WEAK@proxy.test:3128",
            "[url \"https://WEAK:STRONG@git.test/\"]\n\tinsteadOf = git@git.test:",
            "[remote \"x\"]\n\turl = \"https://STR\"ONG@remote.test/x",
            "[alias]\n\tgo = \"!curl -H 'Authorization: WEAK' https://x.test\"",
            "[alias]\n\tst = status --short",
            "[sendemail]\n\tsmtpPass = WEAK",
            "[github]\n\ttoken = WEAK",
            "; STRONG",
            "# WEAK",
            "[core]\n\teditor = vim STRONG",
            "[core]\n\tpager = less \\\n\t-R",
            "[x \"STRONG\"]\n\ty = 1",
            "[init]\n\tdefaultBranch = main",
        ],
        after: "",
        kept: &[
            "Jane Doe",
            "jane@example.test",
            "http://proxy.test:3128",
            "[url \"https://git.test/\"]",
            "status --short",
            "less \\t-R",
            "main",
        ],
    },
    Sample {
        format: SettingsFormat::Toml,
        before: "",
        blocks: &[
            "[registries.corp]\nindex = \"sparse+https://WEAK:WEAK@index.test/\"\ntoken = \"WEAK\"",
            "[registry]\ntoken = \"STRONG\"\nglobal-credential-providers = [\"WEAK\"]",
            "[source.main]\nreplace-with = \"mirror\"",
            "[source.mirror]\nregistry = \"https://mirror.test/index\"",
            "[http]\nproxy = \"WEAK:WEAK@proxy.test:3128\"\ntimeout = 5",
            "[env]\nA_SECRET = \"WEAK\"\nPLAIN = \"STRONG\"\nNESTED = { value = \"STRONG\", force = true }",
            "# STRONG",
            "[target.x86_64-unknown-linux-gnu]\nrustflags = [\"-C\", \"link-arg=-fuse-ld=lld\"]",
            "[target.aarch64-unknown-linux-gnu]\nrunner = [\"run\", \"STRONG\"]",
            "[build]\njobs = 4 # WEAK",
            "[alias]\n\"STRONG\" = \"build\"\nb = '''build'''\nc = \"\"\"\nx --token WEAK\"\"\"",
            "[\"STRONG\"]\nx = 1",
            "[net]\n\"p\\u0061ssword\" = \"WEAK\"",
        ],
        after: "",
        kept: &[
            "sparse+https://index.test/",
            "\"mirror\"",
            "https://mirror.test/index",
            "proxy.test:3128",
            "\"timeout\" = 5",
            "[\"target\".\"x86_64-unknown-linux-gnu\"]",
            "link-arg=-fuse-ld=lld",
            "\"jobs\" = 4",
        ],
    },
    Sample {
        format: SettingsFormat::Xml,
        before: "<?xml version=\"1.0\"?>\n<!-- WEAK --><settings xmlns=\"http://maven.test/SETTINGS/1.0.0\">",
        blocks: &[
            "<localRepository>/var/m2</localRepository>",
            "<servers><server><id>x</id><username>WEAK</username><password>WEAK</password></server></servers>",
            "<mirrors><mirror><id>m</id><url>https://WEAK:STRONG@mirror.test/maven</url></mirror></mirrors>",
            "<proxies><proxy><host>proxy.test</host><password>WEAK</password></proxy></proxies>",
            "<profiles><profile><properties><api.token>WEAK</api.token><x>STRONG</x></properties></profile></profiles>",
            "<!-- STRONG -->",
            "<a>ST<!-- x -->RONG</a>",
            "<b c=\"STRONG\" password='WEAK'>kept</b>",
            "<d>&#x67;hp_&#48;123456789&#97;bcdefghijWEAK</d>",
            "<STRONG>1</STRONG>",
            "<e>password: WEAK</e>",
        ],
        after: "</settings>",
        kept: &[
            "<localRepository>/var/m2</localRepository>",
            "<url>https://mirror.test/maven</url>",
            "<host>proxy.test</host>",
            ">kept</b>",
        ],
    },
    Sample {
        format: SettingsFormat::Yaml,
        before: "",
        blocks: &[
            "npmRegistryServer: \"https://registry.test\"",
            "npmAuthToken: WEAK",
            "npmAuthIdent: \"WEAK:WEAK\"",
            "npmScopes:\n  corp:\n    npmRegistryServer: 'https://corp.test'\n    npmAuthToken: \"STRONG\"",
            "npmRegistries:\n  \"//registry.test\":\n    npmAuthToken: WEAK\n    npmAlwaysAuth: true",
            "httpProxy: http://WEAK:WEAK@proxy.test:3128",
            "# STRONG",
            "nodeLinker: node-modules # WEAK",
            "yarnPath: .yarn/releases/yarn.cjs",
            "plugins:\n  - path: .yarn/plugins/p.cjs\n    spec: STRONG\n  - x STRONG",
            "enableGlobalCache: true",
            "secrets:\n- WEAK\n- WEAK",
            "supportedArchitectures:\n  os:\n    - current\n    - linux",
            "initFields:\n  note: STRONG",
        ],
        after: "",
        kept: &[
            "npmRegistryServer: \"https://registry.test\"",
            "    npmRegistryServer: \"https://corp.test\"",
            "http://proxy.test:3128",
            "node-modules",
            "yarnPath: .yarn/releases/yarn.cjs",
            ".yarn/plugins/p.cjs",
            "enableGlobalCache: true",
            "    - linux",
        ],
    },
];

/// Whether a part of a secret that is of use to somebody is in the text.
fn leaks(text: &str, secret: &str) -> bool {
    let length = secret.len().min(10);
    let letters: Vec<char> = secret.chars().collect();
    letters
        .windows(length)
        .any(|part| text.contains(&part.iter().collect::<String>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_planted_secret_is_in_a_copy(
        number in 0..SAMPLES.len(),
        order in any::<prop::sample::Index>(),
        left_out in prop::collection::vec(any::<bool>(), 32),
        (strong, weak) in (strong(), weak()),
        crlf in any::<bool>(),
    ) {
        let sample = &SAMPLES[number];
        let mut blocks: Vec<&str> = sample.blocks.to_vec();
        blocks.rotate_left(order.index(sample.blocks.len()));
        let drops_some = left_out[31];
        let blocks = blocks.iter().zip(&left_out).filter(|(_, out)| !(drops_some && **out));
        let blocks: Vec<&str> = blocks.map(|(block, _)| *block).collect();
        let lines = format!("{}{}\n{}", sample.before, blocks.join("\n"), sample.after);
        let (first, second) = strong.split_at(3);
        let lines = lines
            .replace("STRONG", &strong)
            .replace("STR\"ONG", &format!("{first}\"{second}"))
            .replace("ST<!-- x -->RONG", &format!("{first}<!-- x -->{second}"))
            .replace("WEAK", &weak);
        let lines = if crlf { lines.replace('\n', "\r\n") } else { lines };
        let Some(copy) = without_secrets(sample.format, lines.as_bytes()) else {
            // No name of an element has an equals sign.
            prop_assert!(sample.format == SettingsFormat::Xml && strong.contains('='), "{lines}");
            return Ok(());
        };
        prop_assert!(!leaks(&copy, &strong), "{strong} in\n{copy}");
        prop_assert!(!leaks(&copy, &weak), "{weak} in\n{copy}");
    }

    #[test]
    fn any_bytes_are_taken(format in 0..7_usize, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let formats = [
            SettingsFormat::Git, SettingsFormat::Ini, SettingsFormat::Json, SettingsFormat::Pip,
            SettingsFormat::Toml, SettingsFormat::Xml, SettingsFormat::Yaml,
        ];
        let _ = without_secrets(formats[format], &bytes);
    }

    #[test]
    fn json_has_no_secret_in_any_position(strong in strong(), weak in weak()) {
        let text = serde_json::json!({
            "auths": {"registry.test": {"auth": weak, "identitytoken": weak}},
            "credsStore": weak,
            "credHelpers": {"registry.test": weak},
            "HttpHeaders": {"X-Meta": weak},
            "psFormat": "table",
            "proxies": {"default": {"httpProxy": format!("http://{weak}:{weak}@proxy.test:3128")}},
            "list": ["a", strong, {"x": [strong, {"password": weak}]}],
            strong.clone(): 1,
            "number": 1_234_567_890_123_u64,
        });
        let copy = without_secrets(SettingsFormat::Json, text.to_string().as_bytes()).unwrap();
        prop_assert!(!leaks(&copy, &strong) && !leaks(&copy, &weak), "{copy}");
        prop_assert!(copy.contains("\"psFormat\": \"table\"") && copy.contains("http://proxy.test:3128"));
    }
}

/// Each sample as a whole, with secrets of every kind: what is not secret is there.
#[test]
fn what_is_no_secret_is_kept() {
    for sample in SAMPLES {
        let whole = format!(
            "{}{}\n{}",
            sample.before,
            sample.blocks.join("\n"),
            sample.after
        );
        let text = whole
            .replace("STRONG", "ghp_0123456789abcdefghij")
            .replace("STR\"ONG", "ghp\"_0123456789abcdefghij")
            .replace("ST<!-- x -->RONG", "ghp_0123<!-- x -->456789abcdefghij")
            .replace("WEAK", "zqsecretqz");
        let copy = without_secrets(sample.format, text.as_bytes());
        let copy = copy.unwrap_or_else(|| panic!("{:?} is understood:\n{text}", sample.format));
        for kept in sample.kept {
            assert!(copy.contains(kept), "{kept} in {:?}\n{copy}", sample.format);
        }
        // A copy is a file of the same format, from which nothing more has to be removed.
        let again = without_secrets(sample.format, copy.as_bytes());
        assert_eq!(again.as_ref(), Some(&copy), "{:?}", sample.format);
    }
}

#[test]
fn what_is_not_understood_has_no_copy() {
    let cases: &[(SettingsFormat, &str)] = &[
        (SettingsFormat::Git, "[user\nname = x"),
        (SettingsFormat::Git, "[user]\n= x"),
        (SettingsFormat::Json, "[1]"),
        (SettingsFormat::Json, "{\"a\": 1"),
        (SettingsFormat::Pip, "name = before any section"),
        (SettingsFormat::Pip, "[a]\nno value"),
        (SettingsFormat::Toml, "a = "),
        (SettingsFormat::Xml, "<a>"),
        (SettingsFormat::Xml, "<a><b></a>"),
        (
            SettingsFormat::Xml,
            "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
        ),
        (SettingsFormat::Xml, "<a><![CDATA[x]]></a>"),
        (SettingsFormat::Yaml, "a: |\n  text"),
        (SettingsFormat::Yaml, "a: {b: c}"),
        (SettingsFormat::Yaml, "a: \"x\n  y\""),
        (SettingsFormat::Yaml, "a: &anchor x"),
        (SettingsFormat::Yaml, "a: x\n  y"),
    ];
    for (format, text) in cases {
        assert_eq!(without_secrets(*format, text.as_bytes()), None, "{text}");
    }
    let large = "a=b\n".repeat(MAX_SETTINGS_BYTES);
    assert_eq!(without_secrets(SettingsFormat::Ini, large.as_bytes()), None);
    assert_eq!(without_secrets(SettingsFormat::Ini, b"a=\xff"), None);
}
