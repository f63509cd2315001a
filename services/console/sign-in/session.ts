import { signal } from '@preact/signals'
import { ApiError } from '../../../shared/client/errors.ts'
import { learnCaller } from '../api/caller.ts'
import { openEngine, type TokenSource } from '../api/engine.ts'
import { navigate } from '../base/router.ts'
import { type ConsoleConfig, type OidcSignIn, readConfig } from './config.ts'
import type { Tokens } from './oidc.ts'

/**
 * starting -> token | issuer -> in: the person has to paste a token, or to sign in at the issuer, where nobody is signed in.
 * in -> token | issuer: the server refuses the token, or the person signs out.
 * Any -> failed: the server or the issuer cannot be reached.
 */
export type SignIn =
  | { state: 'starting' | 'in' }
  | { state: 'token' | 'issuer'; problem?: string | undefined }
  | { state: 'failed'; problem: string }

export const signIn = signal<SignIn>({ state: 'starting' })

/** It is loaded where people sign in at an issuer. */
const oidc = () => import('./oidc.ts')

let config: ConsoleConfig | undefined
let tokens: Tokens | undefined

/** A token is renewed when it has less than this left. */
const RENEW_MS = 30_000

/** Begins with what the server asks for. */
export async function startSignIn(): Promise<void> {
  signIn.value = { state: 'starting' }
  try {
    config = await readConfig()
    const { sign_in: wanted } = config
    if (wanted.kind === 'token') signIn.value = { state: 'token' }
    else if (wanted.kind === 'none') await enter(undefined)
    else await comeFromIssuer(wanted)
  } catch (cause) {
    signIn.value = { state: 'failed', problem: cause instanceof Error ? cause.message : String(cause) }
  }
}

/** Takes a pasted token, which only this tab's memory holds. */
export async function useToken(token: string): Promise<void> {
  try {
    await enter(async (refused) => {
      if (refused === undefined) return token
      signIn.value = { state: 'token', problem: 'The server no longer accepts this token.' }
      return undefined
    })
  } catch (cause) {
    signIn.value = { state: 'token', problem: problemOf(cause) }
  }
}

export async function signInAtIssuer(): Promise<void> {
  if (config?.sign_in.kind !== 'oidc') return
  const { leaveForIssuer } = await oidc()
  await leaveForIssuer(config.sign_in, { isSilent: false, back: location.href })
}

export function signOut(): void {
  tokens = undefined
  signIn.value = { state: config?.sign_in.kind === 'oidc' ? 'issuer' : 'token' }
}

async function enter(token: TokenSource | undefined): Promise<void> {
  openEngine(config?.base_path ?? '', token)
  await learnCaller()
  signIn.value = { state: 'in' }
}

/** Asks the issuer at once whether somebody is signed in there, as after a reload. It refuses where somebody would have to act. */
async function comeFromIssuer(settings: OidcSignIn): Promise<void> {
  const { leaveForIssuer, readReturn } = await oidc()
  const returned = await readReturn(settings)
  if (returned === undefined) return leaveForIssuer(settings, { isSilent: true, back: location.href })
  navigate(returned.back, { replace: true })
  if (returned.tokens === undefined) {
    const isExpected = /^(login|interaction|consent|account_selection)_required$|^stale$/.test(returned.refusal ?? '')
    signIn.value = { state: 'issuer', problem: isExpected ? undefined : `The issuer says: ${returned.refusal}` }
    return
  }
  tokens = returned.tokens
  await enter((refused) => freshToken(settings, refused))
}

async function freshToken(settings: OidcSignIn, refused: string | undefined): Promise<string | undefined> {
  const isGood = tokens && tokens.access !== refused && tokens.expiresAt - Date.now() > RENEW_MS
  if (isGood) return tokens?.access
  if (tokens?.refresh !== undefined) await renewOnce(settings, tokens.refresh)
  else if (refused !== undefined) tokens = undefined
  if (tokens === undefined) signIn.value = { state: 'issuer', problem: 'Your sign-in has expired.' }
  return tokens?.access
}

let renewing: Promise<void> | undefined

/** Requests that need a token at the same time share one renewal: many issuers accept a refresh token once. */
function renewOnce(settings: OidcSignIn, refresh: string): Promise<void> {
  renewing ??= oidc()
    .then(({ renew }) => renew(settings, refresh))
    .catch(() => undefined)
    .then((renewed) => {
      tokens = renewed
      renewing = undefined
    })
  return renewing
}

function problemOf(cause: unknown): string {
  if (cause instanceof ApiError && cause.status === 401) return 'The server does not accept this token.'
  return cause instanceof Error ? cause.message : String(cause)
}
