import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { callbackify } from 'node:util'
import { refused } from './failures.ts'
import type { ConnectionGuard } from './port.ts'
import { isMetadataAddress, isPublicAddress } from './public-address.ts'

export type Address = { address: string; family: number }

export type AddressPolicy = {
  /** ALLOW_PRIVATE_URLS (D1.3): private, loopback and link-local addresses, and every port, may be reached. */
  allowPrivate: boolean
  /** Returns all addresses of a host name. Default: the system's resolver. */
  resolve?: (hostname: string) => Promise<Address[]>
}

const MAX_URL_CHARS = 8_192

/** Parses a URL and checks everything that needs no name lookup, including a literal IP address. Throws `egress_refused`. */
export function checkUrl(url: string, policy: AddressPolicy): URL {
  if (url.length > MAX_URL_CHARS) throw refused(`The address is longer than ${MAX_URL_CHARS} characters.`)
  const target = URL.parse(url)
  if (!target || (target.protocol !== 'http:' && target.protocol !== 'https:')) {
    throw refused('The address is not a valid http or https URL.')
  }
  if (target.username !== '' || target.password !== '') {
    throw refused('The address may not contain a user name or password.')
  }
  if (!policy.allowPrivate && !isWebPort(target.port)) throw refused(`Port ${target.port} may not be reached.`)
  const host = literalOf(target.hostname)
  if (host !== undefined && !isAllowed(host, policy)) throw refusedHost(host)
  return target
}

/** Services on other ports below 1024, such as SMTP, could read an HTTP request as commands. An empty port is the default. */
const isWebPort = (port: string): boolean => port === '' || port === '80' || port === '443' || Number(port) >= 1_024

/** The literal IP address in place of a host name, if there is one. No lookup happens for it. */
export function literalOf(hostname: string): string | undefined {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? undefined : host
}

/** The addresses of cloud metadata services are never allowed: they give out credentials of the machine. */
export const isAllowed = (address: string, { allowPrivate }: AddressPolicy): boolean =>
  (allowPrivate || isPublicAddress(address)) && !isMetadataAddress(address)

/** The policy for a client that makes its own connections. */
export const createConnectionGuard = (policy: AddressPolicy): ConnectionGuard => ({
  checkUrl: (url) => checkUrl(url, policy),
  lookup: guardedLookup(policy),
  isAllowed: (address) => isAllowed(address, policy),
})

/** Resolves a name once and returns only the allowed addresses, to which the connection is then made. */
export function guardedLookup(policy: AddressPolicy): LookupFunction {
  const { resolve = systemResolve } = policy
  const allowedAddresses = async (hostname: string) => {
    const found = await resolve(hostname).catch((cause: unknown) => withoutAddresses(cause, policy))
    const allowed = found.filter(({ address }) => isAllowed(address, policy))
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

/**
 * A host name that does not exist is refused like one with a private address: otherwise tenants could find out the host names in the server's
 * network. If private addresses are allowed there is nothing to hide.
 */
function withoutAddresses(cause: unknown, { allowPrivate }: AddressPolicy): Address[] {
  const isUnknown = cause instanceof Error && 'code' in cause && cause.code === 'ENOTFOUND'
  if (isUnknown && !allowPrivate) return []
  throw cause
}

export const refusedHost = (host: string) =>
  refused(`${host} may not be reached: it is not an address of the public internet, or its name leads to none.`)
