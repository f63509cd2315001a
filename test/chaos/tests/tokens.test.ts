import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { isKept } from '../../harness/guarantee.ts'
import { openClockedGateway } from '../scenarios/tokens/clocked-gateway.ts'
import { Door } from '../scenarios/tokens/door.ts'
import { forgerFor, tryForgeries } from '../scenarios/tokens/forgeries.ts'

describe('what P15 is judged by', function () {
  this.timeout(30_000) // A forger makes ten key pairs.

  it('P15: a door tells how each token was answered, in the order of the tokens', async () => {
    await using gateway = await openClockedGateway([])
    const { token, signers } = await forgerFor(gateway.issuer)
    const tokens = Array.from({ length: 100 }, (_, i) => (i % 3 === 0 ? token() : token({ by: signers.foreign })))
    const wanted = tokens.map((_, i) => (i % 3 === 0 ? 200 : 401))
    expect(await gateway.door.statuses(tokens)).to.deep.equal(wanted)
  })

  it('P15: a gateway that lets everybody in breaks the promise, and one that refuses everybody does too', async () => {
    await using gateway = await openClockedGateway([])
    const forger = await forgerFor(gateway.issuer)
    for (const [status, broken] of [
      [200, ['forged tokens accepted']],
      [401, ['good tokens accepted']],
    ] as const) {
      const server = createServer((_req, res) => void res.writeHead(status).end())
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
      using door = new Door(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      const promised = await tryForgeries(forger, [door])
      server.close()
      expect(promised.filter((each) => !isKept(each)).map(({ title }) => title)).to.deep.equal(broken)
    }
  })
})
