import { createHash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { attachable, MAX_ATTACHMENTS } from '../../../shared/agent/files/attachable.ts'
import type { Files, NewFile } from '../../../shared/agent/files/files.ts'
import { factsOf } from '../../../shared/agent/files/media-type.ts'
import type { FileRecord } from '../../../shared/agent/files/records.ts'
import type { Broker } from '../../../shared/cluster/commands/broker.ts'
import type { RunRequest, SeedMessage, WithFiles } from '../../../shared/cluster/commands/runs.ts'
import type { AttachedFile } from '../../../shared/kernel/attachment.ts'
import { AppError, invalidRequest } from '../../../shared/kernel/errors.ts'
import { newId } from '../../../shared/kernel/ids.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { ApiType } from '../../../shared/platform/api/api-type.ts'
import type { FetchFile } from './fetch-file.ts'

/** An attachment of a request. `at` is its place in a dialect's request, for error messages. */
export type Attachment = ApiType<'Attachment'> & { at?: string }

export type AttachDeps = { files: Pick<Files, 'get' | 'keep'>; fetchFile: FetchFile }

/**
 * Wraps the broker for requests with attachments: bytes and URLs become files of the tenant, and the wrapped broker gets only their ids (D47).
 * Without a store, a request with attachments is refused.
 */
export function withAttachments(broker: Broker, deps: AttachDeps | undefined): Broker {
  const { attach, attachAll } = createAttach(deps)
  const looking = createAttach(
    deps && { ...deps, files: { get: (...args) => deps.files.get(...args), keep: describeFile } },
  )
  const startRun: Broker['startRun'] = async (tenant, { messages, ...request }, onNamed) => {
    const past = messages && { messages: await attachAll(tenant, messages) }
    return broker.startRun(tenant, { ...(await attach(tenant, request)), ...past }, onNamed)
  }
  return {
    ...broker,
    async createSession(tenant, id, begin) {
      if (!begin || 'from' in begin) return broker.createSession(tenant, id, ...(begin ? [begin] : []))
      return broker.createSession(tenant, id, await attachAll(tenant, begin))
    },
    startRun(tenant, request, onNamed) {
      return isPlain(request) ? broker.startRun(tenant, request, onNamed) : startRun(tenant, request, onNamed)
    },
    async estimateRun(tenant, { messages, ...request }) {
      const past = messages && { messages: await looking.attachAll(tenant, messages) }
      return broker.estimateRun(tenant, { ...(await looking.attach(tenant, request)), ...past })
    },
    async sendMessage(tenant, id, { seed, ...message }, onNamed) {
      const past = seed && { seed: await attachAll(tenant, seed) }
      return broker.sendMessage(tenant, id, { ...(await attach(tenant, message)), ...past }, onNamed)
    },
  }
}

/** Whether the request has nothing that could have files. */
const isPlain = ({ attachments, files, messages }: RunRequest): boolean =>
  attachments === undefined && files === undefined && messages === undefined

/** The record that a file would have: an estimate stores nothing. */
async function describeFile(_tenant: TenantId, { name, bytes, sha256, ...file }: NewFile): Promise<FileRecord> {
  const facts = await factsOf('content' in file ? file.content : Buffer.alloc(0), name)
  const now = new Date().toISOString()
  return { file_id: newId('file'), name, ...facts, bytes, sha256, created_at: now, expires_at: now }
}

function createAttach(deps: AttachDeps | undefined) {
  const known = new WeakMap<Attachment, Promise<FileRecord>>()
  const recordOf = (tenant: TenantId, attachment: Attachment, at: string): Promise<FileRecord> => {
    const found = known.get(attachment) ?? recordFor(tenant, attachment, { at, deps: presentIn(deps) })
    known.set(attachment, found) // A dialect may send a message twice; its files are fetched once.
    return found
  }
  const filesOf = async (tenant: TenantId, given: readonly Attachment[], at: string): Promise<AttachedFile[]> => {
    if (given.length > MAX_ATTACHMENTS) throw tooMany(at)
    const placeOf = (index: number) => given[index]?.at ?? `${at}/${index}`
    const records: FileRecord[] = []
    for (const [i, each] of given.entries()) records.push(await recordOf(tenant, each, placeOf(i))) // One after the other, because each is in memory.
    return attachable(records, placeOf)
  }
  const attach = async <T extends Attaching>(tenant: TenantId, request: T, at = ''): Promise<T> => {
    const { attachments, files: _files, ...rest } = request // `files` is internal: a client must not set it.
    if (!attachments?.length) return rest as T
    return { ...(rest as T), files: await filesOf(tenant, attachments, `${at}/attachments`) }
  }
  const attachAll = async (tenant: TenantId, messages: readonly SeedMessage[]) => {
    const attached: SeedMessage[] = []
    for (const [i, each] of messages.entries()) {
      const place = `/messages/${i}`
      const attachments = [...fileBlocks(each, place), ...(each.attachments ?? [])]
      attached.push(await attach(tenant, { ...each, attachments }, place))
    }
    return attached
  }
  return { attach, attachAll }
}

/** The files of a message in the format of `GET /sessions/{id}/messages`. */
const fileBlocks = ({ blocks = [] }: SeedMessage, at: string): Attachment[] =>
  blocks.flatMap(({ type, file_id: fileId }, i) => {
    if (type !== 'file') return []
    const place = `${at}/blocks/${i}/file_id`
    if (fileId === undefined) throw invalidRequest('a block of a file must have its file_id', { param: place })
    return [{ file_id: fileId, at: place }]
  })

type Attaching = { attachments?: Attachment[] | undefined } & WithFiles
type Placed = { at: string; deps: AttachDeps }

async function recordFor(tenant: TenantId, attachment: Attachment, { at, deps }: Placed): Promise<FileRecord> {
  const { file_id: fileId, data, url, name, media_type: mediaType } = attachment
  if ([fileId, data, url].filter((each) => each !== undefined).length !== 1)
    throw invalidRequest('an attachment must have one of file_id, data and url', { param: at })
  if (fileId !== undefined) return deps.files.get(tenant, fileId)
  if (url !== undefined) {
    const fetched = await deps.fetchFile(url, `${at}/url`)
    return deps.files.keep(tenant, await newFile(fetched.content, name ?? fetched.name))
  }
  const content = await bytesOf(data ?? '', `${at}/data`)
  return deps.files.keep(tenant, await newFile(content, name ?? nameFor(mediaType)))
}

/**
 * How much is decoded or hashed at once, in characters or bytes: it takes some milliseconds, so that other requests are
 * not delayed. A multiple of four.
 */
const SLICE = 1024 * 1024

async function newFile(content: Buffer, name: string) {
  const hash = createHash('sha256')
  for (let at = 0; at < content.length; at += SLICE) {
    hash.update(content.subarray(at, at + SLICE))
    await setImmediate()
  }
  return { content, name, bytes: content.length, sha256: hash.digest('hex') }
}

/** Decodes base64 (RFC 4648), also in the URL alphabet. `Buffer` alone would skip invalid characters. */
async function bytesOf(data: string, param: string): Promise<Buffer> {
  const parts: Buffer[] = []
  for (let at = 0; at < data.length; at += SLICE) {
    const isLast = at + SLICE >= data.length
    const part = data.slice(at, at + SLICE)
    if (!(isLast ? /^[A-Za-z0-9+/_-]+={0,2}$/ : /^[A-Za-z0-9+/_-]+$/).test(part)) throw notBase64(param)
    parts.push(Buffer.from(part, 'base64'))
    await setImmediate()
  }
  const content = Buffer.concat(parts)
  if (content.length > 0) return content
  throw notBase64(param)
}

const notBase64 = (param: string) =>
  invalidRequest(`${param.slice(1)} must be the bytes of a file in base64`, { param })

/** The extension of a file that is stored without a name, by its media type. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'application/json': 'json',
  'application/pdf': 'pdf',
  'audio/mpeg': 'mp3',
  'image/jpeg': 'jpg',
  'image/svg+xml': 'svg',
  'text/markdown': 'md',
  'text/plain': 'txt',
}

function nameFor(mediaType = ''): string {
  const [, subtype] = /^\w+\/([a-z0-9]{1,5})$/.exec(mediaType) ?? []
  const end = EXTENSIONS[mediaType] ?? subtype
  return end === undefined ? 'file' : `file.${end}`
}

function presentIn(deps: AttachDeps | undefined): AttachDeps {
  if (deps) return deps
  throw new AppError('unavailable', 'this server keeps no files: set MONGODB_URL, or leave the attachments out')
}

const tooMany = (param: string) =>
  invalidRequest(`a message can have ${MAX_ATTACHMENTS} attachments at most`, { param })
