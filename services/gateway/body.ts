import type { Request, Response } from 'express'
import type { Bodies } from '../../shared/api/bodies.ts'
import { AppError, invalidRequest } from '../../shared/errors.ts'

export type BodyLimits = {
  maxBytes: number
  timeoutMs: number
  /** Sum over all bodies that the process is reading. */
  maxHeldBytes: number
}

const DEFAULT_LIMITS: BodyLimits = { maxBytes: 10_485_760, timeoutMs: 60_000, maxHeldBytes: 128 * 1024 * 1024 }

/**
 * Reads the body of a request and checks it against a schema of `openapi.yaml`, which describes the type `Body`. Throws
 * `invalid_request` (400, 408, 413, 415), or `unavailable` when too many bodies are being read.
 */
export type ReadBody = <Body extends object>(req: Request, res: Response, schema: string) => Promise<Body>

export function createReadBody(bodies: Bodies, limits = DEFAULT_LIMITS): ReadBody {
  const held: Held = { bytes: 0 }
  return async <Body extends object>(req: Request, res: Response, schema: string) => {
    const declared = declaredLength(req)
    if (declared === 0) return (await bodies.decode(schema, new Uint8Array(0))) as Body
    const body = new IncomingBody(req, limits, held)
    try {
      checkHeaders(req, declared, limits)
      if (req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue()
      return (await bodies.decode(schema, await body.read())) as Body
    } catch (cause) {
      if (!req.complete) res.shouldKeepAlive = false // The next request on this connection would begin behind the unread rest of the body.
      throw cause
    } finally {
      body.release()
    }
  }
}

/** The value of `Content-Length` in bytes; `undefined` for a chunked body. */
function declaredLength(req: Request): number | undefined {
  if (req.headers['transfer-encoding'] !== undefined) return undefined
  return Number(req.headers['content-length'] ?? 0)
}

function checkHeaders(req: Request, declared: number | undefined, { maxBytes }: BodyLimits): void {
  if (declared !== undefined && declared > maxBytes) throw tooLarge(maxBytes)
  const encoding = req.headers['content-encoding'] ?? 'identity'
  const transfer = req.headers['transfer-encoding'] ?? 'chunked'
  if (encoding !== 'identity' || transfer.toLowerCase() !== 'chunked')
    throw invalidRequest('send the body without Content-Encoding', { status: 415 })
  if (isJson(req.headers['content-type'])) return
  throw invalidRequest('send the body with Content-Type: application/json, in UTF-8', { status: 415 })
}

function isJson(contentType = ''): boolean {
  const [type, ...parameters] = contentType
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length)
  return type === 'application/json' && (charset === undefined || charset === 'utf-8' || charset === '"utf-8"')
}

type Held = { bytes: number }

/** The body of one request. Its bytes count towards `maxHeldBytes` until `release`. */
class IncomingBody {
  readonly #req: Request
  readonly #limits: BodyLimits
  readonly #held: Held
  readonly #done = Promise.withResolvers<void>()
  #chunks: Buffer[] = []
  #size = 0

  constructor(req: Request, limits: BodyLimits, held: Held) {
    this.#req = req
    this.#limits = limits
    this.#held = held
  }

  async read(): Promise<Uint8Array<ArrayBuffer>> {
    const { timeoutMs } = this.#limits
    const timer = setTimeout(() => this.#done.reject(tooSlow(timeoutMs)), timeoutMs).unref()
    this.#req.on('data', this.#add).once('end', this.#done.resolve).once('close', this.#onClose)
    try {
      await this.#done.promise
      return join(this.#chunks, this.#size)
    } finally {
      clearTimeout(timer)
      this.#req.off('data', this.#add).off('end', this.#done.resolve).off('close', this.#onClose)
      this.#chunks = []
    }
  }

  release(): void {
    this.#held.bytes -= this.#size
    this.#size = 0
  }

  readonly #add = (chunk: Buffer): void => {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    this.#held.bytes += chunk.length
    if (this.#size > this.#limits.maxBytes) this.#done.reject(tooLarge(this.#limits.maxBytes))
    else if (this.#held.bytes > this.#limits.maxHeldBytes) this.#done.reject(tooBusy())
  }

  readonly #onClose = (): void => {
    if (!this.#req.complete)
      this.#done.reject(invalidRequest('the client closed the connection before the body was complete'))
  }
}

/** Copies the chunks into one array with a buffer of its own, so that it can be transferred to a thread. */
function join(chunks: readonly Buffer[], size: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(size)
  let offset = 0
  for (const chunk of chunks) {
    whole.set(chunk, offset)
    offset += chunk.length
  }
  return whole
}

const tooLarge = (maxBytes: number) =>
  invalidRequest(`the body is larger than ${maxBytes} bytes; send less`, { status: 413 })

const tooSlow = (timeoutMs: number) =>
  invalidRequest(`the body did not arrive within ${timeoutMs / 1000} seconds; send it again`, { status: 408 })

const tooBusy = () =>
  new AppError('unavailable', 'the server is reading too many bodies; try again in a moment', { retryAfterSecs: 1 })
