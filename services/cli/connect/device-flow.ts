import { setTimeout as sleep } from 'node:timers/promises'
import { CliError, EXIT } from '../exit-codes.ts'
import type { Profile } from './profiles.ts'

type Renewal = NonNullable<Profile['renewal']>

type Endpoints = { token_endpoint: string; device_authorization_endpoint?: string }

type Tokens = { access_token: string; refresh_token?: string; expires_in?: number }

type DeviceCode = {
  device_code: string
  user_code: string
  verification_uri: string
  verification_uri_complete?: string
  expires_in: number
  interval?: number
}

export type SignIn = {
  issuer: string
  clientId: string
  audience?: string | undefined
  /** Shows the person where to enter which code. */
  show(code: { address: string; userCode: string }): void
}

const ANSWER_MS = 30_000
/** A token that ends so soon is renewed before it is used. */
const MARGIN_MS = 30_000
const GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** The issuer that the console of a server uses for sign-in; `undefined` if it asks for a token instead. */
export async function issuerOfConsole(url: string): Promise<Omit<SignIn, 'show'> | undefined> {
  const response = await request(new URL('/console/config.json', url).href)
  if (!response.ok) return undefined
  const { sign_in: found } = (await response.json()) as { sign_in?: ConsoleSignIn }
  if (found?.kind !== 'oidc' || !found.issuer || !found.client_id) return undefined
  return { issuer: found.issuer, clientId: found.client_id, audience: found.audience }
}

type ConsoleSignIn = { kind: string; issuer?: string; client_id?: string; audience?: string }

/** Signs in with the issuer's device flow (RFC 8628). `undefined` when the issuer does not support it, or not for this client. */
export async function signIn({
  issuer,
  clientId,
  audience,
  show,
}: SignIn): Promise<Pick<Profile, 'token' | 'renewal'> | undefined> {
  const configuration = `${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`
  const endpoints = await answerOf<Endpoints>(await request(configuration))
  if (endpoints.device_authorization_endpoint === undefined) return undefined
  const scope = 'openid offline_access'
  const asked = { client_id: clientId, scope, ...(audience !== undefined && { audience }) }
  const response = await request(endpoints.device_authorization_endpoint, asked)
  if (response.status === 400 || response.status === 401) return undefined
  const code = await answerOf<DeviceCode>(response)
  show({ address: code.verification_uri_complete ?? code.verification_uri, userCode: code.user_code })
  const tokens = await waitForTokens(code, { clientId, endpoint: endpoints.token_endpoint })
  return withTokens(tokens, { token_endpoint: endpoints.token_endpoint, client_id: clientId })
}

/** The profile with a valid token: the token is renewed if it expires soon or was refused, and can be renewed. */
export async function renewedToken(profile: Profile, refused: string | undefined): Promise<Profile> {
  const { renewal, token } = profile
  if (!renewal) return profile
  const isOld = Date.now() > renewal.expires_at - MARGIN_MS || (refused !== undefined && refused === token)
  if (!isOld) return profile
  const { refresh_token, token_endpoint, client_id } = renewal
  const tokens = await answerOf<Tokens>(
    await request(token_endpoint, { grant_type: 'refresh_token', refresh_token, client_id }),
  )
  return { ...profile, ...withTokens({ refresh_token, ...tokens }, { token_endpoint, client_id }) }
}

async function waitForTokens(
  code: DeviceCode,
  { clientId, endpoint }: { clientId: string; endpoint: string },
): Promise<Tokens> {
  const until = Date.now() + code.expires_in * 1_000
  let pauseMs = (code.interval ?? 5) * 1_000
  while (Date.now() < until) {
    await sleep(pauseMs)
    const response = await request(endpoint, { grant_type: GRANT, device_code: code.device_code, client_id: clientId })
    if (response.ok) return answerOf(response)
    const { error } = (await response.json()) as { error?: string }
    if (error === 'slow_down') pauseMs += 5_000
    else if (error !== 'authorization_pending')
      throw new CliError(EXIT.notSignedIn, `the issuer has refused: ${error ?? response.status}`)
  }
  throw new CliError(EXIT.notSignedIn, 'nobody entered the code in time')
}

function withTokens(
  { access_token: token, refresh_token, expires_in = 3_600 }: Tokens,
  where: Pick<Renewal, 'token_endpoint' | 'client_id'>,
): Pick<Profile, 'token' | 'renewal'> {
  if (refresh_token === undefined) return { token }
  return { token, renewal: { ...where, refresh_token, expires_at: Date.now() + expires_in * 1_000 } }
}

async function request(url: string, form?: Record<string, string>): Promise<Response> {
  const signal = AbortSignal.timeout(ANSWER_MS)
  try {
    return await fetch(url, form ? { method: 'POST', body: new URLSearchParams(form), signal } : { signal })
  } catch (cause) {
    throw new CliError(EXIT.serverAway, `${new URL(url).origin} cannot be reached: ${(cause as Error).message}`)
  }
}

async function answerOf<Answer>(response: Response): Promise<Answer> {
  if (response.ok) return (await response.json()) as Answer
  throw new CliError(EXIT.notSignedIn, `the issuer answered ${response.status}`, 'Sign in again with `ae login`.')
}
