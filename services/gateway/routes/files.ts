import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import type { Request, Response } from 'express'
import type { Files, NewFile } from '../../../shared/agent/files/files.ts'
import type { FileRecord } from '../../../shared/agent/files/records.ts'
import { startOfPage, toPage } from '../../../shared/kernel/cursor.ts'
import { AppError, invalidRequest } from '../../../shared/kernel/errors.ts'
import type { ByteRange } from '../../../shared/platform/objects/port.ts'
import type { RouteTable } from '../../http/routes.ts'
import type { ReceivedUpload, ReceiveUpload } from '../bodies/upload.ts'
import { tenantOf } from '../middleware/auth.ts'
import { type IdForm, pageRequestOf, pathId, queryNumber, queryValue, type ValueForm } from '../params.ts'
import type { FetchFile } from '../starting/fetch-file.ts'
import { requires } from './requires.ts'

export type FileSurface = { files: Files; receive: ReceiveUpload; fetchFile: FetchFile }

export const FILE: IdForm = { noun: 'file', pattern: /^file_[0-9a-f]{32}$/ }
/** A name of a file, without a folder. */
const NAME: ValueForm = {
  pattern: /^(?!\.{1,2}$)[^/\\\p{Cc}]{1,255}$/u,
  wanted: '1 to 255 characters without / \\ and control characters, other than . and ..',
}
const MAX_RETENTION_SECS = 365 * 24 * 3_600

/** Keeps, lists, sends and deletes the files of the tenant (D43). */
export function fileRoutes(surface: FileSurface | undefined): RouteTable {
  const withFiles = requires('files', surface)
  const ofFile = (answer: (files: Files, file: { req: Request; res: Response; id: string }) => Promise<void>) =>
    withFiles(
      ({ files }) =>
        (req, res) =>
          answer(files, { req, res, id: pathId(req, 'file_id', FILE) }),
    )
  return {
    '/files': {
      get: withFiles(
        ({ files }) =>
          (req, res) =>
            listFiles(files, req, res),
      ),
      post: withFiles((present) => async (req, res) => {
        const name = queryValue(req, 'name', NAME)
        const expiresInSecs = queryNumber(req, 'expires_in_secs', [60, MAX_RETENTION_SECS])
        res.status(201).json(await keepUpload(present, { req, res }, { name, expiresInSecs }))
      }),
    },
    '/files/:file_id': {
      get: ofFile(async (files, { res, id }) => void res.json(await files.get(tenantOf(res), id))),
      delete: ofFile(async (files, { res, id }) => {
        await files.delete(tenantOf(res), id)
        res.json({ status: 'deleted' })
      }),
    },
    '/files/:file_id/content': { get: ofFile(sendContent) },
  }
}

async function listFiles(files: Files, req: Request, res: Response): Promise<void> {
  const { limit, cursor } = pageRequestOf(req)
  const after = startOfPage(cursor, ['string', 'string'])
  const found = await files.page(tenantOf(res), { after, limit: limit + 1 })
  const { page, next_cursor } = toPage(found, limit, ({ created_at, file_id }) => [created_at, file_id])
  res.json({ files: page, next_cursor })
}

type Keeping = { name?: string | undefined; expiresInSecs?: number | undefined }

/** Receives a file, under the name that is given here or that its upload has, and keeps it. */
export async function keepUpload(
  { files, receive }: Pick<FileSurface, 'files' | 'receive'>,
  { req, res }: { req: Request; res: Response },
  { name, expiresInSecs }: Keeping = {},
): Promise<FileRecord> {
  const upload = await receive(req, res, { takesBytes: true })
  try {
    return await files.add(tenantOf(res), {
      ...(await newFileOf(upload, name)),
      ...(expiresInSecs !== undefined && { retentionMs: 1_000 * expiresInSecs }),
    })
  } finally {
    await upload.discard()
  }
}

async function newFileOf({ file }: ReceivedUpload, given: string | undefined): Promise<NewFile> {
  const name = given ?? (file.name || 'file')
  if (!NAME.pattern.test(name)) throw invalidRequest(`the name of the file must be ${NAME.wanted}`, { param: '/file' })
  if (file.bytes === 0) throw invalidRequest('the file is empty: send its bytes', { param: '/file' })
  const hash = createHash('sha256')
  await pipeline(createReadStream(file.path), hash)
  return { path: file.path, name, bytes: file.bytes, sha256: hash.digest('hex') }
}

/** Sends the bytes, or the part of them that `Range` names. A browser saves them and never shows them, whatever they are. */
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
  res.setHeader('Content-Type', record.media_type) // In place of the type of the name.
  if (range) res.status(206).setHeader('Content-Range', `bytes ${range.from}-${range.to}/${record.bytes}`)
  res.setHeader('Content-Length', range ? range.to - range.from + 1 : record.bytes)
  if (req.method === 'HEAD') return void res.end()
  await pipeline(body, res).catch((cause: unknown) => {
    if (!res.headersSent) throw cause // Otherwise the connection has ended, so that nobody takes a part for the whole.
  })
}

/** Not Express's `req.fresh`: clients with a cache of their own send `Cache-Control: no-cache` with the condition. */
const hasBytes = (req: Request, { sha256 }: FileRecord): boolean =>
  req.headers['if-none-match']?.split(',').some((tag) => tag.trim() === `"${sha256}"`) ?? false

/** The one range that the request wants; `undefined` for the whole file, also where it wants several. Throws 416 for a part that the file has not. */
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
