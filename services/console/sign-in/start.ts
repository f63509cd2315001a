import { readConfig } from './config.ts'
import { callerOf, enter, held, oidcSettings, problemOf, signIn } from './session.ts'

/** It is loaded where people have tokens. */
export const withTokens = () => import('./with-tokens.ts')

/** Starts the sign-in that the server requires. */
export async function startSignIn(): Promise<void> {
  signIn().value = { state: 'starting' }
  try {
    held().config = await readConfig()
    const settings = oidcSettings()
    if (settings) await (await withTokens()).comeFromIssuer(settings)
    else if (held().config?.sign_in.kind === 'token') signIn().value = { state: 'token' }
    else enter(await callerOf(undefined), undefined)
  } catch (cause) {
    signIn().value = { state: 'failed', problem: problemOf(cause) }
  }
}
