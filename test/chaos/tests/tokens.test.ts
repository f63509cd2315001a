import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { isKept } from '../../harness/guarantee.ts'
import { openClockedGateway } from '../scenarios/tokens/clocked-gateway.ts'
import { forgerFor, tryForgeries } from '../scenarios/tokens/forgeries.ts'
import { TokenProbe } from '../scenarios/tokens/token-probe.ts'

describe('the measurement of P15', () => {
  it('P15: a probe returns the status of each token in the order of the tokens', async () => {
    await using gateway = await openClockedGateway([])
    const { token, signers } = await forgerFor(gateway.issuer)
    const tokens = Array.from({ length: 100 }, (_, i) => (i % 3 === 0 ? token() : token({ by: signers.foreign })))
    const wanted = tokens.map((_, i) => (i % 3 === 0 ? 200 : 401))
    expect(await gateway.probe.statuses(tokens)).to.deep.equal(wanted)
  })

  it('P15: a gateway that accepts every token breaks the promise, and so does one that refuses every token', async () => {
    await using gateway = await openClockedGateway([])
    const forger = await forgerFor(gateway.issuer)
    for (const [status, broken] of [
      [200, ['forged tokens accepted']],
      [401, ['valid tokens accepted']],
    ] as const) {
      const server = createServer((_req, res) => void res.writeHead(status).end())
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
      using probe = new TokenProbe(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      const guarantees = await tryForgeries(forger, [probe])
      server.close()
      expect(guarantees.filter((each) => !isKept(each)).map(({ title }) => title)).to.deep.equal(broken)
    }
  })
})
