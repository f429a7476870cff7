// Runs the examples of README.md.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";

// What an example prints, by a word of the example.
const PRINTED = {
  "overlay: true": "0 hello\n\nadded file\n",
  AbortSignal: "stdout hello world\n\n0\nTimeoutError\n",
  verify: "false\nfalse\n",
};

test("the examples of README.md do what they say", async () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const examples = [...readme.matchAll(/```js\n(.*?)```/gs)].map(([, example]) => example);
  assert.equal(examples.length, Object.keys(PRINTED).length);
  const dist = new URL("../dist/index.js", import.meta.url).href;
  for (const example of examples) {
    const [[, expected]] = Object.entries(PRINTED).filter(([word]) => example.includes(word));
    const top = mkdtempSync("/var/tmp/stockade-node-");
    try {
      for (const name of ["home", "project"]) mkdirSync(`${top}/${name}`);
      const options = { cwd: `${top}/project`, env: { ...process.env, HOME: `${top}/home` } };
      const program = example.replaceAll('"stockade"', JSON.stringify(dist));
      const argv = ["--input-type=module", "-e", program];
      const { stdout } = await promisify(execFile)(process.execPath, argv, options);
      assert.equal(stdout, expected);
    } finally {
      rmSync(top, { recursive: true });
    }
  }
});
