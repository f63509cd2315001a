import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from '../deploy/files.ts'
import { runCommand } from './command.ts'

/** Copies what Git knows of this checkout, or all of an unpacked release, to a folder: a release as one unpacks it, without Git's own folder. */
export async function unpackRelease(folder: string): Promise<void> {
  const files = (
    await runCommand('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: ROOT })
  )
    .split('\0')
    .filter(Boolean)
  for (const file of files)
    await cp(join(ROOT, file), join(folder, file), { verbatimSymlinks: true }).catch(ignoreMissing)
}

/** A file that was deleted and not yet committed. */
function ignoreMissing(cause: unknown): void {
  if (!(cause instanceof Error && 'code' in cause && cause.code === 'ENOENT')) throw cause
}
