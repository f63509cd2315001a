import { matchesGlob, posix } from 'node:path'
import type { FileFacts } from './read-file.ts'
import { isFile, type Tree, targetOf } from './read-tree.ts'
import { ADAPTERS, GLOBALS, LAYERS, LAZY, type Layer, MAY_IMPORT, PACKAGES, SIDEWAYS } from './table.ts'
import type { Violation } from './violation.ts'

/** Checks every file's imports and globals against the table. */
export function checkImports(tree: Tree): Violation[] {
  const found: Violation[] = []
  for (const [file, facts] of tree) {
    const add = (line: number, rule: string) => void found.push({ file, line, rule })
    if (/(^|\/)index\.m?ts$/.test(file)) add(1, 'index files are barrels: import from the file itself')
    for (const line of facts.barrels) add(line, '`export *` is a barrel: import from the file itself')
    checkEdges(file, facts, add)
    checkGlobals(file, facts, add)
  }
  return found
}

type Add = (line: number, rule: string) => void

function checkEdges(file: string, { imports }: FileFacts, add: Add): void {
  const isProduct = !isTooling(layerOf(file))
  for (const { specifier, line, kind } of imports) {
    const target = targetOf(file, specifier)
    const refusal = isFile(target) ? refuseFile(file, target) : isProduct && refusePackage(file, target)
    if (refusal) add(line, refusal)
    const isListed = () => LAZY.some(([from, to]) => matchesGlob(file, from) && matchesGlob(target, to))
    if (isProduct && kind === 'lazy' && !isListed())
      add(line, `import('${specifier}') is not among the lazy imports of the table`)
  }
}

function refuseFile(file: string, target: string): string | undefined {
  const [from, to] = [layerOf(file), layerOf(target)]
  if (from === undefined || to === undefined) return `${from ? target : file} has no layer: add it to the table`
  if (MAY_IMPORT[from].includes(to) || isSameSubject(file, target)) return undefined
  if (from === to) return `${posix.dirname(file)} may not import its neighbour ${target}`
  return `${from} files may not import ${to} files (${target})`
}

/** Whether an import between two files is allowed by the subjects they belong to, though not by their layers. */
function isSameSubject(file: string, target: string): boolean {
  const isSame = subjectOf(file) === subjectOf(target)
  switch (`${layerOf(file)} ${layerOf(target)}`) {
    case 'domain domain':
      return isSame || (SIDEWAYS[subjectOf(file)] ?? []).includes(subjectOf(target))
    case 'adapter adapter':
      return isSame && adapterOf(file) === adapterOf(target)
    case 'adapter domain':
    case 'service service':
      return isSame
    default:
      return false
  }
}

/** The folder below services/ or shared/. */
const subjectOf = (file: string) => file.split('/')[1] ?? ''

/** The name in ADAPTERS with which a part of the path below the subject begins. */
const adapterOf = (file: string) => {
  const parts = file.split('/').slice(2)
  return ADAPTERS.find((name) => parts.some((part) => part.startsWith(name)))
}

const isTooling = (layer: Layer | undefined) => layer === 'script' || layer === 'test'

function refusePackage(file: string, target: string): string | undefined {
  if (target.startsWith('.')) return undefined // A file that is not TypeScript, such as package.json.
  const row = Object.keys(PACKAGES).find((glob) => matchesGlob(target, glob))
  if (row === undefined) return target.startsWith('node:') ? undefined : `${target} is in no row of the import table`
  return isIn(file, PACKAGES[row]) ? undefined : `${target} is for ${PACKAGES[row]?.join(', ')} only`
}

function checkGlobals(file: string, { mentions, bound }: FileFacts, add: Add): void {
  if (isTooling(layerOf(file))) return
  for (const { name, line } of mentions) {
    const globs = Object.hasOwn(GLOBALS, name) && !bound.has(name) ? GLOBALS[name] : undefined
    if (globs && !isIn(file, globs)) add(line, `the global ${name} is for ${globs.join(', ')} only`)
  }
}

const layerOf = (file: string) => LAYERS.find(([, globs]) => isIn(file, globs))?.[0]

const isIn = (file: string, globs: readonly string[] | undefined) =>
  globs?.some((glob) => matchesGlob(file, glob)) ?? false
