import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import { buildConnector } from 'undici'
import { refused } from './egress-failures.ts'
import { isPublicAddress } from './public-address.ts'

export type Address = { address: string; family: number }

export type AddressPolicy = {
  /** ALLOW_PRIVATE_URLS (D1.3): private, loopback and link-local addresses, and every port, may be reached. */
  allowPrivate: boolean
  /** Returns all addresses of a host name. Default: the system's resolver. */
  resolve?: (hostname: string) => Promise<Address[]>
  connectTimeoutMs?: number
}

const MAX_URL_CHARS = 8_192

/** Parses a URL and checks everything that needs no name lookup. Throws `egress_refused`. */
export function checkUrl(url: string, { allowPrivate }: AddressPolicy): URL {
  if (url.length > MAX_URL_CHARS) throw refused(`The address is longer than ${MAX_URL_CHARS} characters.`)
  const target = URL.parse(url)
  if (!target || (target.protocol !== 'http:' && target.protocol !== 'https:')) {
    throw refused('The address is not a valid http or https URL.')
  }
  if (target.username !== '' || target.password !== '') {
    throw refused('The address may not contain a user name or password.')
  }
  if (!allowPrivate && !isWebPort(target.port)) throw refused(`Port ${target.port} may not be reached.`)
  return target
}

/** Services on other ports below 1024, such as SMTP, could read an HTTP request as commands. An empty port is the default. */
const isWebPort = (port: string): boolean => port === '' || port === '80' || port === '443' || Number(port) >= 1_024

/** Opens connections, and only to addresses that the policy allows. */
export function createGuardedConnector(policy: AddressPolicy): buildConnector.connector {
  const { allowPrivate, connectTimeoutMs = 5_000 } = policy
  const connect = buildConnector({ allowH2: false, timeout: connectTimeoutMs, lookup: guardedLookup(policy) })
  return (target, callback) => {
    const host = target.hostname.replace(/^\[|\]$/g, '')
    // An address literal is checked here, because no lookup happens for it.
    if (!allowPrivate && isIP(host) !== 0 && !isPublicAddress(host)) {
      queueMicrotask(() => callback(refusedHost(host), null))
      return
    }
    connect(target, (...[error, socket]) => {
      if (error) callback(error, null)
      else if (allowPrivate || isPublicAddress(socket.remoteAddress ?? '')) callback(null, socket)
      else {
        socket.destroy()
        callback(refusedHost(host), null)
      }
    })
  }
}

/** Resolves a name once and returns only the allowed addresses, to which the connection is then made. */
function guardedLookup({ allowPrivate, resolve = systemResolve }: AddressPolicy): LookupFunction {
  const allowedAddresses = async (hostname: string) => {
    const allowed = (await resolve(hostname)).filter(({ address }) => allowPrivate || isPublicAddress(address))
    if (allowed.length === 0) throw refusedHost(hostname)
    return allowed
  }
  const lookUp = callbackify(allowedAddresses)
  return (hostname, { all }, callback) =>
    lookUp(hostname, (cause, allowed) => {
      const [first] = allowed ?? []
      if (cause || !first) callback(cause, [])
      else if (all) callback(null, allowed)
      else callback(null, first.address, first.family)
    })
}

const systemResolve = (hostname: string): Promise<Address[]> => lookup(hostname, { all: true })

const refusedHost = (host: string) =>
  refused(
    `${host} may not be reached: it is not an address of the public internet, or its name leads to one that is not.`,
  )
