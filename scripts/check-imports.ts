import { resolve } from 'node:path'
import { readTree } from './imports/read-tree.ts'
import { ROOMS } from './imports/table.ts'
import { findViolations } from './imports/violations.ts'

// Checks the project in the folder given, or in this one: imports against scripts/imports/table.ts, sizes and cycles, references.
// Prints the rooms from the ground up, and one line for each violation. A size above the first limit is a question and fails nothing.
const root = resolve(process.argv[2] ?? '.')
const tree = readTree(root)
const found = findViolations(tree, root)
const rooms = ROOMS.map(([room]) => room)
console.log(`rooms, each of which imports only itself and those before it: ${rooms.join(', ')}`)
for (const { file, line, rule, isQuestion } of found) console.error(`${isQuestion ? '? ' : ''}${file}:${line} ${rule}`)
const violations = found.filter(({ isQuestion }) => !isQuestion)
console.log(`import table: ${tree.size} files, ${violations.length} violations`)
process.exitCode = violations.length > 0 || tree.size === 0 ? 1 : 0
