import * as oauth from 'oauth4webapi'
import { ofTab } from '../base/tab.ts'
import type { OidcSignIn } from './config.ts'
import { Refused, type Tokens } from './held-tokens.ts'

/** The console's requests to an OpenID issuer, as a public client with PKCE. */

const WITHIN_MS = 15_000
const MOST_CHARS = 200
/** A person's clock may be wrong by this much. */
const CLOCK_SECS = 300
/** The lifetime of a token if the issuer does not report it. */
const LIFE_SECS = 3_600

type Issuer = oauth.AuthorizationServer & { authorization_endpoint: string }

const discovered = ofTab((): { issuer?: Issuer } => ({}))

/** The issuer is asked once; a failure is not kept. */
export async function discover(settings: OidcSignIn): Promise<Issuer> {
  const known = discovered()
  known.issuer ??= await readMetadata(settings)
  return known.issuer
}

async function readMetadata({ issuer }: OidcSignIn): Promise<Issuer> {
  const url = new URL(issuer)
  const response = await reach((options) => oauth.discoveryRequest(url, { ...options, algorithm: 'oidc' }))
  const found = await oauth.processDiscoveryResponse(url, response).catch((cause: unknown) => {
    throw new Error(`The issuer's openid-configuration cannot be used (${response.status}).`, { cause })
  })
  const { authorization_endpoint, token_endpoint } = found
  if (!isWeb(authorization_endpoint) || !isWeb(token_endpoint))
    throw new Error("The issuer's openid-configuration names no addresses to sign in at.")
  return { ...found, authorization_endpoint }
}

/** The issuer's answer to an authorization request, with the values that prove which request it belongs to. */
export type Grant = { answer: URLSearchParams; state: string; verifier: string; redirectUri: string }

/** The tokens for the issuer's answer. Throws `Refused` where it refuses. */
export async function exchange(settings: OidcSignIn, grant: Grant): Promise<Tokens> {
  const { answer, state, verifier, redirectUri } = grant
  const [issuer, client] = [await discover(settings), clientOf(settings)]
  const code = readAnswer(issuer, client, answer, state)
  const response = await reach((options) =>
    oauth.authorizationCodeGrantRequest(issuer, client, oauth.None(), code, redirectUri, verifier, {
      ...options,
      additionalParameters: audienceOf(settings),
    }),
  )
  return tokensOf(oauth.processAuthorizationCodeResponse(issuer, client, response))
}

export async function renew(settings: OidcSignIn, refresh: string): Promise<Tokens> {
  const [issuer, client] = [await discover(settings), clientOf(settings)]
  const response = await reach((options) =>
    oauth.refreshTokenGrantRequest(issuer, client, oauth.None(), refresh, options),
  )
  const tokens = await tokensOf(oauth.processRefreshTokenResponse(issuer, client, response))
  return { ...tokens, refresh: tokens.refresh ?? refresh }
}

/** The issuer's address for sign-out, from which it sends the browser back, if it supports this. */
export function endSessionUrl({ client_id }: OidcSignIn, tokens: Tokens, back: string): string | undefined {
  const { issuer } = discovered()
  if (!isWeb(issuer?.end_session_endpoint)) return undefined
  const url = new URL(issuer.end_session_endpoint)
  url.searchParams.set('client_id', client_id)
  url.searchParams.set('post_logout_redirect_uri', back)
  if (tokens.id !== undefined) url.searchParams.set('id_token_hint', tokens.id)
  return url.href
}

/** Some issuers use `audience`, others the `resource` of RFC 8707, which is a URI. */
export const audienceOf = ({ audience }: OidcSignIn) => ({
  audience,
  ...(URL.canParse(audience) && { resource: audience }),
})

const clientOf = ({ client_id }: OidcSignIn): oauth.Client => ({ client_id, [oauth.clockTolerance]: CLOCK_SECS })

/** Checks that the answer comes from this issuer (RFC 9207: otherwise the answer of another issuer could be used), and returns its code. */
function readAnswer(issuer: Issuer, client: oauth.Client, answer: URLSearchParams, state: string) {
  try {
    const checked = oauth.validateAuthResponse(issuer, client, answer, state)
    if (checked.has('code')) return checked
  } catch (cause) {
    if (!(cause instanceof oauth.AuthorizationResponseError))
      throw new Error(`The answer is not from ${issuer.issuer}. Sign in again.`, { cause })
  }
  throw new Error(`The issuer says: ${shortened(answer.get('error') ?? 'no code')}`)
}

async function tokensOf(answered: Promise<oauth.TokenEndpointResponse>): Promise<Tokens> {
  const answer = await answered.catch((cause: unknown) => {
    if (!(cause instanceof oauth.ResponseBodyError))
      throw new Error(`The issuer gives no token that can be used: ${shortened((cause as Error).message)}`, { cause })
    const isRefusal = cause.status < 500 && cause.status !== 408 && cause.status !== 429
    throw new (isRefusal ? Refused : Error)(`The issuer refuses the sign-in: ${shortened(cause.error)}`, { cause })
  })
  const { access_token: access, refresh_token: refresh, id_token: id, expires_in: secs = LIFE_SECS } = answer
  return { access, refresh, id, expiresAt: Date.now() + secs * 1000 }
}

type RequestOptions = { signal: () => AbortSignal; [oauth.allowInsecureRequests]: true }

/** The operator has chosen the issuer's address, so it may be `http:`. */
function reach(request: (options: RequestOptions) => Promise<Response>): Promise<Response> {
  return request({ signal: () => AbortSignal.timeout(WITHIN_MS), [oauth.allowInsecureRequests]: true }).catch(
    (cause: unknown) => {
      throw new Error('The issuer cannot be reached.', { cause })
    },
  )
}

/** A text of the issuer, as part of a sentence. */
const shortened = (text: string): string => (text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)} …` : text)

const isWeb = (url: string | undefined): url is string =>
  url !== undefined && URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
