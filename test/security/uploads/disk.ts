import { execFile } from 'node:child_process'
import { mkdir, readdir } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A file system of `mib` MiB in memory at `dir`; `undefined` where mounting is not possible. Disposing of it unmounts it. */
export async function mountSmallDisk(dir: string, mib: number): Promise<AsyncDisposable | undefined> {
  await mkdir(dir, { recursive: true })
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', dir])
  } catch {
    return undefined
  }
  return { [Symbol.asyncDispose]: async () => void (await run('umount', ['-l', dir])) }
}

/** The files anywhere below a folder, which may not exist. */
export async function filesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name)
}
