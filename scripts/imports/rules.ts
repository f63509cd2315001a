import { matchesGlob } from 'node:path'
import type { Edge } from './edges.ts'
import type { FileFacts } from './read-file.ts'
import { isFile, type Tree, targetOf } from './read-tree.ts'
import { ADAPTERS, APART, BLIND, GLOBALS, LAZY, NAMES, PACKAGES, ROOMS, ROOTS } from './table.ts'
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
  const isProduct = !isTooling(file)
  for (const { specifier, line, kind, names } of imports) {
    const target = targetOf(file, specifier)
    for (const refusal of isProduct ? refuseNames(file, target, names) : []) add(line, refusal)
    const refusal = isFile(target) ? refuseFile(file, target) : isProduct && refusePackage(file, target)
    if (refusal) add(line, refusal)
    const isListed = () => LAZY.some(([from, to]) => matchesGlob(file, from) && matchesGlob(target, to))
    if (isProduct && kind === 'lazy' && !isListed())
      add(line, `import('${specifier}') is not among the lazy imports of the table`)
  }
}

function refuseFile(file: string, target: string): string | undefined {
  if (isTooling(file)) return undefined
  if (isTooling(target)) return `the product may not import ${target}`
  const [from, to] = [roomOf(file), roomOf(target)]
  if (from === undefined || to === undefined) return `${from ? target : file} has no room: add it to the table`
  if (floorOf(to) > floorOf(from)) return `${from} comes before ${to} in the house and may not import ${target}`
  const apart = from === to ? undefined : refuseApart({ file, from }, { target, to })
  if (apart !== undefined) return apart
  if (BLIND.some((pair) => isBlind(pair, from, to))) return `${from} and ${to} do not know each other: ${target}`
  const technology = technologyOf(target)
  if (technology !== undefined && from !== ROOTS && technologyOf(file) !== technology)
    return `only roots and the files of ${technology} import ${target}`
  return undefined
}

function refuseApart(
  { file, from }: { file: string; from: string },
  { target, to }: { target: string; to: string },
): string | undefined {
  const leaving = APART.find(([room]) => room === from)
  if (leaving && !matchesGlob(target, leaving[1])) return `${from} imports only ${leaving[1]}, not ${target}`
  const entering = APART.find(([room]) => room === to)
  if (entering && !matchesGlob(file, entering[2])) return `only ${entering[2]} imports ${to}: ${target}`
  return undefined
}

/** `names` is undefined where a file imports everything. */
const refuseNames = (file: string, target: string, names: Edge['names']): string[] =>
  NAMES.filter((row) => row.file === target && (names?.includes(row.name) ?? true) && !isIn(file, row.users)).map(
    ({ name, users }) => `${name} is for ${users.join(', ')} only`,
  )

const isTooling = (file: string) => /^(scripts|test)\//.test(file)

const roomOf = (file: string) => ROOMS.findLast(([, glob]) => matchesGlob(file, glob))?.[0]

const floorOf = (room: string) => ROOMS.findIndex(([name]) => name === room)

const isBlind = ([one, other]: readonly [string, string], from: string, to: string) =>
  (from.startsWith(one) && to.startsWith(other)) || (from.startsWith(other) && to.startsWith(one))

const technologyOf = (file: string) => ADAPTERS.find(([, globs]) => isIn(file, globs))?.[0]

function refusePackage(file: string, target: string): string | undefined {
  const room = APART.find(([name]) => name === roomOf(file))
  if (room) return `${room[0]} imports only ${room[1]}, not ${target}`
  if (target.startsWith('.')) return undefined // A file that is not TypeScript, such as package.json.
  const row = Object.keys(PACKAGES).find((glob) => matchesGlob(target, glob))
  if (row === undefined) return target.startsWith('node:') ? undefined : `${target} is in no row of the import table`
  return isIn(file, PACKAGES[row]) ? undefined : `${target} is for ${PACKAGES[row]?.join(', ')} only`
}

function checkGlobals(file: string, { mentions, bound }: FileFacts, add: Add): void {
  if (isTooling(file)) return
  for (const { name, line } of mentions) {
    const globs = Object.hasOwn(GLOBALS, name) && !bound.has(name) ? GLOBALS[name] : undefined
    if (globs && !isIn(file, globs)) add(line, `the global ${name} is for ${globs.join(', ')} only`)
  }
}

const isIn = (file: string, globs: readonly string[] | undefined) =>
  globs?.some((glob) => matchesGlob(file, glob)) ?? false
