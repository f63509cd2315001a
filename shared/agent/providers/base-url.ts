import { type Dialect, PROVIDER_TYPES, type ProviderType } from '../../kernel/provider-types.ts'

/** How the addresses of a wire format are derived from the base URL in a vendor's documentation. */
type Format = {
  version: string
  /** A path to which the version is not added. */
  isWhole: RegExp
  /** The path that a model call adds to the base. It is removed if the full address of a call was given. */
  endpoint: RegExp
}

/** Vendors document the full base, such as `/api/v1`, `/inference` or `/v1beta/openai`, or only the host. */
const OPENAI: Format = { version: '/v1', isWhole: /./, endpoint: /\/(?:chat\/completions|responses)$/ }

/** Some vendors document the base without the version, such as `/anthropic`, because their own clients add it; others include it. */
const ENDS_WITH_VERSION = /\/v\d[^/]*$/

/** The demo has no address. */
const FORMATS: Record<Exclude<Dialect, 'demo'>, Format> = {
  'openai-chat': OPENAI,
  'openai-responses': OPENAI,
  anthropic: { version: '/v1', isWhole: ENDS_WITH_VERSION, endpoint: /\/messages$/ },
  google: { version: '/v1beta', isWhole: ENDS_WITH_VERSION, endpoint: /\/models$/ },
}

/**
 * The address below which the endpoints of a provider lie, for calls of its models and for the list of them alike. `given` is the
 * base from the documentation; the full address of a model call works, too, and is then used unchanged.
 */
export function apiBase(type: ProviderType, given: string | undefined): URL {
  const { dialect, baseUrl, ownFormatPath } = PROVIDER_TYPES[type]
  const { version, isWhole, endpoint } = FORMATS[dialect as Exclude<Dialect, 'demo'>]
  const url = new URL(given ?? baseUrl ?? '')
  const path = url.pathname.replace(/\/+$/, '')
  const base = ownFormatPath?.test(path) ? '' : path
  url.pathname = endpoint.test(base) ? base.replace(endpoint, '') : isWhole.test(base) ? base : base + version
  return url
}

/** The address of an endpoint below the base; the query of the base is kept. */
export function endpointOf(base: URL, path: string, query: Readonly<Record<string, string>> = {}): string {
  const url = new URL(base)
  url.pathname = `${base.pathname.replace(/\/$/, '')}${path}`
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  return url.href
}
