import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import { createModels } from '../../../services/wiring/models/create-models.ts'
import { loadConfig } from '../../../shared/platform/config/config.ts'
import { type ModelServer, startModelServer } from '../../support/model-server/model-server.ts'
import { ask, request } from './ai-sdk/setup.ts'

/** A proxy that refuses every tunnel, and lists the hosts for which one was requested. */
async function startProxy() {
  const hosts: string[] = []
  const server = createServer().listen(0, '127.0.0.1')
  server.on('connect', ({ url = '' }, socket) => {
    hosts.push(url)
    socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n')
  })
  await once(server, 'listening')
  const url = `http://me:canary-pass@127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, hosts, close: () => server.close() }
}

describe("the operator's own providers", () => {
  let proxy: Awaited<ReturnType<typeof startProxy>>
  let server: ModelServer
  beforeEach(async () => {
    proxy = await startProxy()
    server = await startModelServer()
  })
  afterEach(async () => {
    proxy.close()
    await server.close()
  })

  const callWith = async (env: Record<string, string>) => {
    const config = loadConfig({ MODEL: 'm', MODEL_API_KEY: 'k', HTTPS_PROXY: proxy.url, ...env }, 'standalone')
    const { primary } = await createModels(config)
    const parts = await ask(primary?.provider ?? expect.fail('no model'), request({ model: 'm' }))
    return { config, last: parts.at(-1) }
  }

  for (const [type, host] of [
    ['openai-compatible', 'model.invalid:443'],
    ['anthropic', 'model.invalid:443'],
    ['google', 'model.invalid:443'],
  ] as const) {
    it(`D15.1: ${type} is called through HTTPS_PROXY`, async () => {
      const { last } = await callWith({ MODEL_PROVIDER: type, MODEL_BASE_URL: 'https://model.invalid/v1' })
      expect(proxy.hosts).to.deep.equal([host])
      expect(last).to.have.property('failure').that.includes({ code: 'provider_unavailable', reason: 'proxy_error' })
      expect(JSON.stringify(last)).not.to.include('canary-pass')
    })

    it(`D15.1: ${type} is called directly where NO_PROXY names its host`, async () => {
      await callWith({
        MODEL_PROVIDER: type,
        MODEL_BASE_URL: 'https://127.0.0.1:1/v1',
        NO_PROXY: 'localhost,10.0.0.0/8,127.0.0.1',
      })
      expect(proxy.hosts).to.deep.equal([])
    })
  }

  it('D15.1: an http address is never called through HTTPS_PROXY', async () => {
    const { last } = await callWith({ MODEL_PROVIDER: 'ollama', MODEL_BASE_URL: server.url })
    expect(last).to.include({ type: 'finish' })
    expect(proxy.hosts).to.deep.equal([])
  })

  it('the password of HTTPS_PROXY counts as a secret', async () => {
    const { config } = await callWith({ MODEL_PROVIDER: 'ollama', MODEL_BASE_URL: server.url })
    expect(config.secrets).to.include('canary-pass')
  })
})
