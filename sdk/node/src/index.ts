// Runs untrusted commands in a sandbox that the Linux kernel enforces.

import { Connection } from "./connection.js";
import {
  type Bytes, type Change, type Committed, type Entry, type Result, type Settings, type StartOptions,
  type Stat, type Stream, StockadeError, decode, encode, snakeCase,
} from "./types.js";

export * from "./types.js";

interface Waited {
  exit_code: number;
  ending: Result["ending"];
  signal: number | null;
  denials: Result["denials"];
  wall_micros: number;
  cpu_micros: number;
  peak_memory_kib: number;
}

const MAX_WRITE_BYTES = 2 << 20;

/** A command that was started in a sandbox; iterating streams its output. */
export class Command implements AsyncIterable<{ stream: Stream; data: Buffer }> {
  private readonly chunks: { stream: Stream; data: Buffer }[] = [];
  private wake: () => void = () => {};
  private isOver = false;
  private readonly end: Promise<Waited>;

  constructor(
    private readonly connection: Connection,
    private readonly about: { session: string; command: string },
  ) {
    connection.listen(about.command, ({ stream, data }) => {
      this.chunks.push({ stream, data: decode(data) });
      this.wake();
    });
    this.end = connection.call<Waited>("wait", about);
    const finish = () => {
      this.isOver = true;
      connection.forget(about.command);
      this.wake();
    };
    this.end.then(finish, finish);
  }

  async *[Symbol.asyncIterator](): AsyncIterator<{ stream: Stream; data: Buffer }> {
    for (let at = 0; ; ) {
      const chunk = this.chunks[at];
      if (chunk) {
        at += 1;
        yield chunk;
      } else if (this.isOver) {
        return;
      } else {
        await new Promise<void>((resolve) => (this.wake = resolve));
      }
    }
  }

  async write(data: string | Uint8Array): Promise<void> {
    await this.connection.call("stdin", { ...this.about, data: encode(data) });
  }

  /** Ends the command's input. */
  async closeStdin(): Promise<void> {
    await this.connection.call("stdin", { ...this.about, eof: true });
  }

  async signal(signal: number): Promise<void> {
    await this.connection.call("signal", { ...this.about, signal });
  }

  /** Kills the command and everything that it started. */
  async kill(): Promise<void> {
    if (!this.isOver) await this.signal(9);
  }

  async wait(): Promise<Result> {
    const ended = await this.end;
    const all = (...streams: Stream[]) =>
      Buffer.concat(this.chunks.filter(({ stream }) => streams.includes(stream)).map(({ data }) => data));
    return {
      exitCode: ended.exit_code,
      ending: ended.ending,
      signal: ended.signal,
      denials: ended.denials,
      wallMicros: ended.wall_micros,
      cpuMicros: ended.cpu_micros,
      peakMemoryKib: ended.peak_memory_kib,
      stdout: all("stdout", "terminal"),
      stderr: all("stderr"),
    };
  }
}

/** A sandbox that stays open; everything in it ends when it is closed. */
export class Sandbox {
  private constructor(
    private readonly connection: Connection,
    private readonly session: string,
    readonly workspace: string,
    readonly warnings: string[],
  ) {}

  static async open(settings: Settings = {}): Promise<Sandbox> {
    const connection = new Connection();
    try {
      await connection.call("initialize", { protocol: 1, client: "node" });
      const opened = await connection.call<{ session: string; workspace: string; warnings: string[] }>(
        "open",
        snakeCase(settings),
      );
      return new Sandbox(connection, opened.session, opened.workspace, opened.warnings);
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.connection.close();
  }

  /** Starts a command; a string is for a shell. */
  async start(command: string | string[], options: StartOptions = {}): Promise<Command> {
    const argv = typeof command === "string" ? ["sh", "-c", command] : command;
    const started = await this.call<{ command: string }>("exec", { argv, ...snakeCase(options) });
    return new Command(this.connection, { session: this.session, command: started.command });
  }

  /** Runs a command to its end. */
  async run(
    command: string | string[],
    options: Omit<StartOptions, "stdin"> & { input?: string | Uint8Array } = {},
  ): Promise<Result> {
    const { input, ...rest } = options;
    const running = await this.start(command, { ...rest, stdin: input !== undefined });
    if (input !== undefined) {
      try {
        await running.write(input);
        await running.closeStdin();
      } catch (error) {
        // A command may end without reading its input.
        const kinds = ["ended", "no_such_command"];
        if (!(error instanceof StockadeError) || !kinds.includes(error.kind)) throw error;
      }
    }
    return running.wait();
  }

  /** Reads a file as the sandbox sees it. */
  async read(path: string): Promise<Buffer> {
    const parts: Buffer[] = [];
    for (let offset = 0; ; ) {
      const { data, eof } = await this.call<{ data: Bytes; eof: boolean }>("files.read", { path, offset });
      const part = decode(data);
      parts.push(part);
      offset += part.length;
      if (eof) return Buffer.concat(parts);
    }
  }

  /** Writes a file as a command would. */
  async write(path: string, data: string | Uint8Array, { parents = false } = {}): Promise<void> {
    const bytes = Buffer.from(data as Uint8Array);
    for (let at = 0; at === 0 || at < bytes.length; at += MAX_WRITE_BYTES) {
      const part = encode(bytes.subarray(at, at + MAX_WRITE_BYTES));
      await this.call("files.write", { path, data: part, append: at > 0, parents });
    }
  }

  async list(path = "."): Promise<Entry[]> {
    return (await this.call<{ entries: Entry[] }>("files.list", { path })).entries;
  }

  stat(path: string): Promise<Stat> {
    return this.call("files.stat", { path });
  }

  /** What commands changed in the overlay. */
  async diff({ text = false } = {}): Promise<Change[]> {
    return (await this.call<{ changes: Change[] }>("diff", { text })).changes;
  }

  /** Applies changes to the workspace; all of them if there are no paths. */
  commit(paths: string[] = [], conflicts: "refuse" | "ours" | "theirs" = "refuse"): Promise<Committed> {
    return this.call("commit", { paths, conflicts });
  }

  async discard(): Promise<void> {
    await this.call("discard", {});
  }

  /** Adds grants for later commands; none may run meanwhile. */
  async allow(
    grants: { hosts?: string[]; sockets?: string[]; read?: string[]; write?: string[] },
  ): Promise<void> {
    await this.call("allow", grants);
  }

  /** What the sandbox enforces, clause by clause. */
  report(): Promise<Record<string, unknown>> {
    return this.call("report", {});
  }

  private call<T>(method: string, params: object): Promise<T> {
    return this.connection.call(method, { session: this.session, ...params });
  }
}
