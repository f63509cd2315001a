import { randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import type { Upload } from '../../../shared/agent/transcription/transcribe.ts'
import { invalidRequest } from '../../../shared/kernel/errors.ts'
import { UploadLine, type UploadLineLimits, type UploadPlace } from '../../../shared/tenancy/limits/upload-line.ts'
import { liftBodyDeadline } from '../../http/server.ts'
import { leaving } from '../client-gone.ts'
import { tenantOf } from '../middleware/auth.ts'
import { FilePartType, formReceiver, type Receiving, tooLarge, toRefusal, type UploadLimits } from './upload-form.ts'
import { leastBytes, watchRate } from './watch-rate.ts'

/** 320 MB (api.md "Transcription proxy"), and at least 10 KB a second. */
const LIMITS: UploadLimits = {
  maxFileBytes: 320 * 1024 * 1024,
  maxFields: 100,
  maxFieldBytes: 1024 * 1024,
  maxUploads: 64,
  maxSpoolBytes: 8 * 1024 * 1024 * 1024,
  windowMs: 15_000,
  minWindowBytes: leastBytes(15_000),
  tenantShare: 1,
  waitMs: 30_000,
  maxWaiting: 1_000,
}

export type ReceivedUpload = Upload & {
  /** Deletes the file, and frees the upload's place for the next one. */
  discard(): Promise<void>
}

/**
 * Receives a multipart form with one file, in the field `file`, into a folder; other fields keep their names, values and order.
 * An upload that finds no free place waits for its turn; its body is not read meanwhile (D9.3). Throws `invalid_request` (400, 408, 413, 415),
 * `unavailable` when its turn does not come or the disk is full, or `rate_limit` when the turn of a tenant with its share does not come, and then
 * leaves no file behind.
 */
export type ReceiveUpload = (req: Request, res: Response, options?: ReceiveOptions) => Promise<ReceivedUpload>

/** With `takesBytes`, a body that is no form is taken as the file itself, without a name. */
type ReceiveOptions = { takesBytes?: boolean }

/** The queue of the uploads of this process; receivers of several kinds may share it. */
export const createUploadLine = (given: Partial<UploadLimits> = {}): UploadLine =>
  new UploadLine(lineLimits({ ...LIMITS, ...given }))

export function createReceiveUpload(
  dir: string,
  given: Partial<UploadLimits> = {},
  line = createUploadLine(given),
): ReceiveUpload {
  const limits = { ...LIMITS, ...given }
  const uploads = new Map<Request, Receiving>()
  const receiveForm = formReceiver(dir, uploads, limits)
  return async (req, res, { takesBytes = false } = {}) => {
    checkHeaders(req, limits, takesBytes)
    liftBodyDeadline(req) // An upload may take long: `watchRate` limits it instead, from its first byte on.
    const place = await line
      .enter({ tenant: tenantOf(res), bytes: mostBytes(req, limits) }, leaving(res))
      .catch(closing(req, res))
    const early = Promise.withResolvers<never>()
    const fileType = new FilePartType(req.headers['content-type'])
    const receiving: Receiving = { fileName: randomUUID(), fields: [], fieldBytes: 0, fileType, refuse: early.reject }
    uploads.set(req, receiving)
    const receive = isForm(req) ? receiveForm : receiveBytes(join(dir, receiving.fileName), limits)
    const received = receive(req, res).finally(() => uploads.delete(req))
    const watch = watchRate(req, limits, receiving.refuse)
    try {
      if (req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue()
      await Promise.race([received, early.promise])
      return toUpload(req, receiving, place)
    } catch (cause) {
      place.leave() // At once, although multer may still be reading the body of the refused client.
      // When multer fails, too, it deletes the file itself. A file that cannot be deleted now is deleted when this
      // process ends, or another one starts here.
      received.then(() => rm(join(dir, receiving.fileName))).catch(() => {})
      return closing(req, res)(toRefusal(cause, limits))
    } finally {
      clearInterval(watch)
    }
  }
}

/** Throws the error; the rest of the body is not worth reading. */
const closing =
  (req: Request, res: Response) =>
  (cause: unknown): never => {
    if (!req.complete) res.shouldKeepAlive = false
    throw cause
  }

function lineLimits({ maxUploads, maxSpoolBytes, tenantShare, waitMs, maxWaiting }: UploadLimits): UploadLineLimits {
  const shared = (max: number) => ({ max, maxPerTenant: max * tenantShare })
  const bytesForOne = maxSpoolBytes / (2 - tenantShare) // Also counts at most one tenant's share of the other tenants' bytes.
  return { uploads: shared(maxUploads), bytes: shared(bytesForOne), waitMs, maxWaiting }
}

/** The most bytes that the file can have: a chunked body does not say its length. */
const mostBytes = (req: Request, { maxFileBytes }: UploadLimits): number =>
  Math.min(Number(req.headers['content-length'] ?? maxFileBytes), maxFileBytes)

/** Receives a body that is the file itself, as `req.file`. */
const receiveBytes =
  (path: string, limits: UploadLimits) =>
  async (req: Request): Promise<void> => {
    let size = 0
    const counted = async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        size += chunk.length
        if (size > limits.maxFileBytes) throw tooLarge(limits)
        yield chunk
      }
    }
    try {
      await pipeline(req, counted, createWriteStream(path, { flags: 'wx', mode: 0o600 }))
    } catch (cause) {
      await rm(path, { force: true })
      throw cause
    }
    req.file = { path, size, originalname: '' } as NonNullable<Request['file']>
  }

const isForm = ({ headers }: Request): boolean => /^multipart\/form-data\s*(?:;|$)/i.test(headers['content-type'] ?? '')

function checkHeaders(req: Request, limits: UploadLimits, takesBytes: boolean): void {
  const { maxFileBytes, maxFieldBytes, maxFields } = limits
  const isTaken = isForm(req) || takesBytes
  if (!isTaken || (req.headers['content-encoding'] ?? 'identity') !== 'identity') {
    const wanted = takesBytes ? 'as multipart/form-data, or as its bytes,' : 'as multipart/form-data'
    throw invalidRequest(`send the upload ${wanted} without Content-Encoding`, { status: 415 })
  }
  const most = maxFileBytes + maxFieldBytes + (maxFields + 1) * 1024 // The last term is for boundaries and headers of the parts.
  if (Number(req.headers['content-length'] ?? 0) > most) throw tooLarge({ maxFileBytes })
}

function toUpload({ file }: Request, { fields, fileType }: Receiving, place: UploadPlace): ReceivedUpload {
  if (!file) throw invalidRequest('the form has no file: send one in the field file', { param: '/file' })
  place.shrinkTo(file.size)
  return {
    fields,
    file: { path: file.path, name: file.originalname, contentType: fileType.value, bytes: file.size },
    async discard() {
      await rm(file.path, { force: true })
      place.leave()
    },
  }
}
