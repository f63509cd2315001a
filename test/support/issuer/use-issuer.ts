import { useOpened } from '../../support/fixture.ts'
import { AUDIENCE, Issuer } from './issuer.ts'
import { newSigner } from './signer.ts'

/** An issuer for the tests of the enclosing `describe`. Requests without a token are of the tenant t_default. */
export function useIssuer() {
  const issuer = useOpened(async () => Issuer.start([await newSigner('RS256', 'r1')]))
  return {
    env: () => ({ OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, AUTH_MODE: 'soft' }),
    headersOf: async (tenant: string) => ({ authorization: `Bearer ${await issuer.token(tenant)}` }),
  }
}
