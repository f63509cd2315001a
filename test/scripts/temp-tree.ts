import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

/** Writes the files into a new folder, which `await using` removes. Paths may begin with `../`: the folder's parent is new too. */
export async function makeTree(files: Record<string, string>) {
  const parent = await mkdtemp(join(tmpdir(), 'agent-engine-tree-'))
  const root = join(parent, 'project')
  await mkdir(root)
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  return { root, [Symbol.asyncDispose]: () => rm(parent, { recursive: true, force: true }) }
}
