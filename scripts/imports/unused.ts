import { matchesGlob } from 'node:path'
import type { FileFacts } from './read-file.ts'
import { type Tree, targetOf } from './read-tree.ts'
import { ENTRIES } from './table.ts'
import type { Violation } from './violation.ts'

/** Finds exports that no file imports. A type may be exported for a signature of its own file. */
export function findUnusedExports(tree: Tree): Violation[] {
  const used = new Set<string>()
  for (const [file, { imports }] of tree)
    for (const { specifier, names } of imports) {
      const target = targetOf(file, specifier)
      for (const name of names ?? ['*']) used.add(`${target} ${name}`)
    }
  return [...tree].flatMap(([file, facts]) => {
    if (ENTRIES.some((glob) => matchesGlob(file, glob)) || used.has(`${file} *`)) return []
    return facts.exports
      .filter(({ name, isType }) => !used.has(`${file} ${name}`) && !(isType && isMentioned(name, facts)))
      .map(({ name, line }) => ({ file, line, rule: `nobody imports ${name}: delete it, or its \`export\`` }))
  })
}

const isMentioned = (name: string, { mentions }: FileFacts) => mentions.some((mention) => mention.name === name)
