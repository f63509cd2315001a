import { AUDIENCE, Issuer } from '../../../support/issuer/issuer.ts'
import { forgedClasses } from '../../../tenancy/auth/forged-classes.ts'
import { forgerFor } from '../tokens/forgeries.ts'

/** The tenants of a soak. The tokens stay valid however a fault shifts the clock of a process. */
export type Tenants = AsyncDisposable & {
  owner: Headers
  stranger: Headers
  /** Takes as much as it gets. */
  hostile: Headers
  /** Headers that no gateway may accept, whatever its clock says. */
  forged: readonly Headers[]
  /** Settings of the processes. */
  env: Record<string, string>
  /** The valid tokens, which no process may print. */
  secrets: readonly string[]
}

type Headers = Readonly<Record<string, string>>

const DAYS = 86_400

/** Starts an issuer and makes tokens of three tenants, and forged ones. */
export async function openTenants(): Promise<Tenants> {
  const issuer = await Issuer.start([])
  const forger = await forgerFor(issuer)
  const nowSecs = Math.floor(Date.now() / 1_000)
  const tokenOf = (tenant: string, days = 3) =>
    forger.token({ claims: { tenant_id: tenant, exp: nowSecs + days * DAYS, iat: nowSecs - DAYS, nbf: undefined } })
  const [owner, stranger, hostile] = [tokenOf('acme'), tokenOf('globex'), tokenOf('initech')]
  const untimely = new Set(['expired', 'not_yet'])
  const forged = forgedClasses(forger).filter(([, why]) => !untimely.has(why))
  return {
    owner: bearer(owner),
    stranger: bearer(stranger),
    hostile: bearer(hostile),
    forged: [{}, bearer(tokenOf('acme', -3)), ...forged.map(([, , token]) => bearer(token))],
    env: { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, AUTH_MODE: 'enforced' },
    secrets: [owner, stranger],
    [Symbol.asyncDispose]: () => issuer.close(),
  }
}

const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })
