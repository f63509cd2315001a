import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { type Child, spawnChild } from '../../scripts/local-services/child.ts'
import { requireProgram } from '../../scripts/local-services/debian-programs.ts'
import { freePort } from '../../scripts/local-services/free-port.ts'
import { type TestOps, useOps } from '../ops/setup.ts'
import { useTempFolder } from '../support/temp-folder.ts'
import { until } from '../support/until.ts'
import { readDeploy } from './files.ts'

const STOP_MS = 5_000

type Gateway = { port: number; ops: TestOps }

describe('deploy/haproxy in front of two gateways', () => {
  const openOps = useOps()
  const servers: Server[] = []
  const children: Child[] = []
  const dir = useTempFolder({ perTest: true })
  afterEach(async () => {
    await Promise.all(children.splice(0).map((child) => child.stop(STOP_MS)))
    for (const server of servers.splice(0)) {
      server.close()
      server.closeAllConnections()
    }
  })

  /** A public listener that answers as given, beside the ops listener of a gateway with ALLOWED_HOSTS. */
  async function gateway(handle: RequestListener): Promise<Gateway> {
    const server = createServer(handle).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    const ops = await openOps({ allowedHosts: ['agents.example.com'] }, 'standalone')
    ops.ready({})
    return { port: (server.address() as AddressInfo).port, ops }
  }

  /** Starts HAProxy with the configuration of deploy/haproxy. Only addresses are replaced. */
  async function start(gateways: readonly Gateway[]): Promise<string> {
    const port = await freePort()
    const file = join(dir.path, 'haproxy.cfg')
    const config = readDeploy('haproxy/haproxy.cfg')
      .replace('bind :8080', `bind 127.0.0.1:${port}`)
      .replaceAll(/server (gateway-(\d)) \S+/g, (_line, name: string, number: string) => {
        const { port: own, ops } = gateways[Number(number) - 1] ?? expect.fail('more servers than gateways')
        return `server ${name} 127.0.0.1:${own} check port ${new URL(ops.url).port}`
      })
    await writeFile(file, config)
    const command = await requireProgram('haproxy')
    const child = await spawnChild({ name: 'haproxy', command, args: ['-db', '-f', file] })
    children.push(child)
    const url = `http://127.0.0.1:${port}`
    const isUp = async () => {
      if (!child.isRunning) throw child.failure('ended before it answered')
      return (await fetch(url, { method: 'HEAD' }).catch(() => undefined))?.ok
    }
    await until(isUp, { what: 'HAProxy to answer', lastSeen: () => child.output })
    return url
  }

  it('its checks find gateways with ALLOWED_HOSTS, and take one that drains out before it refuses work', async () => {
    const names: RequestListener[] = ['a', 'b'].map((name) => (_req, res) => res.end(name))
    const gateways = await Promise.all(names.map(gateway))
    const url = await start(gateways)
    const answers = async () => {
      const texts = Array.from({ length: 8 }, async () => (await fetch(url)).text())
      return [...new Set(await Promise.all(texts))].toSorted().join()
    }
    await until(async () => (await answers()) === 'a,b', { what: 'both gateways to answer' })
    await gateways[0]?.ops.drain.close()
    await until(async () => (await answers()) === 'b', { what: 'the draining one to be left' })
  })

  it('events pass at once, a client that leaves closes the stream, and a POST that broke off is not sent again', async () => {
    const left = Promise.withResolvers<void>()
    let posts = 0
    const handle: RequestListener = (req, res) => {
      if (req.method === 'POST') return void req.resume().once('end', () => ++posts && req.socket.destroy())
      if (req.url !== '/stream') return void res.end()
      res.once('close', left.resolve).writeHead(200, { 'content-type': 'text/event-stream' }).write(': ok\n')
    }
    const url = await start([await gateway(handle), await gateway(handle)])
    const leave = new AbortController()
    const answer = await fetch(`${url}/stream`, { signal: leave.signal })
    const { value } = (await answer.body?.getReader().read()) ?? {}
    expect(new TextDecoder().decode(value)).to.equal(': ok\n')
    leave.abort()
    await left.promise
    expect((await fetch(url, { method: 'POST', body: '{"prompt":"once"}' })).status).to.equal(502)
    expect(posts).to.equal(1)
  })
})
