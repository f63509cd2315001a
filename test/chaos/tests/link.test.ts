import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect } from 'chai'
import { Random } from '../../harness/seed.ts'
import { useRedis } from '../../support/redis.ts'
import { Link } from '../proxy/link.ts'

describe('a connection through the proxy', () => {
  const redis = useRedis()

  it('closes when it is reset while it is shutting down', async () => {
    const closed = Promise.withResolvers<string>()
    const resets: string[] = []
    const listener = createServer({ allowHalfOpen: true }, (client) => {
      const link = new Link({
        client,
        server: { host: '127.0.0.1', port: redis.server.port },
        faults: () => ({}),
        random: new Random(1),
        keep: () => true,
        onUnreadable: () => {},
        onReset: () => void resets.push('reset'),
        onClosed: () => closed.resolve('closed'),
      })
      client.on('end', () => link.reset(0)) // The link has just forwarded the end to the server.
    }).listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const client = connect((listener.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
    client.write('PING\r\n')
    await once(client, 'data')
    client.end()
    expect(await closed.promise).to.equal('closed')
    expect(resets).to.deep.equal(['reset'])
    listener.close()
  })
})
