import type { Request, Response } from 'express'
import { AppError, invalidRequest, tooMany } from '../../../shared/kernel/errors.ts'
import type { JsonObject } from '../../../shared/kernel/events.ts'
import type { TenantId } from '../../../shared/kernel/tenant.ts'
import type { ApiType, ApiTypeName } from '../../../shared/platform/api/api-type.ts'
import type { Bodies } from '../../../shared/platform/api/bodies.ts'
import type { Decoded } from '../../../shared/platform/api/decode.ts'
import { ignoredFieldsHeader, MAX_FIELDS } from '../../../shared/platform/api/ignored-fields.ts'
import { TenantShares } from '../../../shared/platform/fairness/tenant-shares.ts'
import { tenantOf } from '../middleware/auth.ts'
import { decodeLines, isJsonLines, LINES_SCHEMA } from './lines.ts'
import { leastBytes, type RateLimits, watchRate } from './watch-rate.ts'

export type BodyLimits = RateLimits & {
  maxBytes: number
  timeoutMs: number
  /** A body up to this size is always read. The others take room until they are decoded, and have a least rate. */
  smallBytes: number
  /** The room: sum over all bodies that take some. */
  maxHeldBytes: number
  /** The share of the room that one tenant may take. */
  tenantShare: number
}

const DEFAULT_LIMITS: BodyLimits = {
  maxBytes: 10_485_760,
  timeoutMs: 60_000,
  smallBytes: 16 * 1024,
  maxHeldBytes: 128 * 1024 * 1024,
  tenantShare: 1,
  windowMs: 5_000,
  minWindowBytes: leastBytes(5_000),
}

/**
 * Reads the body of a request and checks it against a schema of `openapi.yaml`. Throws `invalid_request` (400, 408, 413, 415);
 * `rate_limit` or `unavailable` when the tenant, or all, are sending too much at once.
 */
export type ReadBody = <Name extends ApiTypeName>(req: Request, res: Response, schema: Name) => Promise<ApiType<Name>>

export function createReadBody(bodies: Bodies, given: Partial<BodyLimits> = {}): ReadBody {
  const limits = { ...DEFAULT_LIMITS, ...given }
  const { maxHeldBytes: max, tenantShare } = limits
  const room = new TenantShares({ max, maxPerTenant: max * tenantShare })
  return async <Name extends ApiTypeName>(req: Request, res: Response, schema: Name) => {
    const isLines = schema === LINES_SCHEMA && isJsonLines(req.headers['content-type'])
    const decode = (bytes: Uint8Array<ArrayBuffer>) => {
      if (bytes.length === 0 && req.method === 'PUT') throw noBody()
      const decoding = isLines ? decodeLines(bodies, bytes, req.query) : bodies.decode(schema, bytes)
      const decoded = decoding instanceof Promise ? decoding.then((each) => accept(res, each)) : accept(res, decoding)
      return decoded as ApiType<Name> | Promise<ApiType<Name>>
    }
    const declared = declaredLength(req)
    if (declared === 0) return decode(new Uint8Array(0))
    const body = new IncomingBody(req, limits, { tenant: tenantOf(res), room })
    try {
      checkHeaders(req, declared, { maxBytes: limits.maxBytes, isLines, mayBeLines: schema === LINES_SCHEMA })
      if (req.headers.expect?.toLowerCase() === '100-continue') res.writeContinue()
      const decoded = decode(await body.read())
      return decoded instanceof Promise ? await decoded : decoded
    } catch (cause) {
      if (!req.complete) res.shouldKeepAlive = false // The next request on this connection would begin behind the unread rest of the body.
      throw cause
    } finally {
      body.release()
    }
  }
}

/** Checks a value that is a part of a body against a schema of `openapi.yaml`. Throws `invalid_request`, with the place behind `at`. */
export type CheckValue = <Name extends ApiTypeName>(
  schema: Name,
  value: JsonObject,
  at: string,
) => Promise<ApiType<Name>>

export const createCheckValue =
  (bodies: Bodies): CheckValue =>
  async <Name extends ApiTypeName>(schema: Name, value: JsonObject, at: string) => {
    const decoded = await bodies.decode(schema, new TextEncoder().encode(JSON.stringify(value)))
    if ('value' in decoded) return decoded.value as ApiType<Name>
    const { message, param = '' } = decoded.refusal
    throw invalidRequest(message, { param: `${at}${param}` })
  }

/** Names the fields that were ignored in a header of the answer, whatever the answer is (D2.4). */
export function accept(res: Response, decoded: Decoded): JsonObject {
  const { ignored = [] } = decoded
  nameIgnored(res, [...ignoredFields(res), ...ignored]) // The lines of a file come behind a body.
  if ('value' in decoded) return decoded.value
  const { message, param } = decoded.refusal
  throw invalidRequest(message, { param })
}

/** Names the fields of the request's body that nothing reads in the answer's header. */
export function nameIgnored(res: Response, pointers: readonly string[]): void {
  const named = pointers.slice(0, MAX_FIELDS)
  res.locals['ignoredFields'] = named
  if (named.length > 0) res.setHeader('X-Ignored-Fields', ignoredFieldsHeader(named))
}

/** The JSON pointers of the fields of the request's body that nothing reads. */
export const ignoredFields = (res: Response): readonly string[] => res.locals['ignoredFields'] ?? []

/** The value of `Content-Length` in bytes; `undefined` for a chunked body. */
function declaredLength(req: Request): number | undefined {
  if (req.headers['transfer-encoding'] !== undefined) return undefined
  return Number(req.headers['content-length'] ?? 0)
}

type Expected = Pick<BodyLimits, 'maxBytes'> & { isLines: boolean; mayBeLines: boolean }

function checkHeaders(req: Request, declared: number | undefined, { maxBytes, isLines, mayBeLines }: Expected): void {
  if (declared !== undefined && declared > maxBytes) throw tooLarge(maxBytes)
  const encoding = req.headers['content-encoding'] ?? 'identity'
  const transfer = req.headers['transfer-encoding'] ?? 'chunked'
  if (encoding !== 'identity' || transfer.toLowerCase() !== 'chunked')
    throw invalidRequest('send the body without Content-Encoding', { status: 415 })
  if (isLines || isJson(req.headers['content-type'])) return
  const lines = mayBeLines ? ', or its items as lines with application/jsonl' : ''
  throw invalidRequest(`send the body with Content-Type: application/json, in UTF-8${lines}`, { status: 415 })
}

function isJson(contentType = ''): boolean {
  const [type, ...parameters] = contentType
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length)
  return type === 'application/json' && (charset === undefined || charset === 'utf-8' || charset === '"utf-8"')
}

type Room = { tenant: TenantId; room: TenantShares }

/** The body of one request. If it is not small, its bytes take room until `release`. */
class IncomingBody {
  readonly #req: Request
  readonly #limits: BodyLimits
  readonly #room: Room
  #resolve: (bytes: Uint8Array<ArrayBuffer>) => void = () => {}
  #reject: (cause: unknown) => void = () => {}
  #timer: NodeJS.Timeout | undefined
  #chunks: Buffer[] = []
  #size = 0
  #heldBytes = 0
  #rate: NodeJS.Timeout | undefined

  constructor(req: Request, limits: BodyLimits, room: Room) {
    this.#req = req
    this.#limits = limits
    this.#room = room
  }

  read(): Promise<Uint8Array<ArrayBuffer>> {
    const { timeoutMs } = this.#limits
    this.#timer = setTimeout(() => this.#fail(tooSlow(timeoutMs)), timeoutMs).unref()
    this.#req.on('data', this.#add).on('end', this.#onEnd).on('close', this.#onClose)
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  release(): void {
    this.#room.room.add(this.#room.tenant, -this.#heldBytes)
    this.#heldBytes = 0
  }

  readonly #add = (chunk: Buffer): void => {
    this.#chunks.push(chunk)
    this.#size += chunk.length
    const { maxBytes, smallBytes } = this.#limits
    if (this.#size > maxBytes) this.#fail(tooLarge(maxBytes))
    else if (this.#size > smallBytes) this.#hold()
  }

  #hold(): void {
    const { tenant, room } = this.#room
    const bytes = this.#size - this.#heldBytes
    const full = room.exceeded(tenant, bytes)
    if (full) return this.#fail(full === 'tenant' ? tenantIsBusy() : tooBusy())
    room.add(tenant, bytes)
    this.#heldBytes = this.#size
    this.#rate ??= watchRate(this.#req, this.#limits, this.#fail)
  }

  readonly #onClose = (): void => {
    if (!this.#req.complete) this.#fail(invalidRequest('the client closed the connection before the body was complete'))
  }

  readonly #onEnd = (): void => {
    const bytes = join(this.#chunks, this.#size)
    this.#stop()
    this.#resolve(bytes)
  }

  readonly #fail = (cause: unknown): void => {
    this.#stop()
    this.#reject(cause)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    clearInterval(this.#rate)
    this.#req.off('data', this.#add).off('end', this.#onEnd).off('close', this.#onClose)
    this.#chunks = []
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

const BUSY_RETRY_SECS = 1

const noBody = () =>
  invalidRequest('a PUT needs a body, which replaces what is there: send it as JSON, {} to set nothing')

const tooLarge = (maxBytes: number) =>
  invalidRequest(`the body is larger than ${maxBytes} bytes; send less`, { status: 413 })

const tooSlow = (timeoutMs: number) =>
  invalidRequest(`the body did not arrive within ${timeoutMs / 1000} seconds; send it again`, { status: 408 })

const tenantIsBusy = () =>
  tooMany('this tenant is sending as many large bodies as it may at once; try again in a moment', BUSY_RETRY_SECS)

const tooBusy = () =>
  new AppError('unavailable', 'the server is reading too many bodies; try again in a moment', {
    retryAfterSecs: BUSY_RETRY_SECS,
  })
