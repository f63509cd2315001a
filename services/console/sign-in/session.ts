import { signal } from '@preact/signals'
import type { Schema } from '../../../shared/client/api.ts'
import { ApiError } from '../../../shared/client/errors.ts'
import { Transport } from '../../../shared/client/http/transport.ts'
import { type Caller, caller } from '../api/caller.ts'
import { apiAt, openEngine } from '../api/engine.ts'
import { keep, kept } from '../base/browser-store.ts'
import { forgetTab, ofTab } from '../base/tab.ts'
import type { ConsoleConfig, OidcSignIn } from './config.ts'
import type { HeldTokens } from './held-tokens.ts'

/**
 * starting -> token | issuer -> in: the person has to paste a token, or to sign in at the issuer, where nobody is signed in.
 * in -> expired -> in: the server no longer accepts the token, and the person signs in again. The page stays.
 * in | expired -> starting: the person signs out, or is another one now. The page is loaded anew.
 * starting -> handed-over: this is the window in which the person of another tab has signed in again.
 * starting -> failed: the server or the issuer cannot be reached.
 */
export type SignIn =
  | { state: 'starting' | 'in' | 'handed-over' }
  | { state: 'token' | 'issuer'; problem?: string | undefined }
  | { state: 'expired' | 'failed'; problem: string }

export const signIn = ofTab(() => signal<SignIn>({ state: 'starting' }))

type Held = { config?: ConsoleConfig; tokens?: HeldTokens | undefined }

export const held = ofTab((): Held => ({}))

/** A mark in the browser's storage from a sign-out until the next sign-in: meanwhile only a click signs in again, and the other tabs sign out. */
const SIGNED_OUT = 'agent-engine.signed-out'

export const markSignedOut = (): void => keep('localStorage', SIGNED_OUT, String(Date.now()))

export const isSignedOut = (): boolean => kept('localStorage', SIGNED_OUT) !== undefined

export const HOME = '/console/'

/** Reloads the page when another tab signs out, and when the browser restores an earlier page. */
export function watchSignOut(): void {
  addEventListener('storage', ({ key, newValue }) => {
    if (key === SIGNED_OUT && newValue !== null && held().tokens !== undefined) leave(HOME)
  })
  addEventListener('pageshow', ({ persisted }) => persisted && leave())
}

/** Hides all data of the person, and reloads the page, so that none of it stays in memory. */
export function leave(to?: string): void {
  signIn().value = { state: 'starting' }
  forgetTab()
  if (to === undefined) location.reload()
  else location.replace(to)
}

/** Shows the console to a person. */
export function enter(person: Caller, tokens: HeldTokens | undefined): void {
  held().tokens = tokens
  openEngine(held().config?.base_path ?? '', tokens?.token)
  caller().value = person
  keep('localStorage', SIGNED_OUT, undefined)
  signIn().value = { state: 'in' }
}

export const callerOf = (token: string | undefined): Promise<Caller> =>
  new Transport({ url: apiAt(held().config?.base_path ?? ''), token }).json<Schema<'MeResponse'>>('GET', '/me')

/** The issuer at which people sign in. Without one they paste a token, or need none. */
export function oidcSettings(): OidcSignIn | undefined {
  const wanted = held().config?.sign_in
  return wanted?.kind === 'oidc' ? wanted : undefined
}

export function problemOf(cause: unknown): string {
  if (cause instanceof ApiError && cause.status === 401) return 'The server does not accept this token.'
  return cause instanceof Error ? cause.message : String(cause)
}
