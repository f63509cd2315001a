import { expect } from 'chai'
import type { HttpGet } from '../../../shared/tenancy/auth/port.ts'
import { createReadKeys } from '../../../shared/tenancy/auth/published-keys.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { HandClock } from './setup.ts'

const KEYS = { keys: [{ kty: 'OKP' }] }

/** Serves documents by address and records the requested addresses. */
function webOf(documents: Record<string, unknown>) {
  const asked: string[] = []
  const limits: Parameters<HttpGet>[1][] = []
  const get: HttpGet = async (url, given) => {
    asked.push(url)
    limits.push(given)
    const body = ReadableStream.from([Buffer.from(JSON.stringify(documents[url]))])
    return { status: 200, headers: {}, body, discard: () => {} }
  }
  return { asked, limits, get }
}

function open(issuer: string, documents: Record<string, unknown>, jwksUri?: string) {
  const web = webOf(documents)
  const clock = new HandClock()
  const log = SILENT_LOG
  const read = createReadKeys({ issuer, get: web.get, clock, log, jwksUri })
  return { ...web, clock, read }
}

const messageOf = (promise: Promise<unknown>) => promise.then(String, (cause: Error) => cause.message)

describe('published keys', () => {
  it('D1.3: with OIDC_JWKS_URI no discovery document is read', async () => {
    const { read, asked, limits } = open(
      'https://issuer.example',
      { 'https://keys.example/x': KEYS },
      'https://keys.example/x',
    )
    expect(await read()).to.deep.equal(KEYS.keys)
    expect(asked).to.deep.equal(['https://keys.example/x'])
    expect(limits[0]).to.include({ timeoutMs: 3_000, maxBytes: 262_144 })
  })

  it('the discovery document has the same address whether or not the issuer ends with a slash', async () => {
    const wellKnown = 'https://issuer.example/t/.well-known/openid-configuration'
    const document = { issuer: 'https://issuer.example/t/', jwks_uri: 'https://keys.example/' }
    const { read, asked } = open('https://issuer.example/t/', { [wellKnown]: document, 'https://keys.example/': KEYS })
    expect(await read()).to.deep.equal(KEYS.keys)
    expect(asked).to.deep.equal([wellKnown, 'https://keys.example/'])
  })

  it('an https issuer whose keys are at an http address is refused', async () => {
    const wellKnown = 'https://issuer.example/.well-known/openid-configuration'
    const document = { issuer: 'https://issuer.example', jwks_uri: 'http://keys.example/' }
    const { read, asked } = open('https://issuer.example', { [wellKnown]: document, 'http://keys.example/': KEYS })
    expect(await messageOf(read())).to.match(/names "http:\/\/keys\.example\/" as its jwks_uri/)
    expect(asked).to.deep.equal([wellKnown])
  })

  it('the discovery document is read again after 10 minutes', async () => {
    const wellKnown = 'http://issuer.example/.well-known/openid-configuration'
    const document = { issuer: 'http://issuer.example', jwks_uri: 'http://keys.example/' }
    const { read, asked, clock } = open('http://issuer.example', {
      [wellKnown]: document,
      'http://keys.example/': KEYS,
    })
    await read()
    clock.pass(599_999)
    await read()
    expect(asked).to.have.length(3)
    clock.pass(1)
    await read()
    expect(asked).to.have.length(5)
  })
})
