import { createApp } from '../../../../services/gateway/app.ts'
import { createServer } from '../../../../services/http/server.ts'
import type { Broker } from '../../../../shared/broker/port.ts'
import { createLog } from '../../../../shared/log.ts'
import { type HandClock, setUp } from '../../../auth/setup.ts'
import type { Issuer } from '../../../support/issuer/issuer.ts'
import type { Signer } from '../../../support/issuer/signer.ts'
import { Door } from './door.ts'

export type ClockedGateway = AsyncDisposable & { door: Door; issuer: Issuer; clock: HandClock }

/**
 * The gateway's HTTP face and verification as they are, over a real issuer, and a clock that is moved by hand: so an hour
 * of outage takes a second. It stands in this process, since no gateway takes its clock from outside.
 */
export async function openClockedGateway(signers: readonly Signer[]): Promise<ClockedGateway> {
  const { issuer, clock, identify, close } = await setUp(signers)
  const app = createApp({
    basePath: '/api/v1',
    broker: {} as Broker, // `GET /tools` asks none.
    tools: [],
    identify,
    cors: { origins: [], allowHeaders: [], exposeHeaders: [] },
    trustProxy: false,
    hasExplorer: false,
    relay: { keepaliveMs: 15_000 },
    log: createLog({ level: 'error', write: () => {} }),
  })
  const server = createServer(app)
  const { port } = await server.listen(0, '127.0.0.1')
  const door = new Door(`http://127.0.0.1:${port}/api/v1`)
  const dispose = async () => {
    door[Symbol.dispose]()
    await server.close(0)
    await close()
  }
  return { door, issuer, clock, [Symbol.asyncDispose]: dispose }
}
