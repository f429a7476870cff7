// Snapshots, forks and grants at run time, where the program has them.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";

import { Sandbox, StockadeError } from "../dist/index.js";

const schema = execFileSync(process.env.STOCKADE_BIN ?? "stockade", ["serve", "--schema"], { encoding: "utf8" });
const skip = JSON.stringify(JSON.parse(schema).methods).includes('"fork"')
  ? false
  : "the protocol of this program has no `fork`";

// Not below /tmp, which is private inside.
const top = mkdtempSync("/var/tmp/stockade-node-");
after(() => rmSync(top, { recursive: true }));
for (const name of ["home", "project"]) mkdirSync(join(top, name));
process.env.HOME = join(top, "home");
const workspace = join(top, "project");

const kind = (name) => (error) => error instanceof StockadeError && error.kind === name;

test("an overlay returns to a snapshot", { skip }, async () => {
  const box = await Sandbox.open({ workspace, overlay: true });
  try {
    await box.write("file", "first");
    await box.snapshot("before");
    await box.write("file", "second");
    assert.deepEqual(await box.snapshots(), ["before"]);
    await box.restore("before");
    assert.equal(String(await box.read("file")), "first");
    await box.removeSnapshot("before");
    await assert.rejects(box.restore("before"), kind("no_such_snapshot"));
  } finally {
    await box.close();
  }
});

test("forks are apart and close in any order", { skip }, async () => {
  const box = await Sandbox.open({ workspace, overlay: true });
  const { server } = box.connection;
  await box.write("file", "common");
  const fork = await box.fork();
  try {
    await fork.write("file", "changed");
    assert.equal(String(await box.read("file")), "common");
  } finally {
    await box.close();
  }
  await assert.rejects(box.run("true"), kind("ended"));
  assert.equal(String((await fork.run("cat file")).stdout), "changed");
  await fork.close();
  assert.ok(server.exitCode !== null || server.signalCode !== null);
});

test("grants for hosts hold at once", { skip }, async () => {
  const box = await Sandbox.open({ workspace, noUserFiles: true, allow: ["one.invalid:80"] });
  try {
    const command = await box.start("sleep 1000");
    assert.equal((await box.allow({ hosts: ["two.invalid:80"] })).rebuilt, false);
    assert.equal(command.running, true);
    await command.kill();
    await command.wait();
  } finally {
    await box.close();
  }
});
