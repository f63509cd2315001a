import { matchesGlob, resolve } from 'node:path'
import { readTree, type Tree, targetOf } from '../imports/read-tree.ts'

/** The modules that put a whole process together, which reach nearly every source file. */
const WHOLE_PROCESS = 'services/*/{main,member,standalone}.ts'

export type TestsFor = {
  /** The tests that reach the file by their imports. */
  near: string[]
  /** The tests that reach it only because they start the whole product. */
  far: string[]
}

/** Finds the tests that a change of `file` may break, in order. Throws when `root` has no such source file. */
export function findTestsFor(root: string, file: string): TestsFor {
  const tree = readTree(resolve(root))
  if (!tree.has(file)) throw new Error(`there is no source file ${file}`)
  const importers = importersIn(tree)
  const isTest = (each: string) => each.endsWith('.test.ts')
  const near = reachedFrom(file, importers, (each) => !matchesGlob(each, WHOLE_PROCESS)).filter(isTest)
  const all = reachedFrom(file, importers, () => true).filter(isTest)
  return { near: near.toSorted(), far: all.filter((each) => !near.includes(each)).toSorted() }
}

type Importers = ReadonlyMap<string, ReadonlySet<string>>

/** The files that import each file. Imports of types do not exist at run time. */
function importersIn(tree: Tree): Importers {
  const importers = new Map<string, Set<string>>()
  for (const [file, { imports }] of tree)
    for (const { specifier, kind } of imports) {
      if (kind === 'type') continue
      const target = targetOf(file, specifier)
      importers.set(target, (importers.get(target) ?? new Set()).add(file))
    }
  return importers
}

/** The file itself and all that import it, directly or over files that `isFollowed` accepts. */
function reachedFrom(file: string, importers: Importers, isFollowed: (file: string) => boolean): string[] {
  const reached = new Set([file])
  for (const each of reached) {
    if (!isFollowed(each) && each !== file) continue
    for (const importer of importers.get(each) ?? []) reached.add(importer)
  }
  return [...reached]
}
