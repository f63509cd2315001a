import type { FileHandle } from 'node:fs/promises'
import { createKeyedQueue, type KeyedQueue } from '../../../kernel/async/keyed-queue.ts'
import { attachmentLine, attachmentType, MAX_ATTACHMENT_BYTES } from '../../../kernel/attachment.ts'
import { notFound } from '../../../kernel/errors.ts'
import { quoted, truncate } from '../../../kernel/text.ts'
import { attempt } from '../attempt.ts'
import { fail, succeed, type Tool, type ToolContext, type ToolOutcome } from '../port.ts'
import { applyEdit, type Edit } from './edit.ts'
import { FILE_MAX_BYTES, openFile, readText, readUpTo, writeText } from './file.ts'
import { previewOf } from './file-preview.ts'
import { assertLinksAllowed, pathSubject } from './path-rules.ts'
import { createQuota, type Quota } from './quota.ts'
import { type Excerpt, type Lines, readLines } from './read-lines.ts'

const DEFAULT_LINES = 2_000
const MAX_LINES = 10_000
/** With 2,000 line numbers and the note after them, a page fits into the 64 KiB that the engine gives the model. */
const PAGE_BYTES = 48 * 1024

const PATH = { type: 'string', minLength: 1, description: 'Path of the file, relative to the workspace.' }

const MB = 1_048_576
const DEFAULT_QUOTA_BYTES = 100 * MB

/**
 * Creates `Read`, `Write` and `Edit` (D5.1). Changes in one workspace run one after another: two concurrent edits of a file would lose
 * one, and two concurrent writes could both find room in the quota for one.
 */
export function createFileTools(quota = createQuota({ maxBytes: DEFAULT_QUOTA_BYTES })): Tool[] {
  const changes = { queue: createKeyedQueue(), quota }
  return [readTool(), writeTool(changes), editTool(changes)]
}

type Changes = { queue: KeyedQueue; quota: Quota }

function readTool(): Tool {
  return {
    name: 'Read',
    description: `Reads a text file of the workspace, or shows an image or a PDF. Of a text, each line of the answer is the line's number, a tab and the line; number and tab are not part of the file. At most ${DEFAULT_LINES} lines or ${PAGE_BYTES / 1024} KiB are shown, or fewer with limit; offset is the number of the first line to show.`,
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
    usesFiles: true,
    isReadOnly: true,
    ruleSubject: ({ path }) => pathSubject(path),
    describe: ({ path }) => `Read the file ${shortPath(path)}.`,
    run(input, context) {
      const { path, offset = 1, limit = DEFAULT_LINES } = input as { path: string; offset?: number; limit?: number }
      const { workspace, signal } = context
      return attempt({ subject: path, signal }, async () => {
        await assertLinksAllowed('Read', path, context)
        const handle = await openFile(workspace, path)
        try {
          const attached = await readAttachment(handle, path)
          if (attached) return attached
          const excerpt = { path, offset, limit: Math.min(limit, DEFAULT_LINES), maxBytes: PAGE_BYTES }
          return toOutcome(await readLines(handle, excerpt, signal), excerpt)
        } finally {
          await handle.close()
        }
      })
    },
  }
}

const shortPath = (path: unknown) => truncate(String(path), 200)

/** Reads a whole image or PDF, for models that accept them; `undefined` for every other file. */
async function readAttachment(handle: FileHandle, path: string): Promise<ToolOutcome | undefined> {
  const mediaType = attachmentType(await readUpTo(handle, 16))
  if (mediaType === undefined) return undefined
  const bytes = await readUpTo(handle, MAX_ATTACHMENT_BYTES + 1)
  if (bytes.length > MAX_ATTACHMENT_BYTES) {
    return fail(
      `${quoted(path)}: an image or PDF of more than ${MAX_ATTACHMENT_BYTES / 1024 / 1024} MiB cannot be shown.`,
    )
  }
  const attachment = { name: path, mediaType, base64: bytes.toString('base64') }
  return { ...succeed(attachmentLine(attachment)), attachments: [attachment] }
}

function toOutcome({ lines, total, end }: Lines, { offset, maxBytes }: Excerpt): ToolOutcome {
  if (lines.length === 0 && offset === 1) return succeed('(The file is empty.)')
  if (lines.length === 0) return fail(`The file has ${total} lines; offset ${offset} is past its end.`)
  const last = offset + lines.length - 1
  const text = lines.map((line, index) => `${offset + index}\t${line.replace(/^\uFEFF/, '')}`).join('\n')
  if (end === 'file') return succeed(text)
  const cut =
    end === 'line'
      ? `Line ${last} is longer than ${maxBytes} bytes; the rest of it cannot be shown.`
      : `These are lines ${offset} to ${last}; the file goes on.`
  return succeed(`${text}\n\n[${cut} Use offset=${last + 1} to read further.]`)
}

function writeTool(changes: Changes): Tool {
  return {
    name: 'Write',
    description: `Writes a text file of the workspace and replaces its old content. Missing folders are created. At most ${FILE_MAX_BYTES / 1024 / 1024} MiB.`,
    inputSchema: {
      type: 'object',
      properties: { path: PATH, content: { type: 'string', description: 'The whole new content.' } },
      required: ['path', 'content'],
    },
    defaultPolicy: 'ask',
    usesFiles: true,
    ruleSubject: ({ path }) => pathSubject(path),
    describe: ({ path, content }) =>
      `Write ${Buffer.byteLength(String(content))} bytes to the file ${shortPath(path)}.`,
    preview(input, context) {
      const { path, content } = input as { path: string; content: string }
      return previewOf({ tool: 'Write', path, change: () => content }, context)
    },
    run(input, context) {
      const { path, content } = input as { path: string; content: string }
      return changeFile(changes, { tool: 'Write', path, context }, async () => {
        await write(changes, { path, context }, content)
        return `Wrote ${Buffer.byteLength(content)} bytes to ${quoted(path)}.`
      })
    },
  }
}

function editTool(changes: Changes): Tool {
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
    usesFiles: true,
    ruleSubject: ({ path }) => pathSubject(path),
    describe: ({ path }) => `Change the file ${shortPath(path)}.`,
    preview(input, context) {
      const edit = input as Edit
      return previewOf({ tool: 'Edit', path: edit.path, change: (before) => changed(before, edit) }, context)
    },
    run(input, context) {
      const edit = input as Edit
      return changeFile(changes, { tool: 'Edit', path: edit.path, context }, async () => {
        const { text, count } = applyEdit(await readText(context.workspace, edit.path), edit)
        await write(changes, { path: edit.path, context }, text)
        return `Changed ${edit.path} in ${count === 1 ? 'one place' : `${count} places`}.`
      })
    },
  }
}

function changed(before: string | undefined, edit: Edit): string {
  if (before === undefined) throw notFound(`${quoted(edit.path)}: no such file.`)
  return applyEdit(before, edit).text
}

type Target = { path: string; context: ToolContext }

async function write({ quota }: Changes, { path, context }: Target, content: string): Promise<void> {
  await quota.admit(context.workspace, path, Buffer.byteLength(content))
  await writeText(context, path, content)
}

function changeFile(
  { queue }: Changes,
  { tool, path, context }: Target & { tool: string },
  work: () => Promise<string>,
): Promise<ToolOutcome> {
  const { workspace, signal } = context
  return attempt({ subject: path, signal }, () =>
    queue.run(workspace, async () => {
      signal.throwIfAborted()
      await assertLinksAllowed(tool, path, context)
      return succeed(await work())
    }),
  )
}
