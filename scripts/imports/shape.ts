import { posix } from 'node:path'
import { findCycles } from './cycles.ts'
import { isFile, type Tree, targetOf } from './read-tree.ts'
import type { Violation } from './violation.ts'

const MAX_FUNCTION_LINES = 40
const MAX_FILE_LINES = 250
const MAX_FOLDER_FILES = 20

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
    return count > MAX_FILE_LINES
      ? [{ file, line: MAX_FILE_LINES + 1, rule: `${count} lines: a file has at most ${MAX_FILE_LINES}` }]
      : []
  })
}

function findFullFolders(tree: Tree): Violation[] {
  return [...Map.groupBy(tree.keys(), (file) => posix.dirname(file))]
    .filter(([, files]) => files.length > MAX_FOLDER_FILES)
    .map(([file, files]) => ({
      file,
      line: 1,
      rule: `${files.length} source files: a folder has at most ${MAX_FOLDER_FILES}`,
    }))
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
      if (posix.basename(target) === 'port.ts') continue // The subject of a port may depend on those that implement it.
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
