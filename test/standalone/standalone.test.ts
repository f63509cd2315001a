import { expect } from 'chai'
import { openStandalone } from '../../services/standalone/standalone.ts'
import { useOpening } from '../wiring/opening.ts'

describe('the standalone form', () => {
  const opening = useOpening()

  async function open(env: Record<string, string> = {}) {
    const { url, opsUrl, closers } = await openStandalone(opening.settings(env), opening.log)
    const close = async () => {
      for (const closer of closers.splice(0)) await closer.close()
    }
    opening.closing(close)
    return { url, opsUrl, closers, close }
  }
  const statusOf = async (url: string) => (await fetch(url)).status

  it('api.md Endpoints: serves the API and the ops pages, and says that it is ready, once it is opened', async () => {
    const { url, opsUrl } = await open()
    expect(await statusOf(`${url}/health`)).to.equal(200)
    expect(await statusOf(`${opsUrl}/readyz`)).to.equal(200)
  })

  it('ends its work before the parts that the work needs, and the store last of them', async () => {
    const { closers } = await open()
    const names = closers.map(({ name }) => name)
    expect(names.slice(1, -1)).to.deep.equal([
      ...['runs and streams', 'queue', 'tools', 'tenant configuration', 'store'],
    ])
  })

  it('D4.8: a run that is cut tells its reader so before the listener closes', async () => {
    const { url, closers } = await open()
    const body = JSON.stringify({ prompt: '/sleep 60000' })
    const stream = await fetch(`${url}/agent/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body,
    })
    const reading = stream.text()
    const [drainOps, drainRuns] = closers
    await drainOps?.close()
    await drainRuns?.close()
    expect(await reading).to.match(/event: error\ndata: .*"code":"worker_draining"/)
    closers.splice(0, 2)
  })
})
