import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { Request, RequestHandler, Response } from 'express'
import type { Files, NewFile } from '../../../shared/agent/files/files.ts'
import type { FileRecord } from '../../../shared/agent/files/records.ts'
import { startOfPage, toPage } from '../../../shared/kernel/cursor.ts'
import { AppError, invalidRequest } from '../../../shared/kernel/errors.ts'
import type { ByteRange } from '../../../shared/platform/objects/port.ts'
import type { RouteTable } from '../../http/routes.ts'
import type { EnterUpload, TusRequest } from '../bodies/tus.ts'
import type { ReceivedUpload, ReceiveUpload } from '../bodies/upload.ts'
import { tenantOf } from '../middleware/auth.ts'
import { type IdForm, pageRequestOf, pathId, queryNumber, queryValue, type ValueForm } from '../params.ts'
import type { FetchFile } from '../starting/fetch-file.ts'
import { requires } from './requires.ts'

export type FileSurface = { files: Files; receive: ReceiveUpload; enter: EnterUpload; fetchFile: FetchFile }

export const FILE: IdForm = { noun: 'file', pattern: /^file_[0-9a-f]{32}$/ }
/** A name of a file, without a folder. */
const NAME: ValueForm = {
  pattern: /^(?!\.{1,2}$)[^/\\\p{Cc}]{1,255}$/u,
  wanted: '1 to 255 characters without / \\ and control characters, other than . and ..',
}
const TUS_EXTENSIONS = ['creation', 'creation-with-upload', 'expiration', 'termination']
const MAX_UPLOAD_BYTES = 320 * 1024 * 1024
const MAX_RETENTION_SECS = 365 * 24 * 3_600

/** Keeps, lists, sends and deletes the files of the tenant (D43). */
export function fileRoutes(surface: FileSurface | undefined): RouteTable {
  const withFiles = requires('files', surface)
  const ofFile = (answer: (present: FileSurface, file: { req: Request; res: Response; id: string }) => Promise<void>) =>
    withFiles((present) => (req, res) => answer(present, { req, res, id: pathId(req, 'file_id', FILE) }))
  return {
    '/files': {
      get: withFiles(
        ({ files }) =>
          (req, res) =>
            listFiles(files, req, res),
      ),
      post: withFiles((present) => async (req, res) => {
        if (isTus(req)) return tus(present, { req, res })
        const name = queryValue(req, 'name', NAME)
        res.status(201).json(await keepUpload(present, { req, res }, { name, ...retentionOf(req) }))
      }),
    },
    '/files/:file_id': {
      get: ofFile(async (present, { req, res, id }) => {
        if (req.method === 'HEAD' && isTus(req)) return tus(present, { req, res, fileId: id })
        res.json(await present.files.get(tenantOf(res), id))
      }),
      patch: ofFile((present, { req, res, id }) => tus(present, { req, res, fileId: id })),
      delete: ofFile(async (present, { req, res, id }) => {
        if (isTus(req)) return tus(present, { req, res, fileId: id })
        await present.files.delete(tenantOf(res), id)
        res.json({ status: 'deleted' })
      }),
    },
    '/files/:file_id/content': { get: ofFile(({ files }, file) => sendContent(files, file)) },
  }
}

/** Adds the headers to an OPTIONS answer that describe uploads in parts. */
export const offerUploads: RequestHandler = (_req, res, next) => {
  res.setHeader('Tus-Version', '1.0.0').setHeader('Tus-Extension', TUS_EXTENSIONS.join(','))
  res.setHeader('Tus-Resumable', '1.0.0').setHeader('Tus-Max-Size', MAX_UPLOAD_BYTES)
  next()
}

/** Whether a request is of an upload in parts (tus 1.0). */
const isTus = (req: Request): boolean => req.headers['tus-resumable'] !== undefined

async function tus({ files, enter }: FileSurface, asked: TusRequest): Promise<void> {
  const { answerTus } = await import('../bodies/tus.ts')
  return answerTus(
    {
      files,
      enter,
      extensions: TUS_EXTENSIONS,
      maxBytes: MAX_UPLOAD_BYTES,
      newFileOf: (upload) => begunFile(asked.req, upload),
    },
    asked,
  )
}

/** The name is taken from the query, or else from the upload's metadata. */
function begunFile(req: Request, { bytes, name: given }: { bytes: number; name: string | undefined }) {
  const retention = retentionOf(req)
  const name = queryValue(req, 'name', NAME) ?? (given || 'file')
  if (!NAME.pattern.test(name)) throw wrongName('/Upload-Metadata')
  if (bytes === 0) throw noBytes('/Upload-Length')
  return { name, bytes, ...retention }
}

async function listFiles(files: Files, req: Request, res: Response): Promise<void> {
  const { limit, cursor } = pageRequestOf(req)
  const after = startOfPage(cursor, ['string', 'string'])
  const found = await files.page(tenantOf(res), { after, limit: limit + 1 })
  const { page, next_cursor } = toPage(found, limit, ({ created_at, file_id }) => [created_at, file_id])
  res.json({ files: page, next_cursor })
}

type Keeping = { name?: string | undefined; retentionMs?: number }

function retentionOf(req: Request): Pick<Keeping, 'retentionMs'> {
  const secs = queryNumber(req, 'expires_in_secs', [60, MAX_RETENTION_SECS])
  return secs === undefined ? {} : { retentionMs: 1_000 * secs }
}

/** Receives and keeps a file, under the given name or else the upload's. */
export async function keepUpload(
  { files, receive }: Pick<FileSurface, 'files' | 'receive'>,
  { req, res }: { req: Request; res: Response },
  { name, ...retention }: Keeping = {},
): Promise<FileRecord> {
  const upload = await receive(req, res, { takesBytes: true })
  try {
    return await files.add(tenantOf(res), {
      ...(await newFileOf(upload, name)),
      ...retention,
    })
  } finally {
    await upload.discard()
  }
}

async function newFileOf({ file }: ReceivedUpload, given: string | undefined): Promise<NewFile> {
  const name = given ?? (file.name || 'file')
  if (!NAME.pattern.test(name)) throw wrongName('/file')
  if (file.bytes === 0) throw noBytes('/file')
  const hash = createHash('sha256')
  await pipeline(createReadStream(file.path), hash)
  return { path: file.path, name, bytes: file.bytes, sha256: hash.digest('hex') }
}

const wrongName = (param: string) => invalidRequest(`the name of the file must be ${NAME.wanted}`, { param })
const noBytes = (param: string) => invalidRequest('the file is empty: send its bytes', { param })

/** Sends the bytes, or the part of them that `Range` names. A browser always saves them and never shows them. */
export async function sendContent(
  files: Files,
  { req, res, id }: { req: Request; res: Response; id: string },
): Promise<void> {
  const record = await files.get(tenantOf(res), id)
  res.setHeader('Accept-Ranges', 'bytes')
  res.setHeader('ETag', `"${record.sha256}"`)
  res.setHeader('Cache-Control', 'private, no-cache')
  if (hasBytes(req, record)) return void res.status(304).end()
  const range = rangeOf(req, record)
  const { body } = await files.open(tenantOf(res), id, range)
  res.attachment(record.name)
  res.setHeader('Content-Type', record.media_type) // Replaces the type that Express derives from the name.
  if (range) res.status(206).setHeader('Content-Range', `bytes ${range.from}-${range.to}/${record.bytes}`)
  res.setHeader('Content-Length', range ? range.to - range.from + 1 : record.bytes)
  if (req.method === 'HEAD') return void res.end()
  await pipeline(body, res).catch((cause: unknown) => {
    if (!res.headersSent) throw cause // If headers were sent the connection is closed, so that no client takes a part for the whole file.
  })
}

/** Not Express's `req.fresh`: clients with a cache of their own send `Cache-Control: no-cache` with the condition. */
const hasBytes = (req: Request, { sha256 }: FileRecord): boolean =>
  req.headers['if-none-match']?.split(',').some((tag) => tag.trim() === `"${sha256}"`) ?? false

/**
 * The one range that the request asks for; `undefined` for the whole file, also when it asks for several. Throws 416
 * for a range outside the file.
 */
function rangeOf(req: Request, { bytes, sha256 }: FileRecord): ByteRange | undefined {
  const condition = req.headers['if-range']
  if (condition !== undefined && condition !== `"${sha256}"`) return undefined
  const ranges = req.range(bytes)
  if (ranges === -1)
    throw new AppError('invalid_request', `the file has ${bytes} bytes: ask for a range within`, { status: 416 })
  if (!Array.isArray(ranges) || ranges.length !== 1 || ranges.type !== 'bytes') return undefined
  const [range] = ranges
  return range && { from: range.start, to: range.end }
}
