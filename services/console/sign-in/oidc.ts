import type { OidcSignIn } from './config.ts'

/** Signs a person in at the issuer by code with PKCE. Tokens are kept in memory only; a reload asks the issuer again, without a prompt. */

type Endpoints = { authorization_endpoint: string; token_endpoint: string }

export type Tokens = { access: string; refresh: string | undefined; expiresAt: number }

/** Kept while the browser is at the issuer: what proves that the answer belongs to this tab's question. It is no token. */
type Question = { state: string; verifier: string; back: string }

const QUESTION = 'agent-engine.sign-in'

const redirectUri = () => `${location.origin}/console/signed-in`

/** Leaves for the issuer. `isSilent` comes back at once when the person would have to do something. */
export async function leaveForIssuer(
  settings: OidcSignIn,
  { isSilent, back }: { isSilent: boolean; back: string },
): Promise<void> {
  const { authorization_endpoint } = await discover(settings)
  const question: Question = { state: randomText(), verifier: randomText(), back }
  sessionStorage.setItem(QUESTION, JSON.stringify(question))
  const url = new URL(authorization_endpoint)
  const parameters = {
    response_type: 'code',
    client_id: settings.client_id,
    redirect_uri: redirectUri(),
    scope: settings.scope,
    state: question.state,
    code_challenge: await challengeOf(question.verifier),
    code_challenge_method: 'S256',
    ...audienceOf(settings),
    ...(isSilent && { prompt: 'none' }),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  location.assign(url)
}

/** How the browser came back: with tokens, or with the issuer's refusal. `undefined` when it does not come from the issuer. */
export type Return = { back: string; tokens?: Tokens; refusal?: string }

export async function readReturn(settings: OidcSignIn): Promise<Return | undefined> {
  const answer = new URLSearchParams(location.search)
  if (!location.pathname.endsWith('/signed-in')) return undefined
  const question = JSON.parse(sessionStorage.getItem(QUESTION) ?? 'null') as Question | null
  sessionStorage.removeItem(QUESTION)
  const back = question?.back ?? '/console/'
  if (question === null || answer.get('state') !== question.state) return { back, refusal: 'stale' }
  const code = answer.get('code')
  if (code === null) return { back, refusal: answer.get('error') ?? 'no code' }
  const grant = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectUri(),
    code_verifier: question.verifier,
  }
  return { back, tokens: await exchange(settings, { ...grant, ...audienceOf(settings) }) }
}

export const renew = (settings: OidcSignIn, refresh: string): Promise<Tokens> =>
  exchange(settings, { grant_type: 'refresh_token', refresh_token: refresh })

async function exchange(settings: OidcSignIn, grant: Record<string, string>): Promise<Tokens> {
  const { token_endpoint } = await discover(settings)
  const body = new URLSearchParams({ ...grant, client_id: settings.client_id })
  const response = await fetch(token_endpoint, { method: 'POST', body })
  if (!response.ok) throw new Error(`the issuer refuses the sign-in (${response.status})`)
  const answer = (await response.json()) as { access_token: string; refresh_token?: string; expires_in?: number }
  const expiresAt = Date.now() + (answer.expires_in ?? 3_600) * 1000
  return { access: answer.access_token, refresh: answer.refresh_token ?? grant['refresh_token'], expiresAt }
}

let discovered: Promise<Endpoints> | undefined

/** The issuer is asked once; a failure is not kept. */
function discover({ issuer }: OidcSignIn): Promise<Endpoints> {
  discovered ??= readEndpoints(issuer).catch((cause: unknown) => {
    discovered = undefined
    throw cause
  })
  return discovered
}

async function readEndpoints(issuer: string): Promise<Endpoints> {
  const response = await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (!response.ok) throw new Error(`the issuer answers ${response.status}`)
  return (await response.json()) as Endpoints
}

/** Some issuers read `audience`, others the `resource` of RFC 8707, which is a URI. */
const audienceOf = ({ audience }: OidcSignIn) => ({ audience, ...(URL.canParse(audience) && { resource: audience }) })

const randomText = () => base64url(crypto.getRandomValues(new Uint8Array(32)))

const challengeOf = async (verifier: string) =>
  base64url(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))))

const base64url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replace(/=+$/, '')
