import { expect } from 'chai'
import { type ModelServer, startModelServer } from '../../../support/model-server/model-server.ts'
import { connect, DIALECTS } from '../ai-sdk/setup.ts'
import { spare, start } from './retry-setup.ts'

/** The provider reports an error as its first event and leaves the response open. */
const ERROR = { raw: 'event: error\ndata: {"error":{"code":503,"message":"Busy.","status":"UNAVAILABLE"}}\n\n' }

/** Ends the call soon when a test fails, so that the process can end. */
const LIMITS = { turnMs: 5_000 }

describe('the connection of a failed attempt', () => {
  let server: ModelServer

  beforeEach(async () => {
    server = await startModelServer()
  })

  afterEach(() => server.close())

  for (const dialect of DIALECTS) {
    it(`is closed when its retry is announced, by way of ${dialect}`, async () => {
      server.answer([ERROR, { hang: true }])
      const request = server.nextRequest()
      const provider = await connect(dialect, server, LIMITS)
      for await (const part of start(provider, { retry: { baseDelayMs: 60_000 } })) {
        expect(part).to.include({ type: 'warning', code: 'transport_retrying' })
        await (await request).closedByClient
        break
      }
      expect(server.requests).to.have.length(1)
    })
  }

  it('is closed when the fallback is announced', async () => {
    server.answer([ERROR, { hang: true }])
    const request = server.nextRequest()
    const provider = await connect('openai-compatible', server, LIMITS)
    for await (const part of start(provider, { fallback: spare(provider), retry: { maxRequests: 1 } })) {
      expect(part).to.include({ type: 'warning', code: 'provider_failover' })
      await (await request).closedByClient
      break
    }
  })
})
