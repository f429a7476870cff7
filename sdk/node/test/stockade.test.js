// The package with the real program, which STOCKADE_BIN names.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import { Sandbox, StockadeError } from "../dist/index.js";

// Not below /tmp, which is private inside.
const top = mkdtempSync("/var/tmp/stockade-node-");
after(() => rmSync(top, { recursive: true }));
for (const name of ["home", "outside", "project"]) mkdirSync(join(top, name));
process.env.HOME = join(top, "home");
const workspace = join(top, "project");

async function withBox(settings, use) {
  const box = await Sandbox.open({ workspace, ...settings });
  try {
    await use(box);
  } finally {
    await box.close();
  }
}

const kind = (name) => (error) => error instanceof StockadeError && error.kind === name;

test("commands run and stream", () =>
  withBox({}, async (box) => {
    const result = await box.run("cat; echo err >&2; exit 3", { input: "in" });
    assert.deepEqual([result.exitCode, String(result.stdout), String(result.stderr)], [3, "in", "err\n"]);
    assert.equal((await box.run("sleep 100", { timeoutMs: 50 })).ending, "timed_out");
    await assert.rejects(box.run(["no-such-program"]), kind("not_started"));
    const command = await box.start("echo one; read word; echo $word; sleep 1000", { stdin: true });
    const seen = [];
    for await (const { data } of command) {
      seen.push(String(data));
      if (seen.length === 1) await command.write("two\n");
      if (seen.length === 2) await command.kill();
    }
    assert.deepEqual(seen, ["one\n", "two\n"]);
    assert.equal((await command.wait()).ending, "killed");
    const sizes = Array.from({ length: 4 }, () => box.run("head -c 1000000 /dev/zero"));
    assert.deepEqual((await Promise.all(sizes)).map(({ stdout }) => stdout.length), Array(4).fill(1000000));
  }));

test("files are those of the sandbox and denials are objects", () =>
  withBox({}, async (box) => {
    const data = Buffer.alloc(5_000_000, Uint8Array.from({ length: 256 }, (_, at) => at));
    await box.write("sub/raw", data, { parents: true });
    assert.ok(data.equals(await box.read("sub/raw")));
    assert.deepEqual(await box.list("sub"), [{ name: "raw", kind: "file" }]);
    const outside = join(top, "outside");
    await assert.rejects(box.write(join(outside, "file"), "x"), kind("denied"));
    const refused = await box.run(`echo x > ${outside}/file`);
    assert.equal(refused.denials[0].grant, `--write ${outside}`);
    await box.allow({ write: [outside] });
    assert.equal((await box.run(`echo x > ${outside}/file`)).exitCode, 0);
  }));

test("changes are committed by path and discarded", async () => {
  await withBox({}, (box) => box.run("rm -rf sub"));
  await withBox({ overlay: true }, async (box) => {
    await box.run("echo a > one; echo b > two");
    assert.deepEqual((await box.diff()).map(({ path }) => path), ["one", "two"]);
    assert.equal((await box.commit(["one"])).written, 1);
    await box.discard();
    assert.deepEqual(await box.diff(), []);
  });
  assert.deepEqual(readdirSync(workspace), ["one"]);
});

test("a bad policy and a dead server are errors", async () => {
  await assert.rejects(Sandbox.open({ workspace, limits: ["nonsense"] }), kind("policy"));
  const box = await Sandbox.open({ workspace });
  const command = await box.start("sleep 1000");
  box.connection.server.kill("SIGKILL");
  await assert.rejects(command.wait(), kind("ended"));
  await assert.rejects(box.run("true"), kind("ended"));
  await box.close();
});
