import { once } from '../../shared/kernel/async/once.ts'
import type { Log } from '../../shared/kernel/log.ts'
import type { Authentication } from '../../shared/platform/api/document.ts'
import type { Form } from '../../shared/platform/config/fields.ts'
import type { Settings } from '../../shared/platform/config/groups.ts'
import { isConsoleBuilt, readConsole } from '../http/console-files.ts'
import type { ConsoleSettings, ConsoleSignIn } from './routes/console.ts'

type ConsoleConfig = Settings['http']['console']

type Parts = { form: Form; authentication: Authentication; log: Log }

/** Finds the console. `undefined` without CONSOLE, and where nobody has built it. */
export async function openConsole(
  config: ConsoleConfig,
  { form, authentication, log }: Parts,
): Promise<ConsoleSettings | undefined> {
  if (!config.hasConsole) return undefined
  if (!(await isConsoleBuilt())) {
    log.warn('there is no console, because it has not been built: run scripts/build-console')
    return undefined
  }
  const signIn = signInOf(config, authentication)
  return { files: once(readConsole), signIn, origins: originsOf(config), isHome: form === 'standalone' }
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
