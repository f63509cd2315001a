import { invalidRequest } from '../../errors.ts'
import { attempt } from '../attempt.ts'
import { clip } from '../clip.ts'
import { fail, succeed, type Tool, type ToolContext, type ToolOutcome } from '../port.ts'
import { FILE_MAX_BYTES, openFile, readText, writeText } from './file.ts'
import { occurrences } from './occurrences.ts'
import { type Excerpt, type Lines, readLines } from './read-lines.ts'
import { relativePath } from './workspace.ts'

const DEFAULT_LINES = 2_000
const MAX_LINES = 10_000
const PAGE_BYTES = 256 * 1024
const MAX_REPLACEMENTS = 100_000

const PATH = { type: 'string', minLength: 1, description: 'Path of the file, relative to the workspace.' }

/** `Read`, `Write` and `Edit` (D5.1). Changes of one file are made one after the other, whatever runs in parallel. */
export function createFileTools(): Tool[] {
  const inTurn = createTurns()
  return [readTool(), writeTool(inTurn), editTool(inTurn)]
}

function readTool(): Tool {
  return {
    name: 'Read',
    description: `Reads a text file of the workspace. Each line of the answer is the line's number, a tab, and the line itself; number and tab are not part of the file. At most ${DEFAULT_LINES} lines or ${PAGE_BYTES / 1024} KiB are shown unless limit says otherwise; offset is the number of the first line to show.`,
    inputSchema: {
      type: 'object',
      properties: {
        path: PATH,
        offset: { type: 'integer', minimum: 1, description: 'First line to show, counted from 1.' },
        limit: { type: 'integer', minimum: 1, maximum: MAX_LINES, description: 'How many lines to show.' },
      },
      required: ['path'],
    },
    defaultPolicy: 'allow',
    describe: ({ path }) => `Read the file ${named(path)}.`,
    run(input, { workspace, signal }) {
      const { path, offset = 1, limit = DEFAULT_LINES } = input as { path: string; offset?: number; limit?: number }
      return attempt({ subject: path, signal }, async () => {
        const handle = await openFile(workspace, path)
        try {
          const excerpt = { path, offset, limit, maxBytes: PAGE_BYTES }
          return shown(await readLines(handle, excerpt, signal), excerpt)
        } finally {
          await handle.close()
        }
      })
    },
  }
}

const named = (path: unknown) => clip(String(path), 200)

function shown({ lines, total, end }: Lines, { offset, maxBytes }: Excerpt): ToolOutcome {
  if (lines.length === 0 && offset === 1) return succeed('(The file is empty.)')
  if (lines.length === 0) return fail(`The file has ${total} lines; offset ${offset} lies behind its end.`)
  const last = offset + lines.length - 1
  const text = lines.map((line, index) => `${offset + index}\t${line.replace(/^\uFEFF/, '')}`).join('\n')
  if (end === 'file') return succeed(text)
  const cut =
    end === 'line'
      ? `Line ${last} is longer than ${maxBytes} bytes; its end is cut off and cannot be shown.`
      : `These are lines ${offset} to ${last}; the file goes on.`
  return succeed(`${text}\n\n[${cut} Use offset=${last + 1} to read further.]`)
}

type InTurn = ReturnType<typeof createTurns>

function writeTool(inTurn: InTurn): Tool {
  return {
    name: 'Write',
    description: `Writes a text file of the workspace, replacing what it held. Missing folders are made. At most ${FILE_MAX_BYTES / 1024 / 1024} MiB.`,
    inputSchema: {
      type: 'object',
      properties: { path: PATH, content: { type: 'string', description: 'The whole new content.' } },
      required: ['path', 'content'],
    },
    defaultPolicy: 'ask',
    describe: ({ path, content }) => `Write ${Buffer.byteLength(String(content))} bytes to the file ${named(path)}.`,
    run(input, context) {
      const { path, content } = input as { path: string; content: string }
      return changeFile(inTurn, { path, context }, async () => {
        await writeText(context.workspace, path, content)
        return `Wrote ${Buffer.byteLength(content)} bytes to ${path}.`
      })
    },
  }
}

type EditInput = { path: string; old_string: string; new_string: string; replace_all?: boolean }

function editTool(inTurn: InTurn): Tool {
  return {
    name: 'Edit',
    description:
      'Replaces old_string by new_string in a text file of the workspace. old_string must be copied exactly, white space included and without line numbers, and must occur once, unless replace_all is true.',
    inputSchema: {
      type: 'object',
      properties: {
        path: PATH,
        old_string: { type: 'string', minLength: 1, description: 'The text to replace.' },
        new_string: { type: 'string', description: 'The text to put there.' },
        replace_all: { type: 'boolean', description: 'Replace every occurrence. Default: false.' },
      },
      required: ['path', 'old_string', 'new_string'],
    },
    defaultPolicy: 'ask',
    describe: ({ path }) => `Change the file ${named(path)}.`,
    run(input, context) {
      const edit = input as EditInput
      return changeFile(inTurn, { path: edit.path, context }, async () => {
        const { text, count } = edited(await readText(context.workspace, edit.path), edit)
        await writeText(context.workspace, edit.path, text)
        return `Changed ${edit.path} in ${count === 1 ? 'one place' : `${count} places`}.`
      })
    },
  }
}

/** The text with the replacement made, or `invalid_request`. What is replaced and by what is literal: `$&` means nothing. */
function edited(before: string, edit: EditInput): { text: string; count: number } {
  const { path, replace_all = false } = edit
  const [oldText, newText] = withLineEndings(before, edit)
  if (oldText === newText) throw invalidRequest('old_string and new_string are the same: nothing would change.')
  const starts = occurrences(before, oldText, MAX_REPLACEMENTS + 1)
  if (starts.length === 0) {
    throw invalidRequest(`old_string was not found in ${path}. Read the file again and copy the text exactly.`)
  }
  if (starts.length > 1 && !replace_all) {
    throw invalidRequest(
      `old_string was found ${starts.length} times in ${path}. Give more of the text around it, or set replace_all to true.`,
    )
  }
  if (starts.length > MAX_REPLACEMENTS) throw invalidRequest(`old_string was found over ${MAX_REPLACEMENTS} times.`)
  const grown = before.length + starts.length * (newText.length - oldText.length)
  if (grown > FILE_MAX_BYTES) throw invalidRequest(`${path}: the file would grow beyond ${FILE_MAX_BYTES} bytes.`)
  const ends = [0, ...starts.map((start) => start + oldText.length)]
  const text = ends.map((end, index) => before.slice(end, starts[index])).join(newText)
  return { text, count: starts.length }
}

/** Read shows lines without their carriage return, so what was copied from it has none either: a CRLF file gets its own. */
function withLineEndings(before: string, { old_string, new_string }: EditInput): [string, string] {
  if (!before.includes('\r\n') || old_string.includes('\r') || !old_string.includes('\n'))
    return [old_string, new_string]
  return [withCrlf(old_string), withCrlf(new_string)]
}

const withCrlf = (text: string) => text.replaceAll(/\r?\n/g, '\r\n')

type Change = { path: string; context: ToolContext }

function changeFile(inTurn: InTurn, { path, context }: Change, work: () => Promise<string>): Promise<ToolOutcome> {
  const { workspace, signal } = context
  return attempt({ subject: path, signal }, () =>
    inTurn(`${workspace}/${relativePath(path)}`, async () => {
      signal.throwIfAborted()
      return succeed(await work())
    }),
  )
}

/** Runs the works of one key one after the other; two edits at once would lose one of them. */
function createTurns() {
  const last = new Map<string, Promise<unknown>>()
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const turn = (last.get(key) ?? Promise.resolve()).then(work, work)
    last.set(key, turn)
    try {
      return await turn
    } finally {
      if (last.get(key) === turn) last.delete(key)
    }
  }
}
