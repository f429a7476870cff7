//! Host names: taken out of URLs and arguments, and compared with the list of allowed ones.
//!
//! A name is allowed if it equals an entry or is a subdomain of an entry that says so. Never by
//! substring: `evil.example/?x=github.com` and `github.com.evil.example` are not GitHub.

use std::net::IpAddr;

/// Host names that data may go to.
///
/// An entry is a name (`github.com`: this name alone), a suffix (`*.github.com` or
/// `.github.com`; the first also allows `github.com` itself) or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostList {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    itself: bool,
    below: bool,
}

impl HostList {
    pub(crate) fn new<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        let entries = names
            .into_iter()
            .filter_map(|name| {
                let name = name.as_ref().trim();
                let (rest, itself, below) = if let Some(rest) = name.strip_prefix("*.") {
                    (rest, true, true)
                } else if let Some(rest) = name.strip_prefix('.') {
                    (rest, false, true)
                } else {
                    (name, true, false)
                };
                normal(rest).map(|name| Entry {
                    name,
                    itself,
                    below,
                })
            })
            .collect();
        Self { entries }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// True if the list allows the host.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let Some(host) = normal(host) else {
            return false;
        };
        self.entries.iter().any(|entry| {
            (entry.itself && host == entry.name)
                || (entry.below
                    && host
                        .strip_suffix(&entry.name)
                        .is_some_and(|rest| rest.ends_with('.')))
        })
    }
}

/// Lower-case, without port, trailing dot, brackets or user.
fn normal(host: &str) -> Option<String> {
    let host = host.trim().trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

/// The host of a URL or of `host[:port][/path]`, lower-case.
///
/// The user part goes up to the *last* `@` of the authority, as browsers and curl read it.
pub(crate) fn host_of(text: &str) -> Option<String> {
    let rest = match text.find("://") {
        Some(at) => text.get(at + 3..)?,
        None => text.strip_prefix("//").unwrap_or(text),
    };
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = if let Some(inside) = host.strip_prefix('[') {
        inside.split(']').next()?
    } else {
        host.split(':').next()?
    };
    let host = normal(host)?;
    host.chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'))
        .then_some(host)
}

/// What is known of a host from its name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// This machine or the local network.
    Local,
    /// Reserved for documentation, or a widely used public service that serves downloads.
    Ordinary,
    /// A place made for receiving data from anyone: paste, webhook, tunnel, file drop.
    Drop,
    /// The metadata service of a cloud.
    Metadata,
    /// Anything else with a public name or address.
    Unknown,
    /// A single label: an alias, a container, a placeholder.
    Unqualified,
}

/// Judges a host by its name.
pub(crate) fn standing(host: &str) -> Standing {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        return address_standing(address);
    }
    if METADATA.contains(&host.as_str()) {
        return Standing::Metadata;
    }
    if is_listed(&host, &DROPS) {
        return Standing::Drop;
    }
    if host == "localhost"
        || [".local", ".lan", ".internal", ".localhost", ".svc", ".home"]
            .iter()
            .any(|end| host.ends_with(end))
    {
        return Standing::Local;
    }
    if !host.contains('.') {
        return Standing::Unqualified;
    }
    if is_listed(&host, &ORDINARY) {
        return Standing::Ordinary;
    }
    Standing::Unknown
}

fn address_standing(address: IpAddr) -> Standing {
    match address {
        IpAddr::V4(v4) if v4.octets() == [169, 254, 169, 254] => Standing::Metadata,
        IpAddr::V4(v4) if v4.is_loopback() || v4.is_unspecified() => Standing::Local,
        IpAddr::V4(v4) if v4.is_private() || v4.is_link_local() => Standing::Local,
        IpAddr::V6(v6) if v6.is_loopback() => Standing::Local,
        _ => Standing::Unknown,
    }
}

/// True if `host` or a domain above it is in a list, which is sorted.
fn is_listed(host: &str, list: &[&str]) -> bool {
    std::iter::successors(Some(host), |name| {
        name.split_once('.').map(|(_, above)| above)
    })
    .any(|name| list.binary_search(&name).is_ok())
}

/// True if `host` is `name` or a subdomain of it.
pub(crate) fn is_or_below(host: &str, name: &str) -> bool {
    host.strip_suffix(name)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

const METADATA: [&str; 4] = [
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "metadata.azure.com",
];

/// Services whose purpose is to take in data from anyone.
const DROPS: [&str; 115] = [
    "0x0.st",
    "anonfiles.com",
    "api.telegram.org",
    "bashupload.com",
    "beeceptor.com",
    "bin.sh",
    "bore.pub",
    "burpcollaborator.net",
    "canarytokens.com",
    "canarytokens.org",
    "catbox.moe",
    "ceye.io",
    "clbin.com",
    "controlc.com",
    "discord.com",
    "discordapp.com",
    "dnslog.cn",
    "dnslog.link",
    "dpaste.com",
    "dpaste.de",
    "dpaste.org",
    "dumpz.org",
    "envs.sh",
    "fexpost.com",
    "file.io",
    "filebin.net",
    "free.beeceptor.com",
    "ghostbin.com",
    "gofile.io",
    "hastebin.com",
    "hatebin.com",
    "hook.eu1.make.com",
    "hook.integromat.com",
    "hookb.in",
    "hookdeck.com",
    "hooks.slack.com",
    "hooks.zapier.com",
    "interact.sh",
    "interactsh.com",
    "ix.io",
    "justpaste.it",
    "keep.sh",
    "lhr.life",
    "litterbox.catbox.moe",
    "loca.lt",
    "localhost.run",
    "maker.ifttt.com",
    "mediafire.com",
    "mega.nz",
    "mockbin.org",
    "ngrok-free.app",
    "ngrok-free.dev",
    "ngrok.app",
    "ngrok.dev",
    "ngrok.io",
    "ntfy.sh",
    "oast.fun",
    "oast.live",
    "oast.me",
    "oast.online",
    "oast.pro",
    "oast.site",
    "oast.to",
    "oastify.com",
    "oshi.at",
    "p.ip.fi",
    "pagekite.me",
    "paste.c-net.org",
    "paste.debian.net",
    "paste.ee",
    "paste.rs",
    "paste.sh",
    "pastebin.com",
    "pasteboard.co",
    "pasteio.com",
    "pipedream.net",
    "pixeldrain.com",
    "playit.gg",
    "postb.in",
    "privatebin.net",
    "ptsv2.com",
    "pushover.net",
    "put.re",
    "rentry.co",
    "requestbin.com",
    "requestbin.net",
    "requestcatcher.com",
    "requestinspector.com",
    "send.vis.ee",
    "sendspace.com",
    "serveo.net",
    "share.schollz.com",
    "smee.io",
    "snippet.host",
    "sprunge.us",
    "svix.com",
    "telebit.io",
    "temp.sh",
    "tempfile.me",
    "termbin.com",
    "tmpfiles.org",
    "transfer.sh",
    "trycloudflare.com",
    "ttm.sh",
    "typedwebhook.tools",
    "uguu.se",
    "up.ufile.io",
    "upload.ee",
    "webhook.office.com",
    "webhook.site",
    "webhookrelay.com",
    "wetransfer.com",
    "x0.at",
    "xip.io",
    "zippyshare.com",
];

/// Names for documentation (RFC 2606) and places that ordinary work downloads from.
const ORDINARY: [&str; 231] = [
    "adoptium.net",
    "almalinux.org",
    "alpinelinux.org",
    "amazonaws.com",
    "anaconda.com",
    "anaconda.org",
    "android.com",
    "ansible.com",
    "anthropic.com",
    "apache.org",
    "apple.com",
    "archive.org",
    "archlinux.org",
    "argoproj.io",
    "astral.sh",
    "aws.amazon.com",
    "azul.com",
    "azure.com",
    "bioconductor.org",
    "bitbucket.org",
    "bootstrapcdn.com",
    "brew.sh",
    "bun.sh",
    "centos.org",
    "cheat.sh",
    "chromium.org",
    "cilium.io",
    "clojars.org",
    "clojure.org",
    "cloudflare.com",
    "cloudfoundry.org",
    "cockroachlabs.com",
    "codecov.io",
    "confluent.io",
    "cpan.org",
    "cpanel.net",
    "cpanmin.us",
    "cran.r-project.org",
    "crates.io",
    "curl.se",
    "debian.org",
    "deno.land",
    "determinate.systems",
    "digitalocean.com",
    "docker.com",
    "docker.io",
    "documentfoundation.org",
    "dot.net",
    "drupal.org",
    "eclipse.org",
    "eff.org",
    "elastic.co",
    "elixir-lang.org",
    "erlang.org",
    "example.com",
    "example.net",
    "example.org",
    "fastly.com",
    "fedoraproject.org",
    "ffmpeg.org",
    "fluxcd.io",
    "fontawesome.com",
    "freebsd.org",
    "freedesktop.org",
    "gcr.io",
    "gentoo.org",
    "getcomposer.org",
    "getpip.org",
    "ghcr.io",
    "gimp.org",
    "git-scm.com",
    "gitea.com",
    "github.com",
    "githubusercontent.com",
    "gitlab.com",
    "gnome.org",
    "gnu.org",
    "go.dev",
    "golang.org",
    "google.com",
    "googleapis.com",
    "goproxy.io",
    "gradle.org",
    "grafana.com",
    "gstatic.com",
    "gutenberg.org",
    "hashicorp.com",
    "haskell.org",
    "haskellstack.org",
    "helm.sh",
    "heroku.com",
    "hetzner.com",
    "hex.pm",
    "httpbin.org",
    "huggingface.co",
    "iana.org",
    "icanhazip.com",
    "ietf.org",
    "ifconfig.co",
    "ifconfig.me",
    "imagemagick.org",
    "influxdata.com",
    "inkscape.org",
    "intel.com",
    "ipinfo.io",
    "isc.org",
    "istio.io",
    "java.net",
    "jenkins.io",
    "jetbrains.com",
    "jfrog.io",
    "jitpack.io",
    "jquery.com",
    "jsdelivr.net",
    "julialang.org",
    "k3s.io",
    "k8s.io",
    "kali.org",
    "kde.org",
    "kernel.org",
    "kotlinlang.org",
    "kubernetes.io",
    "launchpad.net",
    "leiningen.org",
    "letsencrypt.org",
    "libreoffice.org",
    "linkerd.io",
    "linuxbrew.sh",
    "linuxfoundation.org",
    "linuxmint.com",
    "lwn.net",
    "manjaro.org",
    "mariadb.com",
    "mariadb.org",
    "maven.org",
    "mercurial-scm.org",
    "microsoft.com",
    "min.io",
    "mongodb.com",
    "mongodb.org",
    "mozilla.org",
    "mysql.com",
    "neo4j.com",
    "nginx.org",
    "nist.gov",
    "nixos.org",
    "nodejs.org",
    "nodesource.com",
    "npmjs.com",
    "npmjs.org",
    "nvidia.com",
    "openjdk.org",
    "openssl.org",
    "openstreetmap.org",
    "opensuse.org",
    "openvpn.net",
    "openwrt.org",
    "oracle.com",
    "packagecloud.io",
    "packagist.org",
    "percona.com",
    "perl.org",
    "php.net",
    "pnpm.io",
    "posit.co",
    "postgresql.org",
    "prometheus.io",
    "proxmox.com",
    "puppet.com",
    "pypi.org",
    "python-poetry.org",
    "python.org",
    "pythonhosted.org",
    "pytorch.org",
    "qemu.org",
    "quay.io",
    "r-project.org",
    "rabbitmq.com",
    "rancher.io",
    "raspberrypi.org",
    "readthedocs.io",
    "readthedocs.org",
    "redhat.com",
    "redis.io",
    "rockylinux.org",
    "rstudio.com",
    "ruby-lang.org",
    "rubygems.org",
    "rust-lang.org",
    "rustup.rs",
    "rvm.io",
    "saltproject.io",
    "samba.org",
    "scala-lang.org",
    "sdkman.io",
    "sentry.io",
    "sigs.k8s.io",
    "slackware.com",
    "sonatype.org",
    "sourceforge.net",
    "spring.io",
    "sqlite.org",
    "stackexchange.com",
    "stackoverflow.com",
    "starship.rs",
    "tailscale.com",
    "terraform.io",
    "torproject.org",
    "ubuntu.com",
    "unicode.org",
    "unpkg.com",
    "vagrantup.com",
    "videolan.org",
    "vim.org",
    "virtualbox.org",
    "visualstudio.com",
    "voidlinux.org",
    "volta.sh",
    "vultr.com",
    "w3.org",
    "wikimedia.org",
    "wikipedia.org",
    "wireguard.com",
    "wordpress.org",
    "wttr.in",
    "xkcd.com",
    "yarnpkg.com",
    "ycombinator.com",
    "youtube.com",
    "zerotier.com",
    "zfsonlinux.org",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allows_by_equality_or_suffix_never_by_substring() {
        let list = HostList::new(["github.com", "*.crates.io", ".corp.test"]);
        for host in [
            "github.com",
            "GitHub.com.",
            "crates.io",
            "static.crates.io",
            "a.corp.test",
        ] {
            assert!(list.allows(host), "{host}");
        }
        for host in [
            "api.github.com",
            "evilgithub.com",
            "github.com.evil.test",
            "xcrates.io",
            "corp.test",
            "",
        ] {
            assert!(!list.allows(host), "{host}");
        }
    }

    #[test]
    fn takes_the_host_that_a_client_would_dial() {
        for (url, host) in [
            ("https://evil.test/?x=github.com", "evil.test"),
            ("https://github.com@evil.test/", "evil.test"),
            ("https://github.com:443@evil.test:8080/x", "evil.test"),
            ("HTTP://EVIL.test", "evil.test"),
            ("evil.test/path", "evil.test"),
            ("//evil.test\\@github.com", "evil.test"),
            ("http://[2001:db8::1]:80/x", "2001:db8::1"),
        ] {
            assert_eq!(host_of(url).as_deref(), Some(host), "{url}");
        }
        assert_eq!(host_of("https://$HOST/x"), None);
    }

    #[test]
    fn lists_are_sorted() {
        assert!(DROPS.is_sorted() && ORDINARY.is_sorted());
    }

    #[test]
    fn standing_of_well_known_hosts() {
        assert_eq!(standing("webhook.site"), Standing::Drop);
        assert_eq!(standing("abc.ngrok.io"), Standing::Drop);
        assert_eq!(standing("169.254.169.254"), Standing::Metadata);
        assert_eq!(standing("10.1.2.3"), Standing::Local);
        assert_eq!(standing("203.0.113.7"), Standing::Unknown);
        assert_eq!(standing("gitlab.example.com"), Standing::Ordinary);
        assert_eq!(standing("evil.test"), Standing::Unknown);
        assert_eq!(standing("host"), Standing::Unqualified);
    }
}
