//! Tokens that can be told by their prefix.
//!
//! One row per format: the prefix, the alphabet and length of what follows, and what it is. The
//! formats are published by their issuers; where one carries a checksum it is verified.

use super::shape::Alphabet::{self, Alnum, Base64, Base64Url, Dotted, Hex, Lower, Upper, Uuid};
use crate::finding::ThreatLevel::{self, Critical, High, Low};

/// One token format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) prefix: &'static str,
    pub(super) rule: &'static str,
    pub(super) name: &'static str,
    pub(super) alphabet: Alphabet,
    /// Fewest and most bytes after the prefix.
    pub(super) length: (usize, usize),
    pub(super) level: ThreatLevel,
    pub(super) check: Check,
}

/// What else must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The last six characters are a CRC-32 in base62: certain if they hold, likely if not.
    Crc,
    /// Nothing but prefix, alphabet and length.
    None,
    /// At least one digit and enough entropy: the prefix is short or a word.
    Random,
}

const fn token(
    prefix: &'static str,
    rule: &'static str,
    name: &'static str,
    alphabet: Alphabet,
    length: (usize, usize),
) -> Token {
    Token { prefix, rule, name, alphabet, length, level: Critical, check: Check::None }
}

impl Token {
    const fn level(mut self, level: ThreatLevel) -> Self {
        self.level = level;
        self
    }

    const fn check(mut self, check: Check) -> Self {
        self.check = check;
        self
    }

    const fn random(self) -> Self {
        self.check(Check::Random)
    }
}

/// Number of formats.
pub(super) const COUNT: usize = TOKENS.len();

/// Every format, by family.
pub(super) const TOKENS: &[Token] = &[
    // Clouds.
    token("AKIA", "secret.aws-key", "AWS access key", Upper, (16, 16)),
    token("ASIA", "secret.aws-key", "AWS access key", Upper, (16, 16)),
    token("ABIA", "secret.aws-key", "AWS access key", Upper, (16, 16)),
    token("ACCA", "secret.aws-key", "AWS access key", Upper, (16, 16)),
    token("A3T", "secret.aws-key", "AWS access key", Upper, (17, 17)).random(),
    token("ABSK", "secret.aws-bedrock", "AWS Bedrock key", Base64, (100, 300)),
    token("amzn.mws.", "secret.aws-mws", "Amazon MWS token", Uuid, (36, 36)),
    token("da2-", "secret.aws-appsync", "AWS AppSync key", Lower, (26, 26)).random(),
    token("AIza", "secret.google-key", "Google API key", Base64Url, (35, 35)),
    token("GOCSPX-", "secret.google-oauth", "Google OAuth secret", Base64Url, (28, 28)),
    token("ya29.", "secret.google-oauth", "Google OAuth token", Dotted, (20, 2048)),
    token("1//0", "secret.google-oauth", "Google refresh token", Base64Url, (60, 512)),
    token("LTAI", "secret.alibaba", "Alibaba Cloud key", Alnum, (12, 26)).random(),
    token("AKID", "secret.tencent", "Tencent Cloud key", Alnum, (32, 32)).random(),
    token("AQVN", "secret.yandex", "Yandex Cloud key", Base64Url, (35, 38)),
    token("dop_v1_", "secret.digitalocean", "DigitalOcean token", Hex, (64, 64)),
    token("doo_v1_", "secret.digitalocean", "DigitalOcean token", Hex, (64, 64)),
    token("dor_v1_", "secret.digitalocean", "DigitalOcean token", Hex, (64, 64)),
    token("HRKU-", "secret.heroku", "Heroku key", Base64Url, (36, 70)),
    token("fo1_", "secret.fly", "Fly.io token", Base64Url, (40, 64)),
    token("fm2_", "secret.fly", "Fly.io token", Base64, (100, 2048)),
    token("nfp_", "secret.netlify", "Netlify token", Alnum, (36, 40)),
    token("rnd_", "secret.render", "Render key", Alnum, (28, 40)).random(),
    token("vercel_", "secret.vercel", "Vercel token", Base64Url, (24, 60)).random(),
    token("sbp_", "secret.supabase", "Supabase token", Hex, (40, 40)),
    token("sb_secret_", "secret.supabase", "Supabase key", Base64Url, (30, 60)),
    token("pscale_tkn_", "secret.planetscale", "PlanetScale token", Dotted, (32, 64)),
    token("pscale_pw_", "secret.planetscale", "PlanetScale password", Dotted, (32, 64)),
    token("pscale_oauth_", "secret.planetscale", "PlanetScale token", Dotted, (32, 64)),
    token("napi_", "secret.neon", "Neon key", Alnum, (48, 80)),
    token("dapi", "secret.databricks", "Databricks token", Hex, (32, 32)),
    token("tskey-", "secret.tailscale", "Tailscale key", Base64Url, (20, 90)).random(),
    token("SCW", "secret.scaleway", "Scaleway key", Upper, (17, 17)).random(),
    token("akab-", "secret.akamai", "Akamai token", Base64Url, (32, 40)).random(),
    token("t1.", "secret.yandex", "Yandex IAM token", Dotted, (150, 400)),
    // Secret stores and infrastructure.
    token("hvs.", "secret.vault", "Vault token", Base64Url, (24, 200)),
    token("hvb.", "secret.vault", "Vault batch token", Base64Url, (60, 400)),
    token("hvr.", "secret.vault", "Vault recovery token", Base64Url, (24, 200)),
    token("dp.pt.", "secret.doppler", "Doppler token", Alnum, (40, 44)),
    token("dp.ct.", "secret.doppler", "Doppler token", Alnum, (40, 44)),
    token("dp.st.", "secret.doppler", "Doppler token", Dotted, (40, 80)),
    token("dp.sa.", "secret.doppler", "Doppler token", Alnum, (40, 44)),
    token("dp.scim.", "secret.doppler", "Doppler token", Alnum, (40, 44)),
    token("dp.audit.", "secret.doppler", "Doppler token", Alnum, (40, 44)),
    token("pul-", "secret.pulumi", "Pulumi token", Hex, (40, 40)),
    token("ops_eyJ", "secret.1password", "1Password service account", Base64Url, (200, 2048)),
    token("A3-", "secret.1password", "1Password secret key", Base64Url, (34, 42)).random(),
    token("AGE-SECRET-KEY-1", "secret.age", "age private key", Upper, (58, 58)),
    token("dt0c01.", "secret.dynatrace", "Dynatrace token", Dotted, (89, 89)),
    token("glc_", "secret.grafana", "Grafana Cloud token", Base64, (32, 400)),
    token("glsa_", "secret.grafana", "Grafana service account", Base64Url, (41, 41)),
    token("sntrys_", "secret.sentry", "Sentry token", Base64, (40, 400)),
    token("sntryu_", "secret.sentry", "Sentry token", Hex, (64, 64)),
    token("hcaik_", "secret.honeycomb", "Honeycomb key", Alnum, (58, 64)),
    token("NRAK-", "secret.newrelic", "New Relic key", Upper, (27, 27)),
    token("NRAA-", "secret.newrelic", "New Relic key", Hex, (27, 27)),
    token("NRII-", "secret.newrelic", "New Relic key", Base64Url, (32, 32)),
    token("NRIQ-", "secret.newrelic", "New Relic key", Base64Url, (32, 32)),
    token("NRRA-", "secret.newrelic", "New Relic key", Hex, (42, 42)),
    token("NRJS-", "secret.newrelic", "New Relic browser key", Lower, (19, 19)),
    token("px-api-", "secret.newrelic", "Pixie key", Uuid, (36, 36)),
    token("px-dep-", "secret.newrelic", "Pixie key", Uuid, (36, 36)),
    token("squ_", "secret.sonar", "SonarQube token", Hex, (40, 40)),
    token("sqp_", "secret.sonar", "SonarQube token", Hex, (40, 40)),
    token("sqa_", "secret.sonar", "SonarQube token", Hex, (40, 40)),
    token("CCIPAT_", "secret.circleci", "CircleCI token", Base64Url, (40, 80)),
    token("CCIPRJ_", "secret.circleci", "CircleCI token", Base64Url, (40, 80)),
    token("bkua_", "secret.buildkite", "Buildkite token", Lower, (40, 40)),
    token("pnu_", "secret.prefect", "Prefect key", Lower, (36, 36)),
    token("hawk.", "secret.stackhawk", "StackHawk key", Dotted, (41, 41)).random(),
    token("odt_", "secret.dependency-track", "Dependency-Track key", Alnum, (32, 32)).random(),
    token("CLOJARS_", "secret.clojars", "Clojars token", Hex, (60, 60)),
    token("jfrt@", "secret.artifactory", "Artifactory token", Dotted, (40, 200)),
    token("AKCp", "secret.artifactory", "Artifactory key", Alnum, (50, 80)),
    token("cmVmdGtuOjAx", "secret.artifactory", "Artifactory reference token", Alnum, (48, 64)),
    token("infracost_", "secret.infracost", "Infracost key", Alnum, (24, 40)).random(),
    // Forges.
    token("ghp_", "secret.github-token", "GitHub token", Alnum, (36, 36)).check(Check::Crc),
    token("gho_", "secret.github-token", "GitHub token", Alnum, (36, 36)).check(Check::Crc),
    token("ghu_", "secret.github-token", "GitHub token", Alnum, (36, 36)).check(Check::Crc),
    token("ghs_", "secret.github-token", "GitHub token", Alnum, (36, 36)).check(Check::Crc),
    token("ghr_", "secret.github-token", "GitHub refresh token", Alnum, (36, 76)).check(Check::Crc),
    token("github_pat_", "secret.github-token", "GitHub token", Base64Url, (82, 82)),
    token("glpat-", "secret.gitlab-token", "GitLab token", Dotted, (20, 64)),
    token("gldt-", "secret.gitlab-token", "GitLab deploy token", Base64Url, (20, 20)),
    token("glrt-", "secret.gitlab-token", "GitLab runner token", Dotted, (20, 64)),
    token("glcbt-", "secret.gitlab-token", "GitLab job token", Base64Url, (20, 40)),
    token("glptt-", "secret.gitlab-token", "GitLab trigger token", Base64Url, (40, 40)),
    token("glft-", "secret.gitlab-token", "GitLab feed token", Base64Url, (20, 64)),
    token("glimt-", "secret.gitlab-token", "GitLab mail token", Base64Url, (25, 25)),
    token("glagent-", "secret.gitlab-token", "GitLab agent token", Base64Url, (50, 64)),
    token("glsoat-", "secret.gitlab-token", "GitLab SCIM token", Base64Url, (20, 50)),
    token("gloas-", "secret.gitlab-token", "GitLab OAuth secret", Base64Url, (64, 64)),
    token("glffct-", "secret.gitlab-token", "GitLab feature flag token", Base64Url, (20, 64)),
    token("GR1348941", "secret.gitlab-token", "GitLab runner token", Base64Url, (20, 50)),
    token("ATBB", "secret.bitbucket", "Bitbucket password", Alnum, (32, 32)).random(),
    token("ATATT3xFfGF0", "secret.atlassian", "Atlassian token", Base64Url, (160, 250)),
    token("ATCTT3xFfGN0", "secret.atlassian", "Atlassian token", Base64Url, (160, 250)),
    token("sgp_", "secret.sourcegraph", "Sourcegraph token", Base64Url, (40, 68)).random(),
    token("slk_", "secret.sourcegraph", "Sourcegraph token", Hex, (64, 64)),
    // Package registries.
    token("npm_", "secret.npm-token", "npm token", Alnum, (36, 36)).check(Check::Crc),
    token("pypi-AgE", "secret.pypi-token", "PyPI token", Base64Url, (80, 300)),
    token("rubygems_", "secret.rubygems", "RubyGems key", Hex, (48, 48)),
    token("cio", "secret.crates-io", "crates.io token", Alnum, (32, 32)).random(),
    token("oy2", "secret.nuget", "NuGet key", Lower, (43, 43)).random(),
    token("dckr_pat_", "secret.docker", "Docker Hub token", Base64Url, (27, 27)),
    token("dckr_oat_", "secret.docker", "Docker Hub token", Base64Url, (27, 32)),
    // Chat, mail, telephony.
    token("xoxb-", "secret.slack-token", "Slack token", Base64Url, (20, 120)),
    token("xoxp-", "secret.slack-token", "Slack token", Base64Url, (20, 120)),
    token("xoxa-", "secret.slack-token", "Slack token", Base64Url, (20, 120)),
    token("xoxr-", "secret.slack-token", "Slack token", Base64Url, (20, 200)),
    token("xoxs-", "secret.slack-token", "Slack token", Base64Url, (20, 120)),
    token("xoxo-", "secret.slack-token", "Slack token", Base64Url, (20, 120)),
    token("xoxc-", "secret.slack-token", "Slack token", Base64Url, (20, 200)),
    token("xoxd-", "secret.slack-token", "Slack cookie", Base64, (20, 300)),
    token("xoxe", "secret.slack-token", "Slack token", Dotted, (40, 300)),
    token("xapp-", "secret.slack-token", "Slack app token", Base64, (20, 150)),
    token("xapp-1-", "secret.slack-token", "Slack app token", Base64Url, (20, 150)),
    token("syt_", "secret.matrix", "Matrix token", Base64Url, (20, 120)).random(),
    token("SG.", "secret.sendgrid", "SendGrid key", Dotted, (64, 68)),
    token("key-", "secret.mailgun", "Mailgun key", Hex, (32, 32)),
    token("xkeysib-", "secret.brevo", "Brevo key", Base64Url, (80, 82)),
    token("xsmtpsib-", "secret.brevo", "Brevo key", Base64Url, (80, 82)),
    token("re_", "secret.resend", "Resend key", Base64Url, (30, 40)).random(),
    token("pat-na1-", "secret.hubspot", "HubSpot token", Uuid, (36, 36)),
    token("pat-eu1-", "secret.hubspot", "HubSpot token", Uuid, (36, 36)),
    token("live_", "secret.twitch", "stream or payment key", Base64Url, (35, 60)).random(),
    // Payment.
    token("sk_live_", "secret.stripe", "Stripe secret key", Alnum, (16, 120)),
    token("rk_live_", "secret.stripe", "Stripe restricted key", Alnum, (16, 120)),
    token("sk_test_", "secret.stripe-test", "Stripe test key", Alnum, (16, 120)).level(Low),
    token("rk_test_", "secret.stripe-test", "Stripe test key", Alnum, (16, 120)).level(Low),
    token("whsec_", "secret.stripe", "webhook signing secret", Base64, (24, 80)).random(),
    token("sq0atp-", "secret.square", "Square token", Base64Url, (22, 22)),
    token("sq0csp-", "secret.square", "Square secret", Base64Url, (43, 43)),
    token("sq0atb-", "secret.square", "Square sandbox token", Base64Url, (22, 22)).level(Low),
    token("EAAA", "secret.square", "Square token", Base64Url, (60, 60)).random(),
    token("EAACEdEose0cBA", "secret.facebook", "Facebook token", Alnum, (20, 250)),
    token("shpat_", "secret.shopify", "Shopify token", Hex, (32, 32)),
    token("shpca_", "secret.shopify", "Shopify token", Hex, (32, 32)),
    token("shppa_", "secret.shopify", "Shopify token", Hex, (32, 32)),
    token("shpss_", "secret.shopify", "Shopify secret", Hex, (32, 32)),
    token("shptka_", "secret.shopify", "Shopify token", Hex, (32, 32)),
    token("rzp_live_", "secret.razorpay", "Razorpay key", Alnum, (14, 24)),
    token("access-production-", "secret.plaid", "Plaid token", Uuid, (36, 36)),
    token("access_token$production$", "secret.braintree", "Braintree token", Dotted, (16, 60)),
    token("FLWSECK-", "secret.flutterwave", "Flutterwave key", Base64Url, (32, 50)),
    token("EZAK", "secret.easypost", "EasyPost key", Alnum, (54, 54)),
    token("duffel_live_", "secret.duffel", "Duffel token", Base64Url, (43, 43)),
    token("shippo_live_", "secret.shippo", "Shippo token", Hex, (40, 40)),
    // Model providers.
    token("sk-ant-", "secret.anthropic", "Anthropic key", Base64Url, (60, 130)),
    token("sk-proj-", "secret.openai", "OpenAI key", Base64Url, (40, 180)),
    token("sk-svcacct-", "secret.openai", "OpenAI key", Base64Url, (40, 180)),
    token("sk-admin-", "secret.openai", "OpenAI key", Base64Url, (40, 180)),
    token("sk-or-v1-", "secret.openrouter", "OpenRouter key", Hex, (64, 64)),
    token("sk-", "secret.openai", "OpenAI-style key", Alnum, (32, 64)).random(),
    token("sk_", "secret.elevenlabs", "ElevenLabs key", Hex, (48, 48)),
    token("hf_", "secret.huggingface", "Hugging Face token", Alnum, (34, 37)).random(),
    token("api_org_", "secret.huggingface", "Hugging Face token", Alnum, (34, 34)),
    token("r8_", "secret.replicate", "Replicate token", Base64Url, (37, 37)).random(),
    token("gsk_", "secret.groq", "Groq key", Alnum, (52, 52)),
    token("xai-", "secret.xai", "xAI key", Alnum, (80, 80)),
    token("pplx-", "secret.perplexity", "Perplexity key", Alnum, (48, 56)),
    token("tgp_v1_", "secret.together", "Together key", Base64Url, (43, 43)),
    token("lsv2_", "secret.langsmith", "LangSmith key", Base64Url, (45, 50)),
    token("pcsk_", "secret.pinecone", "Pinecone key", Base64Url, (60, 80)),
    token("tvly-", "secret.tavily", "Tavily key", Base64Url, (30, 48)).random(),
    token("fc-", "secret.firecrawl", "Firecrawl key", Hex, (32, 32)),
    token("jina_", "secret.jina", "Jina key", Alnum, (60, 60)),
    token("nvapi-", "secret.nvidia", "NVIDIA key", Base64Url, (60, 70)),
    token("csk-", "secret.cerebras", "Cerebras key", Lower, (48, 48)),
    token("KGAT_", "secret.kaggle", "Kaggle token", Hex, (32, 32)),
    token("fw_", "secret.fireworks", "Fireworks key", Alnum, (22, 26)).random(),
    // Productivity and others.
    token("secret_", "secret.notion", "Notion token", Alnum, (43, 43)).random(),
    token("ntn_", "secret.notion", "Notion token", Alnum, (45, 50)).random(),
    token("lin_api_", "secret.linear", "Linear key", Alnum, (40, 40)),
    token("lin_oauth_", "secret.linear", "Linear token", Hex, (64, 64)),
    token("figd_", "secret.figma", "Figma token", Base64Url, (40, 48)),
    token("PMAK-", "secret.postman", "Postman key", Base64Url, (59, 59)),
    token("CFPAT-", "secret.contentful", "Contentful token", Base64Url, (43, 43)),
    token("sk.eyJ", "secret.mapbox", "Mapbox secret token", Dotted, (60, 200)),
    token("tk.eyJ", "secret.mapbox", "Mapbox temporary token", Dotted, (60, 200)),
    token("pk.eyJ", "secret.mapbox-public", "Mapbox public token", Dotted, (60, 200)).level(Low),
    token("sl.", "secret.dropbox", "Dropbox token", Base64Url, (100, 1400)).random(),
    token("aio_", "secret.adafruit", "Adafruit key", Alnum, (28, 28)).random(),
    token("p8e-", "secret.adobe", "Adobe secret", Base64Url, (32, 32)).random(),
    token("tfp_", "secret.typeform", "Typeform token", Dotted, (59, 59)),
    token("fio-u-", "secret.frameio", "Frame.io token", Base64Url, (64, 64)),
    token("rdme_", "secret.readme", "ReadMe key", Lower, (70, 70)),
    token("tk-us-", "secret.scalingo", "Scalingo token", Base64Url, (48, 48)),
    token("oa2-client-id_", "secret.blynk", "Blynk client", Base64Url, (32, 32)).level(High),
    token("alcht_", "secret.alchemy", "Alchemy token", Alnum, (30, 30)),
    token("zpka_", "secret.zuplo", "Zuplo key", Base64Url, (40, 80)),
    token("ddp_", "secret.datadog", "Datadog key", Alnum, (32, 40)).random(),
    token("AAAAAAAAAAAAAAAAAAAAA", "secret.twitter", "X bearer token", Base64, (60, 200)).random(),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_sound() {
        for token in TOKENS {
            assert!(token.prefix.len() >= 3, "{}", token.prefix);
            assert!(token.length.0 <= token.length.1, "{}", token.prefix);
            assert!(token.rule.starts_with("secret."), "{}", token.rule);
        }
    }
}
