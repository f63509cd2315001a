import { truncate } from '../../../kernel/text.ts'
import { attempt } from '../attempt.ts'
import type { Tool } from '../port.ts'
import { compileGlob, compileRegex } from './pattern.ts'
import { matchingLines, type SearchLimits, searchFiles } from './search.ts'

const DEFAULT_LIMITS: SearchLimits = { entries: 50_000, wallMs: 10_000, matches: 500, fileBytes: 2 * 1024 * 1024 }
const FOLDER = {
  type: 'string',
  minLength: 1,
  description: 'Where to search, relative to the workspace. Default: all of it.',
}

/** Creates `Glob` and `Grep` (D5.1). Files, matches, bytes and time are limited, matching takes linear time, and the event loop is not blocked. */
export function createSearchTools(limits: SearchLimits = DEFAULT_LIMITS): Tool[] {
  return [globTool(limits), grepTool(limits)]
}

function globTool(limits: SearchLimits): Tool {
  return {
    name: 'Glob',
    description: `Lists the files of the workspace whose path matches a glob, such as **/*.ts or src/*.{js,ts}, sorted, at most ${limits.matches}. Without **/ only the given folder itself is searched. Symbolic links, .git and node_modules are left out.`,
    inputSchema: {
      type: 'object',
      properties: { pattern: { type: 'string', minLength: 1, description: 'The glob.' }, path: FOLDER },
      required: ['pattern'],
    },
    defaultPolicy: 'allow',
    usesFiles: true,
    isReadOnly: true,
    describe: ({ pattern }) => `List the files that match ${truncate(String(pattern), 200)}.`,
    run(input, context) {
      const { pattern, path = '.' } = input as { pattern: string; path?: string }
      return attempt({ subject: path, signal: context.signal }, async () => {
        const matches = await compileGlob(pattern)
        return searchFiles({ path, context, limits }, async ({ file, inFolder }) => (matches(inFolder) ? [file] : []))
      })
    },
  }
}

function grepTool(limits: SearchLimits): Tool {
  return {
    name: 'Grep',
    description: `Searches the text files of the workspace, line by line, for a regular expression in RE2 syntax ((?i) ignores case; no lookaround). Each match is path:line:text, at most ${limits.matches}. path may be a folder or a file; glob narrows the files (*.ts matches at any depth). Symbolic links, binary files, .git and node_modules are left out. Only the first ${limits.fileBytes / 1024 / 1024} MiB of a file are searched.`,
    inputSchema: {
      type: 'object',
      properties: {
        pattern: { type: 'string', minLength: 1, description: 'The regular expression.' },
        path: FOLDER,
        glob: { type: 'string', minLength: 1, description: 'Search only the files that match this glob.' },
      },
      required: ['pattern'],
    },
    defaultPolicy: 'allow',
    usesFiles: true,
    isReadOnly: true,
    describe: ({ pattern }) => `Search the files for ${truncate(String(pattern), 200)}.`,
    run(input, context) {
      const { pattern, path = '.', glob } = input as { pattern: string; path?: string; glob?: string }
      return attempt({ subject: path, signal: context.signal }, async () => {
        const regex = await compileRegex(pattern)
        const isIncluded = glob === undefined ? () => true : await compileGlob(glob.includes('/') ? glob : `**/${glob}`)
        return searchFiles({ path, context, limits }, async ({ file, inFolder, budget }) =>
          isIncluded(inFolder) ? matchingLines({ file, regex, budget, context, limits }) : [],
        )
      })
    },
  }
}
