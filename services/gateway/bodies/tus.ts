import { PassThrough, Readable } from 'node:stream'
import { DataStore, MemoryLocker, Server, Upload } from '@tus/server'
import type { Request as ExpressRequest, Response as ExpressResponse } from 'express'
import { FILE_LIMITS, type Files } from '../../../shared/agent/files/files.ts'
import { AppError, type ErrorKind } from '../../../shared/kernel/errors.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { UploadPlace } from '../../../shared/tenancy/limits/upload-line.ts'
import { liftBodyDeadline } from '../../http/server.ts'
import { leaving } from '../client-gone.ts'
import { tenantOf } from '../middleware/auth.ts'
import { leastBytes, watchRate } from './watch-rate.ts'

/** A file that an upload begins: what its metadata say is checked by `newFileOf`. */
export type BegunFile = { name: string; bytes: number; retentionMs?: number }

/** Resolves when it is the turn of an upload, which is then to leave its place. */
export type EnterUpload = (tenant: TenantId, signal: AbortSignal) => Promise<UploadPlace>

export type TusParts = {
  files: Files
  enter: EnterUpload
  extensions: readonly string[]
  maxBytes: number
  /** Throws `invalid_request` for a file that may not begin so. */
  newFileOf(upload: { bytes: number; name: string | undefined }): BegunFile
}

/** The route of a request; no `fileId` where an upload is created. */
export type TusRequest = { req: ExpressRequest; res: ExpressResponse; fileId?: string }

const RATE = { windowMs: 15_000, minWindowBytes: leastBytes(15_000) }

/** The requests of an upload that are here wait for each other; those of other processes are told apart by the offset. */
const locker = new MemoryLocker()

/** Answers a request of tus 1.0 (D43.5a). The id of an upload is that of the file. Throws `not_found` for one of another tenant, before it disturbs the upload. */
export async function answerTus(parts: TusParts, { req, res, fileId }: TusRequest): Promise<void> {
  const tenant = tenantOf(res)
  if (fileId !== undefined) await parts.files.uploads.check(tenant, fileId)
  let failure: unknown
  const server = new Server({
    path: `${req.baseUrl}/files`,
    datastore: new FileStore(parts, tenant),
    locker,
    maxSize: parts.maxBytes,
    generateUrl: (_req, { path, id }) => `${path}/${id}`,
    getFileIdFromRequest: () => fileId,
    onResponseError(_req, cause) {
      failure ??= cause
      return undefined
    },
  })
  const place = hasBody(req) ? await parts.enter(tenant, leaving(res)) : undefined
  const source = new PassThrough()
  const stop = feed(source, req)
  try {
    const answer = await server.handleWeb(webRequestOf(req, place && source))
    if (answer.status >= 400) throw refusalOf(failure, answer.status, await answer.text())
    for (const [name, value] of answer.headers) if (/^(?:tus-|upload-|location$)/.test(name)) res.setHeader(name, value)
    res.status(answer.status).end()
  } catch (cause) {
    res.setHeader('Tus-Resumable', '1.0.0').setHeader('Tus-Version', '1.0.0')
    if (!req.complete) res.shouldKeepAlive = false // The rest of the body is not worth reading.
    throw cause
  } finally {
    stop()
    place?.leave()
  }
}

const hasBody = ({ headers }: ExpressRequest): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/** Passes the body on until it ends, breaks off or arrives too slowly. The connection stays, so that an answer can be sent. */
function feed(source: PassThrough, req: ExpressRequest): () => void {
  if (!hasBody(req)) return () => source.end()
  liftBodyDeadline(req)
  const watch = watchRate(req, RATE, (error) => source.destroy(error))
  const onClose = () => req.complete || source.destroy(new Error('the connection broke off'))
  req.once('close', onClose).pipe(source)
  source.on('error', () => {}) // The store has it, too.
  return () => {
    clearInterval(watch)
    req.off('close', onClose).unpipe(source)
    source.destroy()
  }
}

function webRequestOf(req: ExpressRequest, body: Readable | undefined): Parameters<Server['handleWeb']>[0] {
  const headers = new Headers()
  for (const [name, values] of Object.entries(req.headersDistinct))
    for (const each of values ?? []) headers.append(name, each)
  return new Request(`http://upload${req.originalUrl}`, {
    ...{ method: req.method, headers },
    ...(body && { body: Readable.toWeb(body), duplex: 'half' }),
  })
}

const KINDS: Record<number, ErrorKind> = { 404: 'not_found', 409: 'conflict' }

/** What the store has thrown, or what the protocol refuses: in the envelope of this API. */
function refusalOf(failure: unknown, status: number, text: string): unknown {
  if (failure instanceof AppError) return failure
  if (failure instanceof Error && !('status_code' in failure)) return failure
  const kind = KINDS[status]
  if (kind) return new AppError(kind, text.trim())
  const own = /tus-resumable/i.test(text) ? 412 : status
  return new AppError('invalid_request', text.trim(), own === 412 || own === 413 ? { status: own } : {})
}

/** The files of a tenant as the library wants them. */
class FileStore extends DataStore {
  readonly #parts: TusParts
  readonly #tenant: TenantId

  constructor(parts: TusParts, tenant: TenantId) {
    super()
    this.extensions = [...parts.extensions]
    this.#parts = parts
    this.#tenant = tenant
  }

  override async create(upload: Upload): Promise<Upload> {
    const { filename, name } = upload.metadata ?? {}
    const begun = this.#parts.newFileOf({ bytes: upload.size ?? 0, name: filename ?? name ?? undefined })
    upload.id = await this.#parts.files.begin(this.#tenant, begun)
    upload.creation_date = new Date().toISOString()
    return upload
  }

  override async getUpload(id: string): Promise<Upload> {
    const { name, bytes, offset, created_at } = await this.#parts.files.uploads.get(this.#tenant, id)
    const creation = offset < bytes && { creation_date: created_at } // A complete upload does not expire any more.
    return new Upload({ id, size: bytes, offset, metadata: { filename: name }, ...creation })
  }

  override write(stream: Readable, id: string, offset: number): Promise<number> {
    return this.#parts.files.uploads.receive(this.#tenant, { fileId: id, offset }, stream)
  }

  override remove(id: string): Promise<void> {
    return this.#parts.files.delete(this.#tenant, id, { isUpload: true })
  }

  override getExpiration(): number {
    return FILE_LIMITS.uploadMs
  }
}
