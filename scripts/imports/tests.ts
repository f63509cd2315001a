import { posix } from 'node:path'
import { type Tree, targetOf } from './read-tree.ts'
import type { Violation } from './violation.ts'

/** Shorter files are parts of what their neighbours' tests show. */
const MIN_LINES = 80

/**
 * Finds the source files of the product that no test stands for. `test/` mirrors `shared/` and `services/`: a file has a test at its path,
 * or a file in the folder of its tests, or in `test/contract`, imports it or names it in a line `// Tests x.ts, y.ts: …`. A test in a browser,
 * which stands in `test/console` itself, may name a folder of the console, too: `// Tests pages/flows/**: …`.
 */
export function findUntested(tree: Tree): Violation[] {
  const named = namedIn(tree)
  const walked = walkedIn(tree)
  const files = [...tree].flatMap(([file, facts]) => {
    const lineCount = facts.text.trimEnd().split('\n').length
    if (!/^(shared|services)\//.test(file) || lineCount <= MIN_LINES || isTypesOnly(facts)) return []
    const test = file.replace(/^(shared|services)\//, 'test/').replace(/\.tsx?$/, '.test.ts')
    const folder = posix.dirname(test)
    const isTested = tree.has(test) || named.get(file)?.some((by) => isIn(by, folder) || isIn(by, 'test/contract'))
    return isTested || walked.some((place) => isIn(file, place)) ? [] : [file]
  })
  if (files.length === 0) return []
  const rule = `${files.length} source files above ${MIN_LINES} lines have no test (see test/README.md): ${files.join(', ')}`
  return [{ file: 'test', line: 1, rule, isQuestion: true }]
}

const isTypesOnly = ({ functions, exports }: { functions: unknown[]; exports: { isType: boolean }[] }): boolean =>
  functions.length === 0 && exports.every(({ isType }) => isType)

const isIn = (file: string, folder: string): boolean => file.startsWith(`${folder}/`)

const NAMES = /^\/\/ Tests ((?:[\w./-]+\.tsx?(?:, | and )?)+)/gm

/** The files of `test/` that import or name each source file. */
function namedIn(tree: Tree): ReadonlyMap<string, string[]> {
  const named = new Map<string, string[]>()
  for (const [file, { imports, text }] of tree) {
    if (!file.startsWith('test/')) continue
    const imported = imports.flatMap(({ specifier, kind }) => (kind === 'type' ? [] : [targetOf(file, specifier)]))
    for (const target of [...imported, ...namesIn(file, text)]) named.set(target, [...(named.get(target) ?? []), file])
  }
  return named
}

/** The source files that a test names, as paths from the folder that its own mirrors. */
function namesIn(file: string, text: string): string[] {
  const names = [...text.matchAll(NAMES)].flatMap(([, list = '']) => list.split(/, | and /))
  const folder = posix.dirname(file).replace(/^test/, '')
  return names.flatMap((name) => ['shared', 'services'].map((tree) => posix.join(`${tree}${folder}`, name)))
}

const WALKED = /^\/\/ Tests ((?:[\w/-]+\/\*\*(?:, | and )?)+)/gm
const BROWSER_SETUP = 'test/console/support/console.ts'

/** The folders of the console through which the tests in a browser say to walk. */
const walkedIn = (tree: Tree): string[] =>
  [...tree].flatMap(([file, { imports, text }]) => {
    const isInBrowser = imports.some(({ specifier }) => targetOf(file, specifier) === BROWSER_SETUP)
    if (!isInBrowser || posix.dirname(file) !== 'test/console') return []
    const folders = [...text.matchAll(WALKED)].flatMap(([, list = '']) => list.split(/, | and /))
    return folders.map((folder) => `services/console/${folder.replace('/**', '')}`)
  })
