import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { build } from 'vite'

const CLIENT = new URL('../../shared/client/client.ts', import.meta.url).pathname

/** The code that a web page with these exports loads, as Vite builds it. */
async function gzippedBytes(names: string): Promise<number> {
  const entry = {
    name: 'entry',
    resolveId: (id: string) => (id === 'entry' ? id : null),
    load: (id: string) => (id === 'entry' ? `export { ${names} } from ${JSON.stringify(CLIENT)}` : null),
  }
  const built = await build({
    configFile: false,
    logLevel: 'error',
    plugins: [entry],
    build: { write: false, rolldownOptions: { input: 'entry', preserveEntrySignatures: 'strict' } },
  })
  if (!('output' in built)) throw new Error('Vite has built more than one bundle')
  expect(built.output).to.have.length(1)
  return gzipSync(built.output[0].code, { level: 9 }).length
}

describe('the size of the client in a web page', () => {
  it('is at most 6.25 KB for the engine, 7.6 KB with reduceRun, 5.05 KB for runs and sessions alone, and 1.6 KB for reduceRun', async () => {
    expect(await gzippedBytes('AgentEngine')).to.be.at.most(6_400)
    expect(await gzippedBytes('AgentEngine, reduceRun')).to.be.at.most(7_782)
    expect(await gzippedBytes('Transport, createRuns, createSessions')).to.be.at.most(5_171)
    expect(await gzippedBytes('reduceRun')).to.be.at.most(1_638)
  })
})
