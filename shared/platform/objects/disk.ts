import { createReadStream } from 'node:fs'
import { access, link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { newToken } from '../../kernel/ids.ts'
import { type ListedObject, type ObjectContent, type Objects, orAway, type WriteCondition } from './port.ts'

/**
 * Opens objects in a folder that only this process uses. An object is a file with its key as name. It never changes, so
 * tags are not supported as a condition.
 */
export async function openDisk(dir: string): Promise<Objects> {
  const unfinished = join(dir, UNFINISHED)
  await rm(unfinished, { recursive: true, force: true })
  await mkdir(unfinished, { recursive: true, mode: 0o700 })
  const pathOf = (key: string) => join(dir, 'objects', key)
  return {
    has: (key) => orAway(() => exists(pathOf(key))),
    find: (key, range) =>
      orAway(async () => {
        if (!(await exists(pathOf(key)))) return undefined
        return { tag: key, body: createReadStream(pathOf(key), range && { start: range.from, end: range.to }) }
      }),
    write: (key, content, when) =>
      orAway(async () => {
        const path = join(unfinished, newToken())
        try {
          await writeWhole(path, content)
          return (await place(path, pathOf(key), when)) ? key : undefined
        } finally {
          await rm(path, { force: true })
        }
      }),
    delete: (key) => orAway(() => rm(pathOf(key), { force: true })),
    list: (prefix) => list(join(dir, 'objects'), prefix),
    close: async () => {},
  }
}

const UNFINISHED = 'unfinished'

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** Resolves when the bytes are on the disk. */
async function writeWhole(path: string, content: ObjectContent): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(content.open())
    await file.sync()
  } finally {
    await file.close()
  }
}

/** Gives a file its final name. Returns `false` if the name is taken although the condition forbids that. */
async function place(from: string, to: string, when: WriteCondition | undefined): Promise<boolean> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  if (when === undefined) {
    await rename(from, to)
    return true
  }
  try {
    await link(from, to)
    return true
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw cause
  }
}

async function* list(root: string, prefix: string): AsyncGenerator<ListedObject> {
  const found = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => [])
  const keys = found
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name).slice(root.length + 1))
    .filter((key) => key.startsWith(prefix))
  for (const key of keys.toSorted()) {
    const stats = await stat(join(root, key)).catch(() => undefined) // The file may have been deleted meanwhile.
    if (stats) yield { key, ageMs: Date.now() - stats.mtimeMs }
  }
}
