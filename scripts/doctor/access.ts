import { openAccessWarning } from '../../shared/platform/config/auth.ts'
import type { Check } from './finding.ts'

/** Whether other machines can call the API without a token. */
export const checkAccess: Check = async ({ config, isCluster }) => {
  const problem = openAccessWarning(config, isCluster ? 'cluster' : 'standalone')
  return problem === undefined ? [] : [{ problem, cure: 'set OIDC_ISSUER and OIDC_AUDIENCE' }]
}
