// The published package, and the examples of its README.

import assert from "node:assert/strict";
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Daemon } from "./daemon.js";
import { ROOM, run, runNode } from "./run.js";

let daemon: Daemon;

before(async () => {
  daemon = await Daemon.run();
});
after(() => daemon.close());

const examples: Record<string, RegExp> = {
  "example1.js": /^1 message in plan\n$/,
  "example2.js": /^there is no such session\n$/,
  "example3.js": /^plan\n$/,
  "example4.js": /^1n session.created\n$/,
  "example5.js": / pass 1\n/,
};

test("every example of the README is known here", () => {
  const found = readdirSync(join(ROOM, "out/examples/readme")).filter((name) =>
    name.endsWith(".js"),
  );
  assert.deepEqual(found.sort(), Object.keys(examples));
});

for (const [name, expected] of Object.entries(examples)) {
  test(`the README's ${name} runs, and ends by itself`, async () => {
    const { code, output } = await runNode(`examples/readme/${name}`, [], {
      TINE_URL: "",
      TINE_SOCKET: daemon.socket,
      NODE_TEST_CONTEXT: undefined, // example5 is a test, but not of this run
    });
    assert.match(output, expected);
    assert.equal(code, 0);
  });
}

test("examples/agent does a turn", async () => {
  const { code, output } = await runNode("examples/agent.js", [daemon.url]);
  assert.equal(code, 0, output);
  assert.match(
    output,
    /^session: user, assistant, tool\nfork: user, assistant\ncost: 0.0048 USD\n/,
  );
  assert.match(output, /\nevents: session.created, message.appended, .*message.sealed/);
});

test("the package holds what is needed and nothing else, and works where it is installed", async () => {
  const place = join(ROOM, "packed");
  const installed = join(place, "node_modules/@tine-store/client");
  rmSync(place, { recursive: true, force: true });
  mkdirSync(installed, { recursive: true });
  const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", place];
  const packed = await run("npm", pack, { NODE_NO_WARNINGS: "1" });
  assert.equal(packed.code, 0, packed.output);
  const [archive] = readdirSync(place).filter((name) => name.endsWith(".tgz"));
  assert.ok(archive);
  const untar = ["-xzf", join(place, archive), "--strip-components=1", "-C", installed];
  assert.equal((await run("tar", untar)).code, 0);
  assert.deepEqual(readdirSync(installed).sort(), ["LICENSE", "README.md", "dist", "package.json"]);
  for (const peer of ["@bufbuild", "@connectrpc"]) {
    symlinkSync(join(ROOM, "node_modules", peer), join(place, "node_modules", peer));
  }

  writeFileSync(
    join(place, "user.ts"),
    `import { createClient } from "@connectrpc/connect";
import { createTransport, reason } from "@tine-store/client";
import { Tined } from "@tine-store/client/testing";
import { type HealthResponse, StoreService } from "@tine-store/client/v1";
const tine = createClient(StoreService, createTransport(process.argv[2]));
const health: HealthResponse = await tine.health({});
const none: string = reason(undefined);
console.log(health.ready, none === "", typeof Tined.start);
`,
  );
  writeFileSync(join(place, "package.json"), '{ "type": "module" }');
  const typeRoots = [join(ROOM, "node_modules/@types")];
  const options = {
    strict: true,
    module: "nodenext",
    target: "es2022",
    types: ["node"],
    typeRoots,
  };
  const config = { compilerOptions: options, files: ["user.ts"] };
  writeFileSync(join(place, "tsconfig.json"), JSON.stringify(config));
  const compiled = await run(join(ROOM, "node_modules/.bin/tsc"), [], {}, place);
  assert.equal(compiled.code, 0, compiled.output);
  const ran = await run(process.execPath, [join(place, "user.js"), daemon.url]);
  assert.deepEqual(ran, { code: 0, output: "true true function\n" });
});
