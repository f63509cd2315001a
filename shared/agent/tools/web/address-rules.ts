import type { RuleSubject } from '../port.ts'
import { matchesWildcard } from '../wildcard.ts'

/** `scheme://host[:port][/path]`; `*` alone matches every address. */
const RULE = /^([a-z*]+):\/\/([^/?#]*)([^]*)$/i

/** Encoded characters that some servers decode, so that a path may differ from what it looks like. */
const ENCODED_SEPARATOR = /%(2f|5c|2e|25)/i

/** Whether a rule names scheme, host and path of addresses. */
export const isAddressRule = (rule: string): boolean => rule === '*' || RULE.test(rule)

/**
 * The subject of an address, for rules such as `WebFetch(https://*.example.com/docs/*)`. Scheme, host and path are compared
 * separately, so that no path or user name can match as a host. A rule without a path matches every path of its hosts.
 */
export function addressSubject(address: string): RuleSubject {
  const url = URL.parse(address)
  return {
    isOnly(rule) {
      if (!url || url.username !== '' || url.password !== '') return false
      const plain = { hosts: hostsOf(url), paths: [url.pathname + url.search] }
      return matchesRule(rule, url, plain) && (namesEveryPath(rule) || !ENCODED_SEPARATOR.test(url.pathname))
    },
    includes: (rule) =>
      url !== null && matchesRule(rule, url, { hosts: [nameOf(url), ...hostsOf(url)], paths: pathsOf(url) }),
  }
}

type Spellings = { hosts: readonly string[]; paths: readonly string[] }

function matchesRule(rule: string, { protocol }: URL, { hosts, paths }: Spellings): boolean {
  if (rule === '*') return true
  const [, scheme = '', host = '', path = ''] = RULE.exec(rule) ?? []
  if (!matchesWildcard(scheme.toLowerCase(), protocol.slice(0, -1))) return false
  if (!hosts.some((each) => matchesWildcard(host.toLowerCase(), each))) return false
  return path === '' || paths.some((each) => matchesWildcard(path, each))
}

const namesEveryPath = (rule: string): boolean => ['', '/*'].includes(RULE.exec(rule)?.[3] ?? '')

/** A host name with a dot at its end is the same host. */
const nameOf = ({ hostname }: URL): string => hostname.replace(/\.$/, '')

/** The host with its port, and also without it if it is the scheme's default. */
function hostsOf(url: URL): string[] {
  const name = nameOf(url)
  if (url.port !== '') return [`${name}:${url.port}`]
  return [name, `${name}:${url.protocol === 'https:' ? 443 : 80}`]
}

/** A path as it is written and also decoded, because servers treat both in the same way. */
function pathsOf({ pathname, search }: URL): string[] {
  const raw = pathname + search
  const decoded = raw.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)))
  return [raw, decoded, decoded.replace(/[/\\]{2,}/g, '/')]
}
