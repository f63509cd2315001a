import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeTempFolder } from '../support/temp-folder.ts'

/** Writes the files into a new folder, which `await using` removes. Paths may begin with `../`: the folder's parent is new too. */
export async function makeTree(files: Record<string, string>) {
  const parent = await makeTempFolder()
  const root = join(parent.path, 'project')
  await mkdir(root)
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  return { root, [Symbol.asyncDispose]: () => parent[Symbol.asyncDispose]() }
}
