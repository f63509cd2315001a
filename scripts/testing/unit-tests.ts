import { resolve } from 'node:path'
import { readTree, type Tree, targetOf } from '../imports/read-tree.ts'

/** Modules for servers, browsers and processes. A unit test imports none of them, neither directly nor through test/ and scripts/. */
const HEAVY = /^(ioredis|mongodb|playwright-core|node:child_process|scripts\/local-services\/.*)$/
/** A test that contains this text makes the product start Node, for example as an MCP server. */
const OWN_NODE = 'process.execPath'

/** The test files, in order, that need no Redis, MongoDB or Chromium and start no process. Imports of the product do not count. */
export function findUnitTests(root: string): string[] {
  const tree = readTree(resolve(root))
  return [...tree.keys()].filter((file) => file.endsWith('.test.ts') && !isHeavy(tree, file, new Set())).toSorted()
}

function isHeavy(tree: Tree, file: string, seen: Set<string>): boolean {
  if (seen.has(file)) return false
  seen.add(file)
  if (tree.get(file)?.text.includes(OWN_NODE)) return true
  return (tree.get(file)?.imports ?? []).some(({ specifier, kind }) => {
    if (kind === 'type') return false
    const target = targetOf(file, specifier)
    return HEAVY.test(target) || (/^(test|scripts)\//.test(target) && isHeavy(tree, target, seen))
  })
}
