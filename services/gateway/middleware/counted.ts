import type { Request, Response } from 'express'
import { type AppError, tooMany } from '../../../shared/kernel/errors.ts'
import type { Taken } from '../../../shared/tenancy/rate/port.ts'

/** The counts of one client or tenant, each against a limit of the same size. */
export type Bucket = 'all' | 'control' | 'answers'

export type Counting = {
  basePath: string
  /** Counts one request. `undefined` where nothing limits it. */
  take(bucket: Bucket): Taken | undefined | Promise<Taken | undefined>
  /** Whose limit it is, behind "requests a minute" of the message. */
  whose: string
}

/**
 * Counts a request, and throws `rate_limit` for one above the limit. One that may carry answers to permission requests passes against a
 * count of its own then, and `assertCounted` refuses it when it turns out to be a prompt.
 */
export async function count(req: Request, res: Response, { basePath, take, whose }: Counting): Promise<void> {
  const kind = kindOf(req, basePath)
  const taken = await take(kind === 'control' ? 'control' : 'all')
  if (!taken) return
  showLimit(res, taken)
  const { isAllowed, limit, resetSecs } = taken
  if (isAllowed) return
  const refusal = tooMany(`more than ${limit} requests a minute${whose}; try again in ${resetSecs} s`, resetSecs)
  if (kind !== 'mixed' || !(await take('answers'))?.isAllowed) throw refusal
  res.locals['refusal'] = refusal
}

/** Throws `rate_limit` for a request above its limit that has passed because it might have carried answers. */
export function assertCounted(res: Response): void {
  const refusal = res.locals['refusal'] as AppError | undefined
  if (refusal) throw refusal
}

/** Sets the headers of D2.9: where a request counts against several limits, those of the one that refuses it or is nearest. */
function showLimit(res: Response, { isAllowed, limit, remaining, resetSecs }: Taken): void {
  const known = res.getHeader('RateLimit-Remaining')
  if (isAllowed && known !== undefined && remaining >= Number(known)) return
  res.setHeader('RateLimit-Limit', limit)
  res.setHeader('RateLimit-Remaining', remaining)
  res.setHeader('RateLimit-Reset', resetSecs)
}

/** The paths behind the base path, by method: what ends work or answers it, and the stream that makes polling needless. */
const CONTROL: Readonly<Record<string, RegExp>> = {
  GET: /^\/events$/,
  POST: /^\/(sessions\/[^/]+\/permissions\/[^/]+|runs\/[^/]+\/tool-calls\/[^/]+|plans\/[^/]+\/cancel|openai\/v1\/responses\/[^/]+\/cancel)$/,
  DELETE: /^\/((runs|sessions)\/[^/]+|ui\/chat\/[^/]+\/stream)$/,
}

/** The paths of dialects whose body is either a prompt or answers to permission requests; in A2A also a cancel. */
const MIXED = /^\/(ui\/chat|ag-ui|openai\/v1\/responses|a2a)$/

/** The kind of a request, as far as its path tells. */
type RequestKind = 'ordinary' | 'control' | 'mixed'

/**
 * Control calls are counted apart, against limits of the same size, so that a client's polling never keeps it from answering a permission
 * request or ending a run (D17a).
 */
function kindOf({ method, path }: Pick<Request, 'method' | 'path'>, basePath: string): RequestKind {
  if (!path.startsWith(basePath)) return 'ordinary'
  const rest = path.slice(basePath.length)
  if (CONTROL[method]?.test(rest)) return 'control'
  return method === 'POST' && MIXED.test(rest) ? 'mixed' : 'ordinary'
}
