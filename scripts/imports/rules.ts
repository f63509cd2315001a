import { matchesGlob, posix } from 'node:path'
import type { FileFacts } from './read-file.ts'
import { isFile, type Tree, targetOf } from './read-tree.ts'
import { ENTRIES, FENCES, GLOBALS, LAYERS, LAZY, type Layer, MAY_IMPORT, SIDEWAYS } from './table.ts'

export type Violation = { file: string; line: number; rule: string }

/** Everything in the tree that the table does not allow, file by file. */
export function findViolations(tree: Tree): Violation[] {
  const found: Violation[] = []
  for (const [file, facts] of tree) {
    const say = (line: number, rule: string) => void found.push({ file, line, rule })
    if (/(^|\/)index\.m?ts$/.test(file)) say(1, 'index files are barrels: import from the file itself')
    for (const line of facts.barrels) say(line, '`export *` is a barrel: import from the file itself')
    checkEdges(file, facts, say)
    checkGlobals(file, facts, say)
  }
  return [...found, ...findCycles(tree), ...findUnused(tree)]
}

type Say = (line: number, rule: string) => void

function checkEdges(file: string, { imports }: FileFacts, say: Say): void {
  const from = layerOf(file)
  const isOurs = !isTooling(from)
  for (const { specifier, line, isDynamic } of imports) {
    const target = targetOf(file, specifier)
    const refusal = isFile(target) ? refuseFile(file, target) : isOurs && refusePackage(file, target)
    if (refusal) say(line, refusal)
    if (isOurs && isDynamic && !LAZY.some(([who, what]) => is(file, who) && is(target, what)))
      say(line, `import('${specifier}') is not among the lazy imports of the table`)
  }
}

function refuseFile(file: string, target: string): string | undefined {
  const [from, to] = [layerOf(file), layerOf(target)]
  if (from === undefined || to === undefined) return `${from ? target : file} has no layer: add it to the table`
  if (MAY_IMPORT[from].includes(to) || areKin(file, target)) return undefined
  if (from === to) return `${posix.dirname(file)} may not import its neighbour ${target}`
  return `${from} files may not import ${to} files (${target})`
}

/** What a file may import besides `MAY_IMPORT`, by where both are. */
function areKin(file: string, target: string): boolean {
  const [own, other] = [folderOf(file), folderOf(target)]
  const isHome = own === other
  const pair = `${layerOf(file)} ${layerOf(target)}`
  if (pair === 'domain domain') return isHome || (SIDEWAYS[own]?.includes(other) ?? false)
  if (pair === 'adapter adapter') return isHome && technologyOf(file) === technologyOf(target)
  return isHome && (pair === 'service service' || pair === 'adapter domain')
}

const folderOf = (file: string) => file.split('/')[1] ?? ''

const TECHNOLOGIES = ['memory', 'redis', 'bullmq', 'mongo', 'sqlite', 'ai-sdk', 'chat', 'demo', 'mcp']

/** Told by the file's name or by a folder above it. */
const technologyOf = (file: string) =>
  TECHNOLOGIES.find((name) => file.split('/').some((part, depth) => depth > 1 && part.startsWith(name)))

const isTooling = (layer: Layer | undefined) => layer === 'script' || layer === 'test'

function refusePackage(file: string, target: string): string | undefined {
  if (target.startsWith('.')) return undefined // A file that is no code, such as package.json.
  const fence = Object.keys(FENCES).find((name) => is(target, name))
  if (fence === undefined) return target.startsWith('node:') ? undefined : `${target} is in no row of the import table`
  return isIn(file, FENCES[fence]) ? undefined : `${target} is for ${FENCES[fence]?.join(', ')} only`
}

function checkGlobals(file: string, { mentions, bound }: FileFacts, say: Say): void {
  if (isTooling(layerOf(file))) return
  for (const { name, line } of mentions) {
    const fence = Object.hasOwn(GLOBALS, name) && !bound.has(name) ? GLOBALS[name] : undefined
    if (fence && !isIn(file, fence)) say(line, `the global ${name} is for ${fence.join(', ')} only`)
  }
}

const layerOf = (file: string) => LAYERS.find(([, globs]) => isIn(file, globs))?.[0]

const isIn = (file: string, globs: readonly string[] | undefined) => globs?.some((glob) => is(file, glob)) ?? false

const is = (name: string, glob: string) => matchesGlob(name, glob)

/** One violation for each way round, told where it starts. */
function findCycles(tree: Tree): Violation[] {
  const found: Violation[] = []
  const done = new Set<string>()
  const walk = (file: string, trail: readonly string[]) => {
    for (const { specifier, line } of tree.get(file)?.imports ?? []) {
      const target = targetOf(file, specifier)
      const start = trail.indexOf(target)
      if (start >= 0) found.push({ file, line, rule: `a cycle: ${[...trail.slice(start), target].join(' -> ')}` })
      else if (!done.has(target) && tree.has(target)) walk(target, [...trail, target])
    }
    done.add(file)
  }
  for (const file of tree.keys()) if (!done.has(file)) walk(file, [file])
  return found
}

/** Exports nobody imports. A type may be exported for a signature of its own file. */
function findUnused(tree: Tree): Violation[] {
  const used = new Set<string>()
  for (const [file, { imports }] of tree)
    for (const { specifier, names } of imports) {
      const target = targetOf(file, specifier)
      for (const name of names ?? ['*']) used.add(`${target} ${name}`)
    }
  return [...tree].flatMap(([file, { exports, mentions }]) =>
    isIn(file, ENTRIES) || used.has(`${file} *`)
      ? []
      : exports
          .filter(
            ({ name, isType }) => !used.has(`${file} ${name}`) && !(isType && mentions.some((m) => m.name === name)),
          )
          .map(({ name, line }) => ({ file, line, rule: `nobody imports ${name}: delete it, or its \`export\`` })),
  )
}
