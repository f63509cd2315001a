import { createRequire } from 'node:module'
import type { buildConnector } from 'undici'
import { literalOf, refusedHost } from './address-policy.ts'
import type { ConnectionGuard } from './port.ts'

const load = createRequire(import.meta.url)

/** Opens connections, and only to addresses that the guard allows. */
export function createGuardedConnector(
  { lookup, isAllowed }: Pick<ConnectionGuard, 'lookup' | 'isAllowed'>,
  options: buildConnector.BuildOptions,
): buildConnector.connector {
  const build = load('undici/lib/core/connect.js') as typeof buildConnector
  const connect = build({ ...options, allowH2: false, lookup })
  return (target, callback) => {
    const host = literalOf(target.hostname)
    if (host !== undefined && !isAllowed(host)) {
      queueMicrotask(() => callback(refusedHost(host), null))
      return
    }
    connect(target, (...[error, socket]) => {
      if (error) callback(error, null)
      else if (isAllowed(socket.remoteAddress ?? '')) callback(null, socket)
      else {
        socket.destroy()
        callback(refusedHost(target.hostname), null)
      }
    })
  }
}
