import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Bytes of the built console as gzip. */
export type ConsoleSizes = {
  /** The files that are loaded before any page. */
  shell: number
  /** Each page together with the shell, by the path of its source. */
  routes: ReadonlyMap<string, number>
  /** Every script and style, those that nobody may ever load too. */
  all: number
}

/** An entry of Vite's manifest: the file that a source became, and the sources that it needs. */
type Chunk = { file: string; css?: readonly string[]; imports?: readonly string[]; dynamicImports?: readonly string[] }

/** The page, and what its first script loads. */
const [ENTRY, MAIN] = ['index.html', 'main.tsx'] as const

/** Measures the console in the folder that scripts/build-console.ts has filled. */
export function measureConsole(folder: string): ConsoleSizes {
  const manifest = JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8')) as Record<string, Chunk>
  const sizeOf = (files: ReadonlySet<string>) =>
    [...files].reduce((sum, file) => sum + readFileSync(join(folder, `${file}.gz`)).byteLength, 0)
  const shell = filesOf(manifest, MAIN, filesOf(manifest, ENTRY)).add(ENTRY)
  const pages = Object.entries(manifest).filter(([source, { file }]) => source !== MAIN && shell.has(file))
  const routes = pages
    .flatMap(([, { dynamicImports }]) => dynamicImports ?? [])
    .filter((source) => source !== MAIN)
    .map((source) => [source, sizeOf(new Set([...shell, ...filesOf(manifest, source)]))] as const)
  const all = new Set(Object.keys(manifest).flatMap((source) => [...filesOf(manifest, source)]))
  return { shell: sizeOf(shell), routes: new Map(routes), all: sizeOf(all) }
}

/** The files that a chunk needs before it runs. */
function filesOf(manifest: Readonly<Record<string, Chunk>>, source: string, files = new Set<string>()): Set<string> {
  const { file, css = [], imports = [] } = manifest[source] ?? { file: '' }
  if (file === '' || files.has(file)) return files
  for (const each of [file, ...css]) files.add(each)
  for (const each of imports) filesOf(manifest, each, files)
  return files
}
