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
    if DROPS.iter().any(|name| is_or_below(&host, name)) {
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
    if ORDINARY.iter().any(|name| is_or_below(&host, name)) {
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
    "beeceptor.com",
    "bin.sh",
    "burpcollaborator.net",
    "bashupload.com",
    "canarytokens.com",
    "catbox.moe",
    "clbin.com",
    "controlc.com",
    "dnslog.cn",
    "dpaste.com",
    "dpaste.org",
    "discord.com",
    "discordapp.com",
    "ceye.io",
    "dumpz.org",
    "envs.sh",
    "file.io",
    "filebin.net",
    "fexpost.com",
    "free.beeceptor.com",
    "ghostbin.com",
    "gofile.io",
    "hastebin.com",
    "hookb.in",
    "hooks.slack.com",
    "hooks.zapier.com",
    "interact.sh",
    "ix.io",
    "justpaste.it",
    "localhost.run",
    "loca.lt",
    "mockbin.org",
    "ngrok-free.app",
    "ngrok.app",
    "ngrok.io",
    "oast.fun",
    "oast.live",
    "oast.me",
    "oast.online",
    "oast.pro",
    "oast.site",
    "oastify.com",
    "paste.ee",
    "paste.rs",
    "pastebin.com",
    "pasteio.com",
    "pipedream.net",
    "postb.in",
    "privatebin.net",
    "ptsv2.com",
    "requestbin.com",
    "requestbin.net",
    "requestcatcher.com",
    "rentry.co",
    "sendspace.com",
    "serveo.net",
    "sprunge.us",
    "temp.sh",
    "tempfile.me",
    "termbin.com",
    "tmpfiles.org",
    "transfer.sh",
    "trycloudflare.com",
    "uguu.se",
    "webhook.site",
    "wetransfer.com",
    "x0.at",
    "xip.io",
    "ntfy.sh",
    "pixeldrain.com",
    "litterbox.catbox.moe",
    "oshi.at",
    "keep.sh",
    "up.ufile.io",
    "upload.ee",
    "send.vis.ee",
    "share.schollz.com",
    "put.re",
    "ttm.sh",
    "p.ip.fi",
    "paste.debian.net",
    "dpaste.de",
    "hatebin.com",
    "paste.c-net.org",
    "paste.sh",
    "snippet.host",
    "pasteboard.co",
    "webhookrelay.com",
    "hookdeck.com",
    "requestinspector.com",
    "typedwebhook.tools",
    "smee.io",
    "svix.com",
    "lhr.life",
    "ngrok.dev",
    "ngrok-free.dev",
    "telebit.io",
    "pagekite.me",
    "playit.gg",
    "bore.pub",
    "interactsh.com",
    "oast.to",
    "dnslog.link",
    "canarytokens.org",
    "webhook.office.com",
    "pushover.net",
    "maker.ifttt.com",
    "hook.eu1.make.com",
    "hook.integromat.com",
    "mega.nz",
    "mediafire.com",
    "zippyshare.com",
];

/// Names for documentation (RFC 2606) and places that ordinary work downloads from.
const ORDINARY: [&str; 231] = [
    "example.com",
    "example.net",
    "example.org",
    "alpinelinux.org",
    "amazonaws.com",
    "anaconda.com",
    "anaconda.org",
    "apache.org",
    "apple.com",
    "archlinux.org",
    "aws.amazon.com",
    "azure.com",
    "bitbucket.org",
    "brew.sh",
    "centos.org",
    "cheat.sh",
    "chromium.org",
    "cloudflare.com",
    "cloudfoundry.org",
    "cpan.org",
    "cpanel.net",
    "crates.io",
    "curl.se",
    "debian.org",
    "deno.land",
    "docker.com",
    "docker.io",
    "dot.net",
    "drupal.org",
    "eclipse.org",
    "elastic.co",
    "fedoraproject.org",
    "ffmpeg.org",
    "freebsd.org",
    "freedesktop.org",
    "gcr.io",
    "ghcr.io",
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
    "hashicorp.com",
    "haskell.org",
    "heroku.com",
    "httpbin.org",
    "huggingface.co",
    "icanhazip.com",
    "ifconfig.co",
    "ifconfig.me",
    "imagemagick.org",
    "influxdata.com",
    "intel.com",
    "ipinfo.io",
    "isc.org",
    "jenkins.io",
    "jetbrains.com",
    "jquery.com",
    "jsdelivr.net",
    "k8s.io",
    "kde.org",
    "kernel.org",
    "kubernetes.io",
    "launchpad.net",
    "linuxfoundation.org",
    "maven.org",
    "microsoft.com",
    "mongodb.com",
    "mozilla.org",
    "mysql.com",
    "nginx.org",
    "nixos.org",
    "nodejs.org",
    "nodesource.com",
    "npmjs.com",
    "npmjs.org",
    "nvidia.com",
    "openssl.org",
    "opensuse.org",
    "oracle.com",
    "packagist.org",
    "perl.org",
    "php.net",
    "postgresql.org",
    "pypi.org",
    "python.org",
    "pythonhosted.org",
    "pytorch.org",
    "quay.io",
    "r-project.org",
    "raspberrypi.org",
    "redhat.com",
    "ruby-lang.org",
    "rubygems.org",
    "rust-lang.org",
    "rustup.rs",
    "samba.org",
    "sourceforge.net",
    "sqlite.org",
    "stackexchange.com",
    "stackoverflow.com",
    "terraform.io",
    "ubuntu.com",
    "unpkg.com",
    "videolan.org",
    "vim.org",
    "w3.org",
    "wikipedia.org",
    "wordpress.org",
    "wttr.in",
    "yarnpkg.com",
    "ycombinator.com",
    "youtube.com",
    "adoptium.net",
    "almalinux.org",
    "android.com",
    "ansible.com",
    "anthropic.com",
    "archive.org",
    "argoproj.io",
    "astral.sh",
    "azul.com",
    "bioconductor.org",
    "bootstrapcdn.com",
    "bun.sh",
    "cilium.io",
    "clojars.org",
    "clojure.org",
    "cockroachlabs.com",
    "codecov.io",
    "confluent.io",
    "cpanmin.us",
    "cran.r-project.org",
    "determinate.systems",
    "digitalocean.com",
    "documentfoundation.org",
    "eff.org",
    "elixir-lang.org",
    "erlang.org",
    "fastly.com",
    "fluxcd.io",
    "fontawesome.com",
    "gentoo.org",
    "getcomposer.org",
    "getpip.org",
    "gimp.org",
    "gstatic.com",
    "gutenberg.org",
    "haskellstack.org",
    "helm.sh",
    "hetzner.com",
    "hex.pm",
    "iana.org",
    "ietf.org",
    "inkscape.org",
    "istio.io",
    "java.net",
    "jfrog.io",
    "jitpack.io",
    "julialang.org",
    "k3s.io",
    "kali.org",
    "kotlinlang.org",
    "leiningen.org",
    "letsencrypt.org",
    "libreoffice.org",
    "linkerd.io",
    "linuxbrew.sh",
    "linuxmint.com",
    "lwn.net",
    "manjaro.org",
    "mariadb.com",
    "mariadb.org",
    "mercurial-scm.org",
    "min.io",
    "mongodb.org",
    "neo4j.com",
    "nist.gov",
    "openjdk.org",
    "openstreetmap.org",
    "openvpn.net",
    "openwrt.org",
    "packagecloud.io",
    "percona.com",
    "pnpm.io",
    "posit.co",
    "prometheus.io",
    "proxmox.com",
    "puppet.com",
    "python-poetry.org",
    "qemu.org",
    "rabbitmq.com",
    "rancher.io",
    "readthedocs.io",
    "readthedocs.org",
    "redis.io",
    "rockylinux.org",
    "rstudio.com",
    "rvm.io",
    "saltproject.io",
    "scala-lang.org",
    "sdkman.io",
    "sentry.io",
    "sigs.k8s.io",
    "slackware.com",
    "sonatype.org",
    "spring.io",
    "starship.rs",
    "tailscale.com",
    "torproject.org",
    "unicode.org",
    "vagrantup.com",
    "virtualbox.org",
    "visualstudio.com",
    "voidlinux.org",
    "volta.sh",
    "vultr.com",
    "wikimedia.org",
    "wireguard.com",
    "xkcd.com",
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
