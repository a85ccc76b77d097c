/** The Linux programs, from the optional package for this platform. */

export interface Programs {
  /** The path of `glovebox`. */
  program: string;
  /** The path of the packed template `minimal`. */
  archive: string;
}

/** `undefined` if that package is not installed. */
export async function packedPrograms(): Promise<Programs | undefined> {
  const name = `glovebox-sandbox-${process.platform}-${process.arch}`;
  try {
    const found = (await import(name)) as Programs & { default?: Programs };
    return found.default ?? found;
  } catch (cause) {
    const code = (cause as { code?: string }).code;
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") return undefined;
    throw cause;
  }
}
