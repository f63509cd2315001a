import type { Tree } from './read-tree.ts'
import { checkReferences } from './references.ts'
import { checkImports } from './rules.ts'
import { checkShape } from './shape.ts'
import { findUntested } from './tests.ts'
import { findUnusedExports } from './unused.ts'
import type { Violation } from './violation.ts'

/** Everything in the project that the checks do not allow. `root` is the folder that the tree was read from. */
export function findViolations(tree: Tree, root: string): Violation[] {
  return [
    ...checkImports(tree),
    ...checkShape(tree),
    ...findUnusedExports(tree),
    ...findUntested(tree),
    ...checkReferences(tree, root),
  ]
}
