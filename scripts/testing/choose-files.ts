import { globSync } from 'node:fs'
import { findTestsFor } from './tests-for.ts'
import { findUnitTests } from './unit-tests.ts'

export type Chosen = { files: string[]; isUnit: boolean }

/**
 * Chooses the test files by the arguments: all of them, with `--unit` the unit tests, and with `--for FILE` those that reach a source
 * file, with `--all` also through the whole product. Throws for other arguments.
 */
export function chooseFiles(args: readonly string[], say: (line: string) => void): Chosen {
  const [mode, file] = args
  if (mode === undefined) return { files: globSync('test/**/*.test.ts').toSorted(), isUnit: false }
  if (mode === '--unit') return { files: findUnitTests('.'), isUnit: true }
  if (mode !== '--for' || file === undefined) throw new Error('usage: scripts/test [--unit | --for FILE [--all]]')
  const { near, far } = findTestsFor('.', file)
  const isAll = args.includes('--all') || near.length === 0
  say(`${near.length} test files reach ${file}, and ${far.length} more through the whole product.`)
  if (far.length > 0 && !isAll) say('These are left out; --all runs them too.')
  return { files: isAll ? [...near, ...far].toSorted() : near, isUnit: false }
}
