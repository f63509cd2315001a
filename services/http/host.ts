import type { Request, RequestHandler } from 'express'
import { AppError, invalidRequest } from '../../shared/kernel/errors.ts'

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]']

export type HostRules = {
  /** The address that the listener binds. */
  host: string
  /** ALLOWED_HOSTS. */
  allowedHosts: readonly string[]
}

export const isLoopback = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/.test(host)

/**
 * The host names that requests may use (D2.10); `undefined` when any name is accepted. The loopback names are always among them: no
 * page of another site has them, and programs on the machine itself use them.
 */
export const hostNames = ({ host, allowedHosts }: HostRules): readonly string[] | undefined =>
  isLoopback(host) || allowedHosts.length > 0 ? [...LOOPBACK_NAMES, ...allowedHosts] : undefined

/**
 * Refuses requests whose `Host` is not in the list: otherwise a web page could reach this server under the page's own
 * host name (DNS rebinding, D2.10).
 */
export function checkHost(names: readonly string[] | undefined): RequestHandler {
  const allowed = names && new Set(names.map((name) => name.toLowerCase()))
  return (req, _res, next) => {
    const { host } = req.headers
    if (host === undefined && req.httpVersion === '1.1') throw invalidRequest('send a Host header')
    if (hostCount(req) > 1) throw invalidRequest('send one Host header')
    if (allowed && !allowed.has(nameOf(host))) {
      throw new AppError('permission', 'this server does not answer to that host name; add it to ALLOWED_HOSTS')
    }
    next()
  }
}

/** Counted here, because `headersDistinct` makes lists of all headers. */
function hostCount({ rawHeaders }: Request): number {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i]?.toLowerCase() === 'host') count++
  return count
}

/** A `Host` header without its port. */
const nameOf = (host = ''): string => host.replace(/:\d{1,5}$/, '').toLowerCase()

const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])

/**
 * Refuses requests that a foreign web page sends (D2.10): a page can make a browser send requests to this machine; it cannot read
 * the answers, but it may want the effects. Clients other than browsers send none of these headers.
 */
export function refuseForeignPages(corsOrigins: readonly string[]): RequestHandler {
  const allowed = new Set(corsOrigins)
  return (req, _res, next) => {
    if (!SAFE_METHODS.has(req.method) && isForeign(req, allowed)) {
      throw new AppError('permission', 'a page of another origin sent this request; add its origin to CORS_ORIGINS')
    }
    next()
  }
}

function isForeign({ headers }: Request, allowed: ReadonlySet<string>): boolean {
  const { origin } = headers
  if (allowed.has('*') || (origin !== undefined && allowed.has(origin))) return false
  if (headers['sec-fetch-site'] === 'cross-site') return true
  return origin !== undefined && URL.parse(origin)?.host !== headers.host?.toLowerCase()
}
