import type { RequestHandler } from 'express'
import { AppError, invalidRequest } from '../../shared/errors.ts'

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]']

export type HostRules = {
  /** The address that the listener binds. */
  host: string
  isStandalone: boolean
  /** ALLOWED_HOSTS. */
  allowedHosts: readonly string[]
}

/** The host names that requests may use (D2.10); `undefined` when any name is accepted. */
export function hostNames({ host, isStandalone, allowedHosts }: HostRules): readonly string[] | undefined {
  const isLoopback = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/.test(host)
  if (isStandalone && isLoopback) return [...LOOPBACK_NAMES, ...allowedHosts]
  return allowedHosts.length > 0 ? allowedHosts : undefined
}

/**
 * Refuses requests whose `Host` is not in the list: a web page could reach this server under its own name (DNS rebinding,
 * D2.10).
 */
export function checkHost(names: readonly string[] | undefined): RequestHandler {
  const allowed = names && new Set(names.map((name) => name.toLowerCase()))
  return (req, _res, next) => {
    const { host } = req.headers
    if (host === undefined && req.httpVersion === '1.1') throw invalidRequest('send a Host header')
    if (req.headersDistinct['host'] && req.headersDistinct['host'].length > 1)
      throw invalidRequest('send one Host header')
    if (allowed && !allowed.has(nameOf(host))) {
      throw new AppError('permission', 'this server does not answer to that host name; add it to ALLOWED_HOSTS')
    }
    next()
  }
}

/** A `Host` header without its port. */
const nameOf = (host = ''): string => host.replace(/:\d{1,5}$/, '').toLowerCase()
