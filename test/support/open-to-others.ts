import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'

const OTHERS = 0o077

/** The folder and what is in it, with the modes, that users other than the owner may enter, read or write. */
export async function openToOthers(folder: string): Promise<string[]> {
  const paths = [folder, ...(await readdir(folder, { recursive: true })).map((name) => join(folder, name))]
  const modes = await Promise.all(paths.map(async (path) => ({ path, mode: (await lstat(path)).mode & 0o777 })))
  return modes.filter(({ mode }) => (mode & OTHERS) !== 0).map(({ path, mode }) => `${path} ${mode.toString(8)}`)
}
