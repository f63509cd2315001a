import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { invalidRequest, toAppError } from '../../../kernel/errors.ts'
import type { Artifact } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { listOf, quoted, truncate } from '../../../kernel/text.ts'
import type { Files, NewFile } from '../../files/files.ts'
import { attempt } from '../attempt.ts'
import { succeed, type Tool, type ToolContext, type ToolOutcome } from '../port.ts'
import { openFile } from './file.ts'
import { assertLinksAllowed, pathSubject } from './path-rules.ts'

/** Where delivered files are kept. */
export type DeliveredFiles = Pick<Files, 'add' | 'delete'>

const MAX_PATHS = 64
/** The limit of an upload. */
const MAX_BYTES = 320 * 1024 * 1024

const INPUT = {
  type: 'object',
  properties: {
    paths: {
      type: 'array',
      minItems: 1,
      maxItems: MAX_PATHS,
      items: { type: 'string', minLength: 1, description: 'Path of a file, relative to the workspace.' },
    },
    title: { type: 'string', maxLength: 200, description: 'What the files are, in a few words.' },
  },
  required: ['paths'],
}

type Delivery = { paths: readonly string[]; title?: string }

/** Creates `Deliver` (D50): makes files of the workspace the tenant's own, which outlive it. A call delivers all of its files, or none. */
export function createDeliverTool(files: DeliveredFiles): Tool {
  return {
    name: 'Deliver',
    description: `Gives files of the workspace to the user, who can download them: reports, documents, pictures, data. At most ${MAX_PATHS} files in one call, no folders. The files are copied as they are now; deliver a file again after you have changed it.`,
    inputSchema: INPUT,
    defaultPolicy: 'allow',
    usesFiles: true,
    ruleSubject(input) {
      const subjects = (input as Delivery).paths.map(pathSubject)
      return {
        isOnly: (rule) => subjects.every((each) => each.isOnly(rule)),
        includes: (rule) => subjects.some((each) => each.includes(rule)),
      }
    },
    describe: (input) => `Give the user ${listOf((input as Delivery).paths.map((path) => truncate(path, 200)))}.`,
    run(input, context) {
      return attempt({ subject: 'Deliver', signal: context.signal }, () => deliver(input as Delivery, files, context))
    },
  }
}

async function deliver({ paths, title }: Delivery, files: DeliveredFiles, context: ToolContext): Promise<ToolOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'ae-deliver-')) // Only its owner can read the folder.
  try {
    const copies: NewFile[] = []
    for (const [i, path] of [...new Set(paths)].entries()) copies.push(await copy(path, join(folder, `${i}`), context))
    const kept = await keep(files, copies, context)
    const artifacts = kept.map((each) => ({ ...each, ...(title !== undefined && { title }) }))
    return { ...succeed(kept.map(lineOf).join('\n')), artifacts }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Copies the file that was checked, so that a file which replaces it meanwhile is not delivered. */
async function copy(path: string, to: string, context: ToolContext): Promise<NewFile> {
  const { workspace, policyOf, signal } = context
  await assertLinksAllowed('Deliver', path, context)
  if (policyOf('Read', { path }) === 'deny') throw invalidRequest(`${quoted(path)}: a rule forbids to read this file.`)
  const handle = await openFile(workspace, path)
  try {
    const { size } = await handle.stat()
    if (size === 0) throw invalidRequest(`${quoted(path)}: the file is empty.`)
    if (size > MAX_BYTES) throw tooLarge(path)
    const hash = createHash('sha256')
    let bytes = 0
    const measure = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        bytes += chunk.length
        hash.update(chunk)
        done(bytes > MAX_BYTES ? tooLarge(path) : null, chunk)
      },
    })
    await pipeline(
      handle.createReadStream({ start: 0, autoClose: false }),
      measure,
      createWriteStream(to, { mode: 0o600 }),
      { signal },
    )
    return { path: to, name: nameOf(path), bytes, sha256: hash.digest('hex') }
  } finally {
    await handle.close()
  }
}

const tooLarge = (path: string) =>
  invalidRequest(
    `${quoted(path)}: the file is larger than ${MAX_BYTES / 1024 / 1024} MB. Deliver a smaller one, or parts of it.`,
  )

/** The file's name in the form that D43 accepts. */
export const nameOf = (path: string): string => truncate(basename(path).replaceAll(/[\p{Cc}\\]/gu, '_'), 255, '')

type Keeping = { files: DeliveredFiles | undefined; context: ToolContext }

/** Keeps the files in a result (D50.5). If that fails the call does not fail, because it was carried out; its text mentions the failure. */
export async function withKept(
  outcome: ToolOutcome,
  brought: readonly NewFile[],
  { files, context }: Keeping,
): Promise<ToolOutcome> {
  if (!files || brought.length === 0) return outcome
  try {
    const artifacts = await keep(files, brought, context)
    return { ...outcome, output: [outcome.output, ...artifacts.map(lineOf)].join('\n'), artifacts }
  } catch (cause) {
    context.signal.throwIfAborted()
    return { ...outcome, output: `${outcome.output}\n[The files were not kept: ${toAppError(cause).message}]` }
  }
}

async function keep(files: DeliveredFiles, copies: readonly NewFile[], context: ToolContext): Promise<Artifact[]> {
  const { owner, assertMayAct, signal } = context
  const kept: Artifact[] = []
  try {
    for (const each of copies) {
      signal.throwIfAborted()
      assertMayAct()
      const { file_id, name, media_type, bytes } = await files.add(owner.tenant, each)
      kept.push({ file_id, name, media_type, bytes })
    }
    return kept
  } catch (cause) {
    for (const { file_id } of kept) await takeBack(files, owner.tenant, file_id)
    throw cause
  }
}

/** If this fails, the file expires by itself. */
const takeBack = (files: DeliveredFiles, tenant: TenantId, fileId: string) =>
  files.delete(tenant, fileId).catch(() => {})

const lineOf = ({ file_id, name, media_type, bytes }: Artifact): string =>
  `Delivered ${quoted(name)} (${media_type}, ${bytes} bytes) as ${file_id}.`
