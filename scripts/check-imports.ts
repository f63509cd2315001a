import { resolve } from 'node:path'
import { readTree } from './imports/read-tree.ts'
import { findViolations } from './imports/violations.ts'

// Checks the project in the folder given, or in this one: imports against scripts/imports/table.ts, sizes and cycles, references.
// Prints one line for each violation.
const root = resolve(process.argv[2] ?? '.')
const tree = readTree(root)
const violations = findViolations(tree, root)
for (const { file, line, rule } of violations) console.error(`${file}:${line} ${rule}`)
console.log(`import table: ${tree.size} files, ${violations.length} violations`)
process.exitCode = violations.length > 0 || tree.size === 0 ? 1 : 0
