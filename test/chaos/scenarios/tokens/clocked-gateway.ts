import { createApp } from '../../../../services/gateway/app.ts'
import { createServer } from '../../../../services/http/server.ts'
import type { Broker } from '../../../../shared/cluster/commands/broker.ts'
import { appDeps } from '../../../support/app-defaults.ts'
import type { Issuer } from '../../../support/issuer/issuer.ts'
import type { Signer } from '../../../support/issuer/signer.ts'
import { SILENT_LOG } from '../../../support/silent-log.ts'
import { type HandClock, setUp } from '../../../tenancy/auth/setup.ts'
import { TokenProbe } from './token-probe.ts'

export type ClockedGateway = AsyncDisposable & { probe: TokenProbe; issuer: Issuer; clock: HandClock }

/**
 * The gateway's HTTP application and token verification with a real issuer and a manual clock, so that an hour of outage
 * takes a second. It runs in this process, since a gateway process has no setting for its clock.
 */
export async function openClockedGateway(signers: readonly Signer[]): Promise<ClockedGateway> {
  const { issuer, clock, identify, close } = await setUp(signers)
  const app = createApp(
    appDeps({
      hasExplorer: false,
      basePath: '/api/v1',
      broker: {} as Broker, // `GET /tools` does not use it.
      identify,
      authentication: 'oidc',
      log: SILENT_LOG,
    }),
  )
  const server = createServer(app)
  const { port } = await server.listen(0, '127.0.0.1')
  const probe = new TokenProbe(`http://127.0.0.1:${port}/api/v1`)
  const dispose = async () => {
    probe[Symbol.dispose]()
    await server.close(0)
    await close()
  }
  return { probe, issuer, clock, [Symbol.asyncDispose]: dispose }
}
