import { isIP } from 'node:net'
import type { Request, RequestHandler, Response } from 'express'
import { type AppError, hasKind, tooMany } from '../../../shared/kernel/errors.ts'
import type { Bucket, TenantRequests } from '../../../shared/tenancy/limits/tenant-requests.ts'
import type { RateLimiter, Taken } from '../../../shared/tenancy/rate/port.ts'
import { tenantOf } from './auth.ts'

/** Counts the request for its client and refuses it above the limit (api.md "Limits", D2.9). */
export function limitRate(limiter: RateLimiter, basePath: string): RequestHandler {
  return async (req, res, next) => {
    const client = clientKey(addressOf(req.ip, req.socket.remoteAddress))
    const take = (bucket: Bucket) => limiter.take(bucket === 'all' ? client : `${bucket} ${client}`)
    await count(req, res, { basePath, take, whose: '' })
    next()
  }
}

/** Counts an authenticated request again for its tenant, which may have many clients. Requests without a token are not counted. */
export function limitTenantRate(limiter: RateLimiter, basePath: string): RequestHandler {
  return async (req, res, next) => {
    if (req.headers.authorization === undefined) return next()
    const tenant = tenantOf(res)
    const take = (bucket: Bucket) => limiter.take(bucket === 'all' ? `tenant ${tenant}` : `tenant ${bucket} ${tenant}`)
    await count(req, res, { basePath, take, whose: '' })
    next()
  }
}

type Requests = Pick<TenantRequests, 'take'>

/** Requests that follow or end work, and begin none. */
const FOLLOWING = ['GET', 'HEAD', 'DELETE']

/**
 * Counts the request for its tenant and refuses it above the tenant's own limit. The path of the limits themselves is exempt, so that
 * a tenant can always raise them. While a tenant's limits cannot be read, a request that could begin work is refused with `unavailable`;
 * running work can be followed and ended.
 */
export function limitTenant(requests: Requests, basePath: string): RequestHandler {
  return (req, res, next) => {
    if (req.path === `${basePath}/config/limits`) return next()
    const take = (bucket: Bucket) => requests.take(tenantOf(res), bucket)
    const pass = () => next()
    const counted = count(req, res, { basePath, take, whose: ' of this tenant' })
    if (!counted) return next()
    return counted
      .catch((cause: unknown) => {
        if (!hasKind(cause, 'unavailable') || !FOLLOWING.includes(req.method)) throw cause
      })
      .then(pass)
  }
}

type Counting = {
  basePath: string
  /** Counts one request. `undefined` where nothing limits it. */
  take(bucket: Bucket): Taken | undefined | Promise<Taken | undefined>
  /** Whose limit it is: the words after "requests a minute" in the message. */
  whose: string
}

/** Counts a request, and rejects with `rate_limit` for one above the limit. `undefined` where nothing limits it. */
function count(req: Request, res: Response, counting: Counting): Promise<void> | undefined {
  const kind = kindOf(req, counting.basePath)
  const taking = counting.take(kind === 'control' ? 'control' : 'all')
  return taking && admit(res, { taking, kind, ...counting })
}

type Counted = Counting & { kind: RequestKind; taking: NonNullable<ReturnType<Counting['take']>> }

/**
 * A request above the limit that may carry answers to permission requests is let through against a separate count; `assertCounted` refuses
 * it when it turns out to be a prompt.
 */
async function admit(res: Response, { taking, kind, take, whose }: Counted): Promise<void> {
  const taken = await taking
  if (!taken) return
  showLimit(res, taken)
  const { isAllowed, limit, resetSecs } = taken
  if (isAllowed) return
  const refusal = tooMany(`more than ${limit} requests a minute${whose}; try again in ${resetSecs} s`, resetSecs)
  if (kind !== 'mixed' || !(await take('answers'))?.isAllowed) throw refusal
  res.locals['rateRefusal'] = refusal
}

/** Throws `rate_limit` for a request above its limit that was let through because it could have carried answers. */
export function assertCounted(res: Response): void {
  const refusal = res.locals['rateRefusal'] as AppError | undefined
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

/** The paths of control calls after the base path, by method: those that end work, answer requests, or open the stream that replaces polling. */
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

/**
 * The key under which the rate limit counts a client: its IPv4 address, or its IPv6 /64 network, because one client usually
 * has all addresses of a /64. An IPv4-mapped IPv6 address counts as the IPv4 address.
 */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address
  const groups = groupsOf(address.replace(/%.*$/, ''))
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff
  if (isMapped) return [...bytesOf(groups[6]), ...bytesOf(groups[7])].join('.')
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}

/** The eight 16-bit groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  const [head = '', tail] = address.replace(/[\d.]+\.\d+$/, hexOf).split('::')
  const first = numbersOf(head)
  if (tail === undefined) return first
  const last = numbersOf(tail)
  const gap = Math.max(0, 8 - first.length - last.length)
  return [...first, ...Array.from({ length: gap }, () => 0), ...last]
}

const numbersOf = (part: string): number[] =>
  part
    .split(':')
    .filter((group) => group !== '')
    .map((group) => Number.parseInt(group, 16))

/** Turns the dotted IPv4 part at the end of an IPv6 address into two groups. */
function hexOf(ipv4: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number)
  return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
}

const bytesOf = (group = 0): number[] => [group >> 8, group & 0xff]

/** The address that a proxy reported, or the address of the proxy itself when the report is not an address. */
function addressOf(reported: string | undefined, peer: string | undefined): string {
  return reported !== undefined && isIP(reported) > 0 ? reported : (peer ?? 'unknown')
}
