import { calculatePKCECodeChallenge, generateRandomCodeVerifier, generateRandomState } from 'oauth4webapi'
import { keep, kept } from '../base/browser-store.ts'
import { isObject } from '../base/json-value.ts'
import type { OidcSignIn } from './config.ts'
import type { Tokens } from './held-tokens.ts'
import { audienceOf, discover, exchange } from './issuer.ts'

/** Signs the person in at the issuer with the authorization code flow and PKCE. Tokens are kept in memory only. */

/** Stored while the browser is at the issuer: the values that prove that the answer belongs to this tab's request. It is not a token. */
type Question = { state: string; verifier: string; back: string }

const QUESTION = 'agent-engine.sign-in'
/** When a person signs in again in a window, this channel sends the issuer's answer to the waiting tab. */
const CHANNEL = 'agent-engine.sign-in'
/** The prefix of the `state` of a request that is made in a separate window. */
const IN_WINDOW = 'window.'

const redirectUri = () => `${location.origin}/console/signed-in`

/** Goes to the issuer's page. With `isSilent` the issuer returns at once if the person would have to do something. */
export async function leaveForIssuer(
  settings: OidcSignIn,
  { isSilent, back }: { isSilent: boolean; back: string },
): Promise<void> {
  const question = { state: generateRandomState(), verifier: generateRandomCodeVerifier(), back }
  const url = await questionUrl(settings, question)
  if (isSilent) url.searchParams.set('prompt', 'none')
  keep('sessionStorage', QUESTION, JSON.stringify(question))
  location.assign(url)
}

/** Signs in in a separate window, so that the page stays open. `undefined` if the browser opens no window. */
export async function askInWindow(settings: OidcSignIn): Promise<{ tokens: Promise<Tokens> } | undefined> {
  const question = { state: IN_WINDOW + generateRandomState(), verifier: generateRandomCodeVerifier(), back: '' }
  const url = await questionUrl(settings, question)
  const answered = answerTo(question.state)
  if (window.open(url, '_blank', 'popup,width=480,height=680') === null) return undefined
  return { tokens: answered.then((answer) => tokensOf(settings, question, answer)) }
}

/**
 * The result when the browser returns from the issuer: tokens, or none if the person has to act. `undefined` if the
 * browser does not come from the issuer.
 */
export type Return = { back: string; tokens?: Tokens; problem?: string; isHandedOver?: boolean }

/** The issuer's answers that mean that somebody has to act. */
const TO_ACT = /^(login|interaction|consent|account_selection)_required$/

export async function readReturn(settings: OidcSignIn): Promise<Return | undefined> {
  if (!location.pathname.endsWith('/signed-in')) return undefined
  const answer = new URLSearchParams(location.search)
  const question = readQuestion()
  const back = question?.back ?? '/console/'
  history.replaceState(null, '', back) // The code is removed from the address in every case.
  if (answer.get('state')?.startsWith(IN_WINDOW)) {
    const channel = new BroadcastChannel(CHANNEL) // Only pages of this origin hear it.
    // oxlint-disable-next-line require-post-message-target-origin -- It is no window.
    channel.postMessage(String(answer))
    return { back, isHandedOver: true }
  }
  const isAnswer = question !== undefined && answer.get('state') === question.state
  if (!isAnswer || TO_ACT.test(answer.get('error') ?? '')) return { back }
  return tokensOf(settings, question, answer).then(
    (tokens) => ({ back, tokens }),
    (cause: unknown) => ({ back, problem: cause instanceof Error ? cause.message : String(cause) }),
  )
}

async function questionUrl(settings: OidcSignIn, { state, verifier }: Question): Promise<URL> {
  const url = new URL((await discover(settings)).authorization_endpoint)
  const parameters = {
    response_type: 'code',
    client_id: settings.client_id,
    redirect_uri: redirectUri(),
    scope: settings.scope,
    state,
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...audienceOf(settings),
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url
}

/** Returns this tab's stored request and deletes it. A damaged one counts as missing. */
function readQuestion(): Question | undefined {
  const text = kept('sessionStorage', QUESTION)
  keep('sessionStorage', QUESTION, undefined)
  try {
    const found: unknown = JSON.parse(text ?? '')
    if (!isObject(found)) return undefined
    const { state, verifier, back } = found
    if (typeof state !== 'string' || typeof verifier !== 'string' || typeof back !== 'string') return undefined
    return back.startsWith(`${location.origin}/console`) ? { state, verifier, back } : undefined
  } catch {
    return undefined
  }
}

const answerTo = (state: string): Promise<URLSearchParams> =>
  new Promise((resolve) => {
    const channel = new BroadcastChannel(CHANNEL)
    channel.addEventListener('message', ({ data }) => {
      const answer = new URLSearchParams(String(data))
      if (answer.get('state') !== state) return
      channel.close()
      resolve(answer)
    })
  })

const tokensOf = (settings: OidcSignIn, { state, verifier }: Question, answer: URLSearchParams): Promise<Tokens> =>
  exchange(settings, { answer, state, verifier, redirectUri: redirectUri() })
