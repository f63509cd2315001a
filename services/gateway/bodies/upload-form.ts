import type { Writable } from 'node:stream'
import type { Request, Response } from 'express'
import multer, { diskStorage, MulterError, type Options } from 'multer'
import { AppError, invalidRequest } from '../../../shared/kernel/errors.ts'
import type { RateLimits } from './watch-rate.ts'

export type UploadLimits = RateLimits & {
  maxFileBytes: number
  maxFields: number
  /** The limit for all fields together, without the file. */
  maxFieldBytes: number
  /** Uploads at one time in this process, those that wait for their backend included. */
  maxUploads: number
  /** Bytes of their files together. A part is kept for tenants below their share. */
  maxSpoolBytes: number
  /** The share of both that one tenant may take while others wait. */
  tenantShare: number
  /** How long an upload waits for its turn, and how many do. */
  waitMs: number
  maxWaiting: number
}

const MAX_NAME_BYTES = 200
const BUSY_RETRY_SECS = 10

/** An upload that is being received. */
export type Receiving = {
  /** The name under which the folder holds the file. */
  fileName: string
  fields: [name: string, value: string][]
  fieldBytes: number
  fileType: FilePartType
  refuse(error: AppError): void
}

/** With the hook that multer's types do not know yet. */
type FormOptions = Options & { streamHandler(req: Request, parser: Writable): void }

/** multer with a promise. It keeps the file; the fields are taken from the parser, since multer nests names such as `a[]`. */
export function formReceiver(dir: string, uploads: ReadonlyMap<Request, Receiving>, limits: UploadLimits) {
  const of = (req: unknown): Receiving => {
    const receiving = uploads.get(req as Request)
    if (!receiving) throw new Error('a form is received that no request has brought')
    return receiving
  }
  const options: FormOptions = {
    storage: diskStorage({
      destination: dir,
      filename: (req, _file, done) => done(null, of(req).fileName),
    }),
    defParamCharset: 'utf8',
    limits: {
      fileSize: limits.maxFileBytes,
      files: 1,
      fields: limits.maxFields,
      parts: limits.maxFields + 1,
      fieldSize: limits.maxFieldBytes,
      fieldNameSize: MAX_NAME_BYTES,
    },
    streamHandler(req, parser) {
      const receiving = of(req)
      parser.on('field', (name: string, value: string) => takeField(receiving, [name, value], limits))
      // multer reads an upload that it refuses to its end first, however long that is.
      parser.on('file', (_name: string, file: NodeJS.EventEmitter) => {
        file.on('limit', () => receiving.refuse(tooLarge(limits)))
      })
      req.on('data', (chunk: Buffer) => receiving.fileType.push(chunk))
      req.pipe(parser)
    },
  }
  const receive = multer(options).single('file')
  return async (req: Request, res: Response): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    receive(req, res, (error?: unknown) => (error === undefined ? resolve() : reject(error)))
    return promise
  }
}

function takeField(receiving: Receiving, field: [name: string, value: string], limits: UploadLimits): void {
  receiving.fields.push(field)
  receiving.fieldBytes += field[0].length + field[1].length
  if (receiving.fieldBytes > limits.maxFieldBytes) receiving.refuse(fieldsTooLarge(limits))
}

/** The error that the client gets for a failed upload. A failure that is neither the client's nor the disk's is returned as it is. */
export function toRefusal(cause: unknown, limits: UploadLimits): unknown {
  if (cause instanceof AppError) return cause
  if (cause instanceof MulterError) return refusalOf(cause, limits)
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (/^(?:ENOSPC|EDQUOT|EMFILE|ENFILE|EROFS|EIO)$/.test(code)) return noRoom(cause)
  if (code !== '') return cause
  return invalidRequest('the body is not a valid multipart form: it is malformed or ends early', { cause })
}

function refusalOf({ code, field }: MulterError, limits: UploadLimits): AppError {
  if (code === 'LIMIT_FIELD_VALUE') return fieldsTooLarge(limits)
  if (code === 'LIMIT_UNEXPECTED_FILE' || code === 'LIMIT_FILE_COUNT') {
    return invalidRequest('send exactly one file, in the field file', { param: '/file' })
  }
  if (code === 'LIMIT_FIELD_KEY') return invalidRequest(`a field's name has more than ${MAX_NAME_BYTES} bytes`)
  if (code === 'LIMIT_FIELD_COUNT' || code === 'LIMIT_PART_COUNT') {
    return invalidRequest(`the form has more than ${limits.maxFields} fields: send fewer`)
  }
  return invalidRequest(`the form has a part without a usable name${field === undefined ? '' : `: ${field}`}`)
}

export const tooLarge = ({ maxFileBytes }: Pick<UploadLimits, 'maxFileBytes'>) =>
  invalidRequest(`the file is larger than ${maxFileBytes} bytes: send it in smaller pieces`, {
    status: 413,
    param: '/file',
  })

const fieldsTooLarge = ({ maxFieldBytes }: UploadLimits) =>
  invalidRequest(`the fields beside the file are larger than ${maxFieldBytes} bytes together`, { status: 413 })

const noRoom = (cause: unknown) =>
  new AppError('unavailable', 'this server cannot store the upload at the moment; try again', {
    retryAfterSecs: BUSY_RETRY_SECS,
    cause,
  })

/** A type as the part names it, with its parameters. */
const TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:\s*;.*)?$/

/** The type of a part that names none, or a wrong one. */
const UNKNOWN = 'application/octet-stream'

/**
 * Finds the Content-Type of a form's file in its bytes, with parameters such as the codec of a recording: the parser of the form keeps
 * the bare type only, and calls a file without one `text/plain`.
 */
export class FilePartType {
  readonly #headers: RegExp
  #rest = '\r\n'
  #found: string | undefined

  /** `contentType` is the one of the whole form. */
  constructor(contentType = '') {
    const [, quoted, bare = ''] = /;\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType) ?? []
    this.#headers = new RegExp(
      `\r\n--${(quoted ?? bare).replaceAll(/\W/g, '\\$&')}[ \t]*\r\n((?:[^\r\n]+\r\n)*)\r\n`,
      'g',
    )
  }

  get value(): string {
    return this.#found ?? UNKNOWN
  }

  push(chunk: Buffer): void {
    if (this.#found !== undefined) return
    this.#rest += chunk.toString('latin1')
    let end = 0
    for (const { 0: whole, 1: headers = '', index } of this.#rest.matchAll(this.#headers)) {
      end = index + whole.length - 2 // The next boundary may follow at once.
      const isFile = /^content-disposition:.*;\s*filename\*?=/im.test(headers)
      const type = /^content-type:[ \t]*(.*?)[ \t]*$/im.exec(headers)?.[1] ?? ''
      if (!isFile && !type.toLowerCase().startsWith(UNKNOWN)) continue
      this.#found = TYPE.test(type) ? type : UNKNOWN
      this.#rest = ''
      return
    }
    this.#rest = this.#rest.slice(end)
  }
}
