import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { useFixture } from './fixture.ts'

export type TempFolder = AsyncDisposable & { readonly path: string }

/** Makes a folder for temporary files, whose path has no symbolic link. `await using` removes it. */
export async function makeTempFolder(): Promise<TempFolder> {
  const path = await mkdtemp(join(await realpath(tmpdir()), 'agent-engine-test-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** A folder for the tests of the enclosing `describe`, or with `perTest` one for each of them. See `useFixture` for when it is there. */
export function useTempFolder(options?: { perTest?: boolean }): { readonly path: string } {
  const folder = useFixture(makeTempFolder, options)
  return {
    get path() {
      return folder().path
    },
  }
}
