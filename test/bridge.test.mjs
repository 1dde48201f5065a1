// Plays the Node bridge against the built binary, with nothing but Node itself:
//
//	HOSTR_DAEMON=path/to/hostr-daemon node --test test/
//
// It spawns the daemon with three pipes and the bridge's own environment
// variables, and checks what the bridge relies on.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";

const binary = process.env.HOSTR_DAEMON;
assert.ok(binary, "set HOSTR_DAEMON to the built hostr-daemon");

const scratch = mkdtempSync(join(tmpdir(), "hostr-bridge-test-"));
after(() => rmSync(scratch, { recursive: true, force: true }));

let states = 0;

// A relay that takes connections and never says a word: whoever asks it waits.
async function silentRelay(t) {
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `ws://127.0.0.1:${server.address().port}`;
}

class Daemon {
  constructor(t, { state = join(scratch, `state-${++states}`), args = [] } = {}) {
    this.state = state;
    this.waiting = new Map();
    this.notices = [];
    this.logs = "";
    this.child = spawn(binary, ["--stdio", "--env", "development", "--state-dir", state, ...args], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, HOSTR_CLI_ALLOW_INSECURE_STORAGE: "1", HOSTR_CLI_STORAGE: "insecure-file" },
    });
    this.child.stdin.on("error", () => {});
    this.child.stderr.on("data", (chunk) => (this.logs += chunk));
    this.exited = once(this.child, "exit").then(([code, signal]) => ({ code, signal }));
    createInterface({ input: this.child.stdout }).on("line", (line) => this.receive(JSON.parse(line)));
    t.after(() => this.child.kill("SIGKILL"));
  }

  receive(frame) {
    const entry = this.waiting.get(String(frame.id));
    if (!entry) return void this.notices.push(frame);
    this.waiting.delete(String(frame.id));
    entry(frame);
  }

  // answer resolves with the frame that answers id, or rejects after ms.
  answer(id, ms = 10_000) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(String(id));
        reject(new Error(`no answer to ${id} within ${ms} ms; stderr:\n${this.logs}`));
      }, ms);
      this.waiting.set(String(id), (frame) => {
        clearTimeout(timer);
        resolve(frame);
      });
    });
  }

  send(line) {
    this.child.stdin.write(line + "\n");
  }

  ask(id, method, params = {}, ms) {
    const answered = this.answer(id, ms);
    this.send(JSON.stringify({ id, method, params, traceId: `trace-${String(id).padStart(6, "0")}` }));
    return answered;
  }

  search(id) {
    return this.ask(id, "callAction", { action: "hostr.listings.search", input: {} }, 30_000);
  }
}

test("answers the readiness probe well within its 2.5 seconds", async (t) => {
  const daemon = new Daemon(t);
  const frame = await daemon.ask("1", "describe", {}, 2_500);
  assert.equal(frame.result.version, 1);
  assert.equal(frame.result.actions.length, 43);
  assert.equal(frame.traceId, "trace-000001");
});

test("echoes ids as they were sent", async (t) => {
  const daemon = new Daemon(t);
  const number = daemon.answer(7);
  daemon.send('{"id":7,"method":"nothing"}');
  assert.strictEqual((await number).id, 7);
  const missing = daemon.answer(null);
  daemon.send('{"method":"nothing"}');
  assert.strictEqual((await missing).id, null);
});

test("survives bad lines and serves the next one", async (t) => {
  const daemon = new Daemon(t);
  const bad = daemon.answer(null);
  daemon.send("this is no JSON");
  assert.equal((await bad).error.code, "unexpected_error");
  const list = daemon.answer(null);
  daemon.send("[1]");
  assert.equal((await list).error.code, "invalid_request");
  daemon.child.stdin.write(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x0a]));
  assert.equal((await daemon.ask("9", "describe")).result.version, 1);
});

test("hides strangers' actions behind auth_required and names unknown ones", async (t) => {
  const daemon = new Daemon(t);
  const trips = await daemon.ask("1", "callAction", { action: "hostr.trips.list" });
  assert.equal(trips.result.ok, false);
  assert.equal(trips.result.errors[0].code, "auth_required");
  assert.equal("data" in trips.result, false);
  const unknown = await daemon.ask("2", "callAction", { action: "hostr.nope", pubkey: "a".repeat(64) });
  assert.equal(unknown.result.errors[0].code, "unknown_action");
  assert.equal(unknown.result.errors[0].details.availableActions.length, 43);
  const lookup = await daemon.ask("3", "callAction", { action: "hostr.profile.lookup", input: {} });
  assert.equal(lookup.result.errors[0].code, "invalid_input");
  assert.equal(lookup.result.errors[0].path, "npub");
});

test("runs many slow requests at once, answers quick ones meanwhile, and cancels", async (t) => {
  const daemon = new Daemon(t, { args: ["--relay", await silentRelay(t)] });
  const slow = Array.from({ length: 24 }, (_, i) => daemon.search(`slow-${i}`));
  assert.equal((await daemon.ask("quick", "describe", {}, 2_500)).result.version, 1);
  for (let i = 0; i < 24; i++) {
    const cancelled = await daemon.ask(`cancel-${i}`, "cancel", { requestId: `slow-${i}` }, 2_500);
    assert.deepEqual(cancelled.result, { cancelled: true, requestId: `slow-${i}` });
  }
  for (const frame of await Promise.all(slow)) assert.equal(frame.error.code, "request_cancelled");
  const late = await daemon.ask("cancel-late", "cancel", { requestId: "slow-0" });
  assert.equal(late.result.cancelled, false);
});

test("takes an upload line of 64 MB", async (t) => {
  const daemon = new Daemon(t);
  const frame = await daemon.ask("big", "uploadImage", { base64: "A".repeat(64 * 1024 * 1024) }, 60_000);
  assert.equal(frame.result.command, "hostr.upload.image");
  assert.equal(frame.result.ok, false);
  assert.equal((await daemon.ask("next", "describe")).result.version, 1);
  assert.ok(daemon.logs.length < 100_000, "the upload must not be copied into the log");
});

test("answers what is under way at the end of input, then exits 0", async (t) => {
  const daemon = new Daemon(t);
  const answered = daemon.ask("1", "describe");
  daemon.child.stdin.end();
  assert.equal((await answered).result.version, 1);
  assert.deepEqual(await daemon.exited, { code: 0, signal: null });
});

test("is gone at once on SIGTERM, whatever is under way", async (t) => {
  const daemon = new Daemon(t, { args: ["--relay", await silentRelay(t)] });
  await daemon.ask("1", "describe");
  daemon.search("slow").catch(() => {});
  await daemon.ask("2", "describe");
  const begin = performance.now();
  daemon.child.kill("SIGTERM");
  await daemon.exited;
  assert.ok(performance.now() - begin < 1_000, "the bridge waits one second at most");
});

test("a restart on the same state directory serves at once, even while the old one drains", async (t) => {
  const relay = await silentRelay(t);
  const old = new Daemon(t, { args: ["--relay", relay] });
  await old.ask("1", "describe");
  const waiting = old.search("slow");
  await old.ask("2", "describe"); // the search has been read by now
  old.child.stdin.end();
  const next = new Daemon(t, { state: old.state, args: ["--relay", relay] });
  assert.equal((await next.ask("1", "describe", {}, 2_500)).result.version, 1);
  assert.equal((await next.ask("2", "visibleActions", {}, 2_500)).result.visibleActionIds.length, 29);
  const locked = await next.ask("3", "callAction", { action: "hostr.session.status" }, 10_000);
  assert.equal(locked.result.errors[0].code, "unexpected_error");
  assert.equal(locked.result.errors[0].retryable, true);
  await waiting;
  await old.exited;
  const served = await next.ask("4", "callAction", { action: "hostr.session.status" }, 10_000);
  assert.equal(served.result.ok, true);
});

test("an unreadable state directory is answered, not died of", async (t) => {
  const daemon = new Daemon(t, { state: join(binary, "not-a-directory") });
  const described = await daemon.ask("1", "describe");
  assert.equal(described.error.code, "unexpected_error");
  const called = await daemon.ask("2", "callAction", { action: "hostr.session.status" });
  assert.equal(called.result.ok, false);
  assert.equal(called.result.errors[0].code, "unexpected_error");
  daemon.child.stdin.end();
  assert.deepEqual(await daemon.exited, { code: 0, signal: null });
});

test("logs one JSON line per event and no secret", async (t) => {
  const daemon = new Daemon(t);
  const canary = "nsec1" + "q".repeat(58);
  await daemon.ask("1", "completeOAuthNsec", { requestId: "login-1", nsec: canary });
  await daemon.ask("2", "callAction", { action: "hostr.profile.lookup", input: { npub: canary } });
  daemon.child.stdin.end();
  await daemon.exited;
  for (const line of daemon.logs.split("\n").filter(Boolean)) assert.ok(JSON.parse(line).time, line);
  assert.equal(daemon.logs.includes("q".repeat(58)), false);
});
