import { resolve } from 'node:path'
import { readTree } from './imports/read-tree.ts'
import { findViolations } from './imports/rules.ts'

// Checks the tree (or the one in the folder given) against scripts/imports/table.ts; one line for each violation.
const tree = readTree(resolve(process.argv[2] ?? '.'))
const violations = findViolations(tree)
for (const { file, line, rule } of violations) console.error(`${file}:${line} ${rule}`)
console.log(`import table: ${tree.size} files, ${violations.length} violations`)
process.exitCode = violations.length > 0 || tree.size === 0 ? 1 : 0
