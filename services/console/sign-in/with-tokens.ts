import { caller } from '../api/caller.ts'
import { readAgain } from '../api/live.ts'
import { navigate } from '../base/router.ts'
import type { OidcSignIn } from './config.ts'
import { HeldTokens, Refused, type Tokens } from './held-tokens.ts'
import { endSessionUrl, renew } from './issuer.ts'
import { askInWindow, leaveForIssuer, readReturn } from './oidc.ts'
import {
  callerOf,
  enter,
  HOME,
  held,
  isSignedOut,
  leave,
  markSignedOut,
  oidcSettings,
  problemOf,
  signIn,
} from './session.ts'

/**
 * Asks the issuer whether the person is already signed in there, for example after a reload. The issuer refuses if the
 * person would have to do something.
 */
export async function comeFromIssuer(settings: OidcSignIn): Promise<void> {
  const returned = await readReturn(settings)
  if (returned === undefined) {
    if (isSignedOut()) signIn().value = { state: 'issuer' }
    else await leaveForIssuer(settings, { isSilent: true, back: location.href })
    return
  }
  navigate(returned.back, { replace: true })
  if (returned.isHandedOver) {
    signIn().value = { state: 'handed-over' }
    close()
  } else if (returned.tokens === undefined) signIn().value = { state: 'issuer', problem: returned.problem }
  else await enterWith(returned.tokens)
}

export async function signInAtIssuer(): Promise<void> {
  const settings = oidcSettings()
  if (settings === undefined) return
  await leaveForIssuer(settings, { isSilent: false, back: location.href }).catch((cause: unknown) => {
    signIn().value = { state: 'issuer', problem: problemOf(cause) }
  })
}

/** Takes a pasted token, which only this tab's memory holds. */
export async function useToken(token: string): Promise<void> {
  const tokens: Tokens = { access: token, refresh: undefined, expiresAt: Number.POSITIVE_INFINITY }
  const isAgain = signIn().peek().state === 'expired'
  try {
    await (isAgain ? enterAgain(tokens) : enterWith(tokens))
  } catch (cause) {
    signIn().value = { state: isAgain ? 'expired' : 'token', problem: problemOf(cause) }
  }
}

/** Signs the person of this page in again after a click: by renewing the token if possible, otherwise in a window. */
export async function signInAgain(): Promise<void> {
  const [settings, { tokens }] = [oidcSettings(), held()]
  if (settings === undefined || tokens === undefined) return
  try {
    if (await isRenewed(tokens)) return comeBack()
    const answered = await askInWindow(settings)
    if (answered === undefined)
      throw new Error('The browser opens no window here. Allow it for this page, and try again.')
    await enterAgain(await answered.tokens)
  } catch (cause) {
    signIn().value = { state: 'expired', problem: problemOf(cause) }
  }
}

/** Signs the person out here, in the other tabs and at the issuer, and shows the first page. */
export function signOut(): void {
  const [settings, newest] = [oidcSettings(), held().tokens?.newest]
  markSignedOut()
  if (settings === undefined || newest === undefined) return leave(HOME)
  leave(endSessionUrl(settings, newest, location.origin + HOME) ?? HOME)
}

/** Throws where the issuer cannot be asked. */
const isRenewed = (tokens: HeldTokens): Promise<boolean> =>
  tokens.retry().then(
    () => true,
    (cause: unknown) => {
      if (cause instanceof Refused) return false
      throw cause
    },
  )

async function enterWith(tokens: Tokens): Promise<void> {
  const settings = oidcSettings()
  const onExpired = (problem: string) => void (signIn().value = { state: 'expired', problem })
  const renewOwn = async (refresh: string) => {
    if (settings === undefined) throw new Refused('A pasted token is not renewed.')
    return renew(settings, refresh)
  }
  enter(await callerOf(tokens.access), new HeldTokens(tokens, { renew: renewOwn, onExpired }))
}

/** The page stays for the same person. For another person it is reloaded. */
async function enterAgain(tokens: Tokens): Promise<void> {
  const [before, now] = [caller().peek(), await callerOf(tokens.access)]
  if (before?.tenant !== now.tenant || before.subject !== now.subject) return leave(HOME)
  held().tokens?.take(tokens)
  comeBack()
}

function comeBack(): void {
  signIn().value = { state: 'in' }
  readAgain()
}
