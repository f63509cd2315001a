import type { Form } from './fields.ts'
import type { IsSet } from './model.ts'

/** What of D3.3 and of the pairs of D1.3 concerns authentication. `isSet` goes by name, as for models. */
export function authProblems(authMode: string | undefined, form: Form, isSet: IsSet): (string | false)[] {
  const hasIssuer = isSet('OIDC_ISSUER')
  return [
    (authMode === 'soft' || authMode === 'enforced') &&
      !hasIssuer &&
      `AUTH_MODE=${authMode} wants OIDC_ISSUER, which is not set`,
    hasIssuer &&
      !isSet('OIDC_AUDIENCE') &&
      'OIDC_AUDIENCE is not set, but OIDC_ISSUER is: wanted the audience that tokens for this service name',
    ...['OIDC_AUDIENCE', 'OIDC_JWKS_URI'].map(
      (name) => isSet(name) && !hasIssuer && `${name} wants OIDC_ISSUER, which is not set`,
    ),
    isSet('API_TOKEN') && hasIssuer && 'API_TOKEN and OIDC_ISSUER exclude each other: unset one',
    isSet('API_TOKEN') && form === 'cluster' && 'API_TOKEN is for the standalone form only: unset it',
  ]
}

type Doors = { host: string; apiToken: string | undefined; oidcIssuer: string | undefined }

/** Development mode (api.md "Authentication" 5) on an address that others reach. */
export function openDoorWarning({ host, apiToken, oidcIssuer }: Doors, form: Form): string | false {
  if (apiToken !== undefined || oidcIssuer !== undefined || isLoopback(host)) return false
  const missing = form === 'standalone' ? 'API_TOKEN' : 'OIDC_ISSUER'
  return `HOST=${host} without ${missing}: whoever reaches the port can run agents`
}

const isLoopback = (host: string) => /^(localhost|127(\.\d{1,3}){3}|::1)$/.test(host)
