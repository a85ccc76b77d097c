/** Names of options: one that is misspelt is refused, since JavaScript itself does not look. */
import { InvalidArgumentError } from "./errors.js";

export type Names<T> = Record<keyof T, true>;

export function checkOptions<T extends object>(options: T, names: Names<Required<T>>): void {
  const wrong = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (wrong !== undefined)
    throw new InvalidArgumentError(`there is no option ${JSON.stringify(wrong)}; there are ${Object.keys(names).join(", ")}`);
}
