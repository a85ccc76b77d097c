/** Files of a sandbox. A path is absolute inside, or lies below /workspace. */
import { pathOf } from "./client.js";
import type { Body, Client, Response } from "./client.js";
import { InvalidArgumentError, NotFoundError, errorOf } from "./errors.js";
import { entryOf } from "./models.js";
import type { EntryInfo, FilesystemEvent } from "./models.js";

export type Content = string | Uint8Array | Blob | AsyncIterable<Uint8Array>;

async function bodyOf(data: Content): Promise<Body> {
  return data instanceof Blob ? new Uint8Array(await data.arrayBuffer()) : data;
}

export class Files {
  readonly #client: Client;
  readonly #place: string;

  constructor(client: Client, session: string) {
    this.#client = client;
    this.#place = pathOf("v1", "sessions", session);
  }

  #file(path: string): string {
    return `${this.#place}/files${pathOf(path)}`;
  }

  #call<T>(what: string, json: Record<string, unknown>): Promise<T> {
    return this.#client.call<T>("POST", `${this.#place}/files:${what}`, json);
  }

  /** Text; bytes that are not UTF-8 are replaced. */
  async read(path: string, options?: { format: "text" }): Promise<string>;
  async read(path: string, options: { format: "bytes" }): Promise<Uint8Array>;
  async read(path: string, options: { format: "stream" }): Promise<AsyncIterable<Uint8Array>>;
  async read(path: string, options: { format: "text" | "bytes" | "stream" } = { format: "text" }): Promise<string | Uint8Array | AsyncIterable<Uint8Array>> {
    if (options.format === "stream") return (await this.#client.open("GET", this.#file(path))).pieces();
    const { body } = await this.#client.request("GET", this.#file(path));
    return options.format === "bytes" ? body : body.toString("utf8");
  }

  /** Writes a whole file: it replaces an old one when the last byte has arrived, or not at all. */
  async write(path: string, data: Content, options: { mode?: number; overwrite?: boolean; signal?: AbortSignal } = {}): Promise<EntryInfo> {
    const query = options.mode === undefined ? undefined : { mode: options.mode.toString(8) };
    const headers = options.overwrite === false ? { "if-none-match": "*" } : undefined;
    const { body } = await this.#client.request("PUT", this.#file(path), { query, headers, body: await bodyOf(data), signal: options.signal });
    return entryOf({ type: "file", ...(JSON.parse(body.toString()) as object) });
  }

  async writeFiles(files: Iterable<{ path: string; data: Content }>): Promise<EntryInfo[]> {
    const written: EntryInfo[] = [];
    for (const { path, data } of files) written.push(await this.write(path, data));
    return written;
  }

  /** Lists a folder, sorted by path. Without `limit`, more than 10,000 entries are an error. */
  async list(path = "/workspace", options: { depth?: number; limit?: number } = {}): Promise<EntryInfo[]> {
    const { limit } = options;
    const { entries, truncated } = await this.#call<{ entries: unknown[]; truncated: boolean }>("list", {
      path, depth: options.depth ?? 1, ...(limit === undefined ? {} : { limit }),
    });
    if (truncated && limit === undefined) throw new InvalidArgumentError(`${path} has more than ${entries.length} entries; list less, or give limit`);
    return entries.map((row) => entryOf(row, path));
  }

  async getInfo(path: string): Promise<EntryInfo> {
    return entryOf(await this.#call("stat", { path }));
  }

  async exists(path: string): Promise<boolean> {
    try {
      await this.#call("stat", { path });
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  /** Removes a file, or a folder with its contents. */
  async remove(path: string): Promise<void> {
    await this.#client.request("DELETE", this.#file(path));
  }

  async rename(oldPath: string, newPath: string): Promise<EntryInfo> {
    await this.#call("move", { from: oldPath, to: newPath });
    return await this.getInfo(newPath);
  }

  /** False if it existed already. */
  async makeDir(path: string): Promise<boolean> {
    if (await this.exists(path)) return false;
    await this.#call("mkdir", { path });
    return true;
  }

  /** A folder as a tar, in pieces. */
  async downloadDir(path = "/workspace"): Promise<AsyncIterable<Uint8Array>> {
    return (await this.#client.open("GET", `${this.#place}/files:tar`, { query: { path } })).pieces();
  }

  /** Unpacks a tar into a folder. Returns skipped members: not a file, folder or link, or outside the folder. */
  async uploadDir(data: Content, path = "/workspace"): Promise<string[]> {
    const { body } = await this.#client.request("PUT", `${this.#place}/files:tar`, { query: { path }, body: await bodyOf(data) });
    return (JSON.parse(body.toString()) as { skipped: string[] }).skipped;
  }

  /** An iterator of changes below a folder; stop() it when it is no longer needed. */
  async watchDir(path: string, options: { recursive?: boolean; signal?: AbortSignal } = {}): Promise<Watch> {
    const query = { path, ...(options.recursive ? { recursive: "1" } : {}) };
    return new Watch(await this.#client.open("GET", `${this.#place}/files:watch`, { query, signal: options.signal }));
  }

  /** A URL (a path, if the server listens on a Unix socket) that needs no key, for this one file and method. */
  async sign(path: string, options: { method?: "GET" | "PUT"; expires?: number; mode?: number } = {}): Promise<string> {
    const { url } = await this.#call<{ url: string }>("sign", {
      path, method: options.method ?? "GET", expires_seconds: options.expires ?? 3600, ...(options.mode === undefined ? {} : { mode: options.mode.toString(8) }),
    });
    const endpoint = await this.#client.endpoint();
    return endpoint.socket !== undefined || url.includes("://") ? url : endpoint.url(url);
  }
}

export class Watch implements AsyncIterable<FilesystemEvent> {
  readonly #response: Response;

  constructor(response: Response) {
    this.#response = response;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<FilesystemEvent> {
    for await (const { kind, data } of this.#response.events()) {
      if (kind === "error") throw errorOf(200, data); // the folder is gone, or the sandbox has ended
      yield { name: typeof data["path"] === "string" ? data["path"] : "", type: kind };
    }
  }

  stop(): void {
    this.#response.close();
  }
}
