import { readTree } from '../../scripts/imports/read-tree.ts'
import { findViolations } from '../../scripts/imports/violations.ts'
import { makeTree } from './temp-tree.ts'

export type Files = Record<string, string>

export const TSCONFIG = JSON.stringify({
  compilerOptions: { module: 'nodenext', noLib: true, types: [], noEmit: true, allowImportingTsExtensions: true },
  include: ['services', 'shared', 'scripts', 'test'],
})

/** The violations of a tree as `file:line rule`, questions with a `? ` before them. */
export async function check(files: Files): Promise<string[]> {
  await using tree = await makeTree({ 'tsconfig.json': TSCONFIG, ...files })
  const found = findViolations(readTree(tree.root), tree.root)
  return found.map(({ file, line, rule, isQuestion }) => `${isQuestion ? '? ' : ''}${file}:${line} ${rule}`)
}

/** A file that exports `x`. */
export const X = 'export const x = () => {}\n'
