import { isObject } from '../base/json-value.ts'
import { ofTab } from '../base/tab.ts'
import type { OidcSignIn } from './config.ts'
import { Refused, type Tokens } from './held-tokens.ts'

/** The parts of the issuer's metadata that are used here. */
type Endpoints = {
  authorization_endpoint: string
  token_endpoint: string
  end_session_endpoint?: string
  authorization_response_iss_parameter_supported?: boolean
}

const WITHIN_MS = 15_000
const MOST_CHARS = 200

const discovered = ofTab((): { endpoints?: Endpoints } => ({}))

/** The issuer is asked once; a failure is not kept. */
export async function discover(settings: OidcSignIn): Promise<Endpoints> {
  const known = discovered()
  known.endpoints ??= await readEndpoints(settings)
  return known.endpoints
}

async function readEndpoints({ issuer }: OidcSignIn): Promise<Endpoints> {
  const answer = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  const found = answer.body as Partial<Endpoints> & { issuer?: unknown }
  if (!answer.isOk || !isWeb(found.authorization_endpoint) || !isWeb(found.token_endpoint))
    throw new Error(`The issuer's openid-configuration cannot be used (${answer.status}).`)
  // OpenID Connect Discovery 4.3: else another issuer could speak for this one.
  if (found.issuer !== issuer) throw new Error(`The issuer calls itself ${shortened(found.issuer)}, not ${issuer}.`)
  return found as Endpoints
}

/** Throws `Refused` where the issuer refuses the grant. */
export async function exchange(settings: OidcSignIn, grant: Readonly<Record<string, string>>): Promise<Tokens> {
  const { token_endpoint } = await discover(settings)
  const body = new URLSearchParams({ ...grant, client_id: settings.client_id })
  const { isOk, status, body: answer } = await ask(token_endpoint, { method: 'POST', body })
  if (!isOk && status >= 400 && status < 500 && status !== 408 && status !== 429)
    throw new Refused(`The issuer refuses the sign-in: ${shortened(answer['error'] ?? status)}`)
  const { access_token: access, refresh_token: refresh = grant['refresh_token'], id_token: id } = answer
  if (!isOk || typeof access !== 'string') throw new Error(`The issuer gives no token (${status}).`)
  const secs = Number(answer['expires_in'] ?? 3_600)
  const expiresAt = Date.now() + (Number.isFinite(secs) ? secs : 3_600) * 1000
  return { access, refresh: textOr(refresh), id: textOr(id), expiresAt }
}

export const renew = (settings: OidcSignIn, refresh: string): Promise<Tokens> =>
  exchange(settings, { grant_type: 'refresh_token', refresh_token: refresh })

/** Where the issuer ends the sign-in of the person and sends the browser back, if it does that. */
export function endSessionUrl({ client_id }: OidcSignIn, tokens: Tokens, back: string): string | undefined {
  const { endpoints } = discovered()
  if (!isWeb(endpoints?.end_session_endpoint)) return undefined
  const url = new URL(endpoints.end_session_endpoint)
  url.searchParams.set('client_id', client_id)
  url.searchParams.set('post_logout_redirect_uri', back)
  if (tokens.id !== undefined) url.searchParams.set('id_token_hint', tokens.id)
  return url.href
}

/** A text of the issuer, as part of a sentence. */
export const shortened = (text: unknown): string => {
  const shown = String(text)
  return shown.length > MOST_CHARS ? `${shown.slice(0, MOST_CHARS)} …` : shown
}

type Answer = { isOk: boolean; status: number; body: Record<string, unknown> }

async function ask(url: string, init?: RequestInit): Promise<Answer> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(WITHIN_MS) }).catch((cause: unknown) => {
    throw new Error('The issuer cannot be reached.', { cause })
  })
  const body: unknown = await response.json().catch(() => undefined)
  return { isOk: response.ok, status: response.status, body: isObject(body) ? body : {} }
}

const isWeb = (url: unknown): url is string =>
  typeof url === 'string' && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)

const textOr = (value: unknown) => (typeof value === 'string' ? value : undefined)
