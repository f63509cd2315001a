import { globSync, readFileSync } from 'node:fs'
import { ROOT } from '../deploy/files.ts'

export type MarkdownFile = { path: string; text: string }

/** The documents of the project, by their paths from its root: every Markdown file. */
export const DOCUMENTS: readonly MarkdownFile[] = globSync('**/*.md', {
  cwd: ROOT,
  exclude: (path) => /(^|\/)(node_modules|data)$/.test(path),
})
  .toSorted()
  .map((path) => ({ path, text: readFileSync(ROOT + path, 'utf8') }))
