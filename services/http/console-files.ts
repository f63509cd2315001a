import { createHash } from 'node:crypto'
import { access, readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A built file of the console, and its compressed forms. */
export type ConsoleFile = {
  type: string
  etag: string
  /** By the name of the encoding. */
  bodies: Readonly<Record<'identity' | 'gzip' | 'br', Buffer>>
}

/** The page that starts the console, the one of operators, and the files that both load, by their paths below `/console/`. */
export type ConsoleFiles = { index: ConsoleFile; cluster: ConsoleFile; assets: ReadonlyMap<string, ConsoleFile> }

/** Where scripts/build-console.ts puts the files. */
const BUILT = fileURLToPath(new URL('../console/built', import.meta.url))

const PAGES = { index: 'index.html', cluster: 'cluster.html' } as const

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

export const isConsoleBuilt = (): Promise<boolean> =>
  access(join(BUILT, PAGES.index)).then(
    () => true,
    () => false,
  )

/** Reads the built console. `undefined` when it has not been built. */
export async function readConsole(folder = BUILT): Promise<ConsoleFiles | undefined> {
  const names = await readdir(folder, { recursive: true }).catch(() => [])
  const files = new Map(await Promise.all(names.filter((name) => extname(name) in TYPES).map(fileIn(folder))))
  const [index, cluster] = [files.get(PAGES.index), files.get(PAGES.cluster)]
  return index && cluster && { index, cluster, assets: files }
}

const fileIn =
  (folder: string) =>
  async (name: string): Promise<[string, ConsoleFile]> => {
    const path = join(folder, name)
    const [identity, gzip, br] = await Promise.all([path, `${path}.gz`, `${path}.br`].map((each) => readFile(each)))
    if (!identity || !gzip || !br) throw new Error(`${path} has no compressed forms`)
    const etag = `"${createHash('sha256').update(identity).digest('base64url')}"`
    return [name, { type: TYPES[extname(name)] ?? '', etag, bodies: { identity, gzip, br } }]
  }
