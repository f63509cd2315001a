import type { Log } from '../../shared/kernel/log.ts'
import type { Authentication } from '../../shared/platform/api/document.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { readConsole } from '../http/console-files.ts'
import type { ConsoleSettings, ConsoleSignIn } from './routes/console.ts'

type ConsoleConfig = Settings['http']['console']

type Parts = { form: Form; authentication: Authentication; log: Log }

/** Reads the console's files. `undefined` without CONSOLE, and where nobody has built it. */
export async function openConsole(
  config: ConsoleConfig,
  { form, authentication, log }: Parts,
): Promise<ConsoleSettings | undefined> {
  if (!config.hasConsole) return undefined
  const files = await readConsole()
  if (files === undefined) {
    log.warn('there is no console, because it has not been built: run scripts/build-console')
    return undefined
  }
  const signIn = signInOf(config, authentication)
  return { files, signIn, origins: originsOf(config), isHome: form === 'standalone' }
}

function signInOf(
  { oidcIssuer, oidcAudience, consoleClientId, consoleScope }: ConsoleConfig,
  authentication: Authentication,
): ConsoleSignIn {
  if (authentication === 'none') return { kind: 'none' }
  if (oidcIssuer === undefined || oidcAudience === undefined || consoleClientId === undefined) return { kind: 'token' }
  return { kind: 'oidc', issuer: oidcIssuer, client_id: consoleClientId, audience: oidcAudience, scope: consoleScope }
}

const originsOf = ({ oidcIssuer, consoleClientId, consoleOrigins }: ConsoleConfig): string[] =>
  oidcIssuer === undefined || consoleClientId === undefined ? [] : [new URL(oidcIssuer).origin, ...consoleOrigins]
