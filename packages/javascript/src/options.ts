/** Checks names of options: a misspelt one is refused, since JavaScript itself would ignore it. */
import { InvalidArgumentError } from "./errors.js";

export type Names<T> = Record<keyof T, true>;

export function checkOptions<T extends object>(options: T, names: Names<Required<T>>): void {
  const wrong = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (wrong !== undefined)
    throw new InvalidArgumentError(`there is no option ${JSON.stringify(wrong)}; there are ${Object.keys(names).join(", ")}`);
}

/** A timeout in seconds as the limit wall_ms. */
export function milliseconds(timeout: number): number {
  if (!(timeout > 0 && timeout < Infinity))
    throw new InvalidArgumentError(`timeout is a number of seconds above 0, not ${timeout}; without it the policy's limit holds`);
  return Math.max(1, Math.trunc(timeout * 1000));
}
