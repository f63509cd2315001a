import { posix } from 'node:path'
import { findCycles } from './cycles.ts'
import { isFile, type Tree, targetOf } from './read-tree.ts'
import type { Violation } from './violation.ts'

const MAX_FUNCTION_LINES = 40
/** Above the first number the check asks whether two subjects share a room; above the second it fails. */
const FILE_LINES = { asks: 250, fails: 400 }
const FOLDER_FILES = { asks: 20, fails: 30 }

/** Checks sizes and cycles: files for the whole tree; functions, folders and cycles of folders for the product. */
export function checkShape(tree: Tree): Violation[] {
  const product = new Map([...tree].filter(([file]) => /^(services|shared)\//.test(file)))
  return [
    ...findLongFunctions(product),
    ...findLongFiles(product),
    ...findFullFolders(product),
    ...findFileCycles(tree),
    ...findFolderCycles(product),
  ]
}

function findLongFunctions(tree: Tree): Violation[] {
  return [...tree].flatMap(([file, { functions }]) =>
    functions
      .filter(({ lineCount }) => lineCount > MAX_FUNCTION_LINES)
      .map(({ name, line, lineCount }) => ({
        file,
        line,
        rule: `${name} has ${lineCount} lines: a function has at most ${MAX_FUNCTION_LINES}`,
      })),
  )
}

function findLongFiles(tree: Tree): Violation[] {
  return [...tree].flatMap(([file, { text }]) => {
    const count = text.trimEnd().split('\n').length
    return checkLimit(count, FILE_LINES, { file, line: FILE_LINES.asks + 1, what: 'lines: a file' })
  })
}

function findFullFolders(tree: Tree): Violation[] {
  return [...Map.groupBy(tree.keys(), (file) => posix.dirname(file))].flatMap(([file, files]) =>
    checkLimit(files.length, FOLDER_FILES, { file, line: 1, what: 'source files: a folder' }),
  )
}

type Limit = { asks: number; fails: number }
type Measured = { file: string; line: number; what: string }

function checkLimit(count: number, { asks, fails }: Limit, { file, line, what }: Measured): Violation[] {
  if (count > fails) return [{ file, line, rule: `${count} ${what} has at most ${fails}` }]
  if (count <= asks) return []
  return [{ file, line, rule: `${count} ${what} above ${asks} may hold two subjects`, isQuestion: true }]
}

function findFileCycles(tree: Tree): Violation[] {
  const targetsOf = (file: string) => (tree.get(file)?.imports ?? []).map(({ specifier }) => targetOf(file, specifier))
  return findCycles(tree.keys(), targetsOf).map((cycle) => {
    const last = cycle.at(-2) ?? ''
    const back = tree.get(last)?.imports.find(({ specifier }) => targetOf(last, specifier) === cycle[0])
    return { file: last, line: back?.line ?? 1, rule: `a cycle: ${cycle.join(' -> ')}` }
  })
}

type FolderEdge = { file: string; line: number; target: string }

/** An import between a folder and one above it does not count: a subject may be divided into folders. */
function findFolderCycles(tree: Tree): Violation[] {
  const edges = new Map<string, Map<string, FolderEdge>>()
  for (const [file, { imports }] of tree)
    for (const { specifier, line } of imports) {
      const target = targetOf(file, specifier)
      const [from, to] = [posix.dirname(file), posix.dirname(target)]
      if (!isFile(target) || !tree.has(target) || isWithin(from, to) || isWithin(to, from)) continue
      const ofFolder = edges.get(from) ?? new Map<string, FolderEdge>()
      edges.set(from, ofFolder.has(to) ? ofFolder : ofFolder.set(to, { file, line, target }))
    }
  return findCycles(edges.keys(), (folder) => edges.get(folder)?.keys() ?? []).map((cycle) => {
    const steps = cycle.slice(1).flatMap((to, i) => edges.get(cycle[i] ?? '')?.get(to) ?? [])
    const shown = steps.map(({ file, target }) => `${file} imports ${target}`).join(', ')
    const { file = '', line = 1 } = steps.at(-1) ?? {}
    return { file, line, rule: `a cycle of folders: ${cycle.join(' -> ')} (${shown})` }
  })
}

const isWithin = (folder: string, other: string) => folder === other || folder.startsWith(`${other}/`)
