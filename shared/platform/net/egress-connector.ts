import { buildConnector } from 'undici'
import { type AddressPolicy, guardedLookup, isAllowed, literalOf, refusedHost } from './address-policy.ts'

/** Opens connections, and only to addresses that the policy allows. */
export function createGuardedConnector(policy: AddressPolicy, connectTimeoutMs = 5_000): buildConnector.connector {
  const connect = buildConnector({ allowH2: false, timeout: connectTimeoutMs, lookup: guardedLookup(policy) })
  return (target, callback) => {
    const host = literalOf(target.hostname)
    if (host !== undefined && !isAllowed(host, policy)) {
      queueMicrotask(() => callback(refusedHost(host), null))
      return
    }
    connect(target, (...[error, socket]) => {
      if (error) callback(error, null)
      else if (isAllowed(socket.remoteAddress ?? '', policy)) callback(null, socket)
      else {
        socket.destroy()
        callback(refusedHost(target.hostname), null)
      }
    })
  }
}
