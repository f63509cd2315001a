import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import type { Egress, EgressResponse } from '../../../shared/platform/net/port.ts'
import { attemptDelivery, nextAfter, RETRY_DELAYS_MS } from '../../../shared/tenancy/webhooks/attempt.ts'
import { isWebhookSecret, signatureHeaders } from '../../../shared/tenancy/webhooks/signature.ts'

const NEVER = new AbortController().signal
const MESSAGE = { url: 'https://x.example', secrets: [`whsec_${'A'.repeat(32)}`], id: 'msg_1', body: '{}' }

async function* nothing(): AsyncGenerator<Uint8Array> {}

const answering = (status: number, headers: EgressResponse['headers'] = {}): Pick<Egress, 'request'> => ({
  request: async () => ({ status, headers, body: nothing(), discard: () => {} }),
})

describe('the signature of a webhook', () => {
  it('is that of the example in the Standard Webhooks specification', () => {
    const headers = signatureHeaders(
      { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', sentAt: new Date(1_614_265_330_000), body: '{"test": 2432232314}' },
      ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    )
    expect(headers).to.deep.equal({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  it('is made with secrets of 24 to 64 bytes in base64 only', () => {
    const of = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`
    expect([23, 24, 64, 65].map((bytes) => isWebhookSecret(of(bytes)))).to.deep.equal([false, true, true, false])
    for (const prefix of ['', 'secret']) expect(isWebhookSecret(of(32).replace('whsec_', prefix))).to.equal(false)
    expect(isWebhookSecret(`whsec_${'A'.repeat(31)}B`)).to.equal(true)
    for (const text of ['-'.repeat(32), `${'A'.repeat(16)}=${'A'.repeat(16)}`, `=${'A'.repeat(32)}`])
      expect(isWebhookSecret(`whsec_${text}`), text).to.equal(false)
  })
})

describe('an attempt to deliver a webhook', () => {
  it('succeeds with any status of 2xx, and says of every other one that it failed', async () => {
    for (const status of [200, 204, 299])
      expect(await attemptDelivery(MESSAGE, answering(status), NEVER)).to.deep.equal({ status })
    for (const status of [199, 300, 399, 400, 500]) {
      const { error } = await attemptDelivery(MESSAGE, answering(status), NEVER)
      const redirect = status >= 300 && status < 400 ? '; redirects are not followed' : ''
      expect(error).to.equal(`The receiver answered ${status}${redirect}.`)
    }
  })

  it('is a POST of the signed message as JSON, whose answer may not be long', async () => {
    const asked: unknown[] = []
    const request: Egress['request'] = async (url, { headers, signal: _signal, ...options }) => {
      const { 'webhook-signature': signature, 'webhook-timestamp': _sent, ...others } = headers ?? {}
      asked.push({ url, ...options, headers: others, isSigned: String(signature).startsWith('v1,') })
      return answering(200).request(url, { method: 'POST', signal: NEVER, maxBytes: 1, timeoutMs: 1 })
    }
    await attemptDelivery(MESSAGE, { request }, NEVER)
    const headers = { 'content-type': 'application/json', 'user-agent': 'agent-engine-webhooks', 'webhook-id': 'msg_1' }
    const limits = { maxBytes: 65_536, timeoutMs: 15_000 }
    expect(asked).to.deep.equal([{ url: MESSAGE.url, method: 'POST', body: '{}', ...limits, headers, isSigned: true }])
  })

  it('that fails by a bug says nothing of it', async () => {
    const request = async () => Promise.reject(new Error('sk-secret'))
    expect(await attemptDelivery(MESSAGE, { request }, NEVER)).to.deep.equal({
      error: 'The request could not be sent.',
    })
  })

  it('does not read the answer of the receiver', async () => {
    let discarded = 0
    const request = async () => ({ status: 200, headers: {}, body: nothing(), discard: () => void discarded++ })
    await attemptDelivery(MESSAGE, { request }, NEVER)
    expect(discarded).to.equal(1)
  })

  it('is repeated at the receiver’s Retry-After when that is later, an hour at most', async () => {
    const result = await attemptDelivery(MESSAGE, answering(429, { 'retry-after': '120' }), NEVER)
    expect(nextAfter(result, 1)).to.deep.equal({ waitMs: 120_000 })
    for (const seconds of ['3601', '999999', '9'.repeat(400)]) {
      const late = await attemptDelivery(MESSAGE, answering(503, { 'retry-after': seconds }), NEVER)
      expect(nextAfter(late, 1)).to.deep.equal({ waitMs: 3_600_000 })
    }
    for (const early of ['1', '-120', 'after 120', '120 seconds', ['120', '240']]) {
      const next = nextAfter(await attemptDelivery(MESSAGE, answering(429, { 'retry-after': early }), NEVER), 1)
      expect(next, String(early)).to.have.property('waitMs').that.is.within(5_000, 5_500)
    }
  })

  it('is final when the receiver is gone', async () => {
    expect(nextAfter(await attemptDelivery(MESSAGE, answering(410), NEVER), 1)).to.equal('dead')
  })

  it('that cannot connect is repeated with growing waits until they are used up', async () => {
    const request = async () => Promise.reject(new AppError('upstream', 'x.example could not be reached.'))
    const result = await attemptDelivery(MESSAGE, { request }, NEVER)
    expect(result).to.deep.equal({ error: 'x.example could not be reached.' })
    for (const [index, delay] of RETRY_DELAYS_MS.entries()) {
      const next = nextAfter(result, index + 1)
      expect(next)
        .to.have.property('waitMs')
        .that.is.within(delay, delay * 1.1)
    }
    expect(nextAfter(result, RETRY_DELAYS_MS.length + 1)).to.equal('dead')
  })
})
