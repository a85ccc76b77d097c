/** Parses server-sent events from the pieces of a body. */
import { ProtocolError } from "./errors.js";

export interface ServerEvent {
  kind: string;
  id: string | undefined;
  data: Record<string, unknown>;
}

const EVENT_MAX = 64 * 1024 * 1024; // characters of one event: a result with all its outputs

/** Splits lines only at the line ends of the format, since JSON may contain U+2028 and others. */
export class EventReader {
  #rest = "";
  #kind = "";
  #id: string | undefined;
  #data: string[] = [];
  #size = 0;
  readonly #decoder = new TextDecoder();

  *feed(piece: Uint8Array): Generator<ServerEvent> {
    const text = this.#decoder.decode(piece, { stream: true });
    this.#rest += text;
    if (this.#size + this.#rest.length > EVENT_MAX) throw new ProtocolError(`an event is longer than ${EVENT_MAX} characters`);
    if (!text.includes("\n")) return; // a long line is parsed once, when its end has arrived
    const lines = this.#rest.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#size += line.length;
      const event = this.#take(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (event) yield event;
    }
  }

  #take(line: string): ServerEvent | undefined {
    if (line === "") return this.#finish();
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
    if (name === "event") this.#kind = value;
    else if (name === "id") this.#id = value;
    else if (name === "data") this.#data.push(value);
    return undefined;
  }

  #finish(): ServerEvent | undefined {
    const [kind, id, data] = [this.#kind, this.#id, this.#data];
    [this.#kind, this.#data, this.#size] = ["", [], 0];
    if (data.length === 0) return undefined;
    let parsed: unknown;
    try {
      parsed = JSON.parse(data.join("\n"));
    } catch {
      throw new ProtocolError("an event is not JSON");
    }
    if (typeof parsed !== "object" || parsed === null) throw new ProtocolError("an event is not a JSON object");
    return { kind, id, data: parsed as Record<string, unknown> };
  }
}
