import { generateKeyPairSync } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { expect } from 'chai'
import { useOpened } from '../../support/fixture.ts'
import { hang, json, stall, status, text } from '../../support/issuer/misbehaviour.ts'
import { newSigner, type Signer } from '../../support/issuer/signer.ts'
import { createForger } from './forger.ts'
import { newSigners, outcomeOf, setUp } from './setup.ts'

const DISCOVERY = '/.well-known/openid-configuration'
const MINUTE = 60_000

describe('key sets of an issuer', () => {
  let signers: Signer[]
  before(async () => {
    signers = await newSigners()
  })
  const auth = useOpened(() => setUp(signers), { perTest: true })

  const bearer = async (alg?: string) => `Bearer ${await auth.issuer.token('acme', alg)}`
  const verdict = (authorization: string) => outcomeOf(auth.identify(authorization))
  const publish = (...keys: unknown[]) => auth.issuer.misbehave(json({ keys }), '/jwks')
  const publicJwks = () => signers.map(({ publicJwk }) => publicJwk)

  const HOSTILE: [name: string, listener: () => RequestListener, reason: RegExp][] = [
    [
      'a redirect to the right set',
      () => status(302, { Location: `${auth.issuer.url}/jwks?` }),
      /answered with status 302/,
    ],
    ['status 500', () => status(500), /answered with status 500/],
    ['status 204', () => status(204), /answered with status 204/],
    ['2 MB', () => text(`{"keys":[],"pad":"${'x'.repeat(2 * 1024 * 1024)}"}`), /too large/],
    [
      '1,000 keys',
      () => json({ keys: Array.from({ length: 1_000 }, () => signers[1]?.publicJwk) }),
      /more than 100 keys/,
    ],
    ['garbage', () => text('\u0000<html>'), /not a JSON object/],
    ['nothing', () => text(''), /not a JSON object/],
    ['a list', () => json([]), /no list of keys/],
    ['null', () => json(null), /not a JSON object/],
    ['keys that are no list', () => json({ keys: { length: 1, 0: {} } }), /no list of keys/],
    ['a compressed answer', () => text('x', { 'Content-Encoding': 'gzip' }), /compressed/],
  ]

  for (const [name, listener, reason] of HOSTILE)
    it(`${name} in place of the key set is 503 on a cold start, and later leaves the known keys in use`, async () => {
      const token = await bearer()
      auth.issuer.misbehave(listener(), '/jwks')
      expect((await verdict(token)).status).to.equal(503)
      expect(JSON.parse(auth.log.at(-1) ?? ''))
        .to.include({ level: 'warn', failures: 1 })
        .property('reason')
        .match(reason)
      auth.issuer.behave()
      auth.clock.pass(1_000)
      expect((await verdict(token)).status).to.equal(200)
      auth.issuer.misbehave(listener(), '/jwks')
      auth.clock.pass(11 * MINUTE)
      expect((await verdict(await bearer())).status).to.equal(200)
    })

  const WRONG_DOCUMENTS: [name: string, document: () => unknown, reason: RegExp][] = [
    [
      'of another issuer',
      () => ({ issuer: 'https://other', jwks_uri: `${auth.issuer.url}/jwks` }),
      /"https:\/\/other"; OIDC_ISSUER/,
    ],
    [
      'of the same issuer with an additional slash',
      () => ({ issuer: `${auth.issuer.url}/`, jwks_uri: `${auth.issuer.url}/jwks` }),
      /must be exactly the same/,
    ],
    ['without an issuer', () => ({ jwks_uri: `${auth.issuer.url}/jwks` }), /names the issuer null/],
    ['without a jwks_uri', () => ({ issuer: auth.issuer.url }), /names null as its jwks_uri/],
    ['that names a file', () => ({ issuer: auth.issuer.url, jwks_uri: 'file:///etc/passwd' }), /file:/],
    ['that names a path', () => ({ issuer: auth.issuer.url, jwks_uri: '/jwks' }), /names "\/jwks"/],
    ['that is a list', () => [], /names the issuer null/],
  ]

  for (const [name, document, reason] of WRONG_DOCUMENTS)
    it(`D1.3 OIDC_JWKS_URI: a discovery document ${name} is refused`, async () => {
      const token = await bearer()
      auth.issuer.misbehave(json(document()), DISCOVERY)
      expect((await verdict(token)).status).to.equal(503)
      expect(JSON.parse(auth.log.at(-1) ?? '').reason).to.match(reason)
      expect(auth.issuer.keyFetches).to.equal(0)
    })

  it('a discovery document that never arrives, and a key set that stops midway, cost 3 seconds', async () => {
    const token = await bearer()
    for (const [listener, path] of [
      [hang, DISCOVERY],
      [stall, '/jwks'],
    ] as const) {
      auth.issuer.misbehave(listener, path)
      const begun = performance.now()
      expect((await verdict(token)).status).to.equal(503)
      expect(performance.now() - begun).to.be.at.least(2_900)
      auth.clock.pass(1_000)
    }
  })

  it('unusable keys are skipped and the others are used', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
    const rsa = { ...publicKey.export({ format: 'jwk' }), use: 'sig' }
    const ed448 = generateKeyPairSync('ed448').publicKey.export({ format: 'jwk' })
    const odd = [
      null,
      'key',
      [],
      { kty: 'oct', k: 'c2VjcmV0' },
      { kty: 'RSA' },
      { ...rsa, kid: 7 },
      { ...ed448, kid: 'r1' },
    ]
    const wrong = [
      { ...rsa, kid: 'r1', n: 'x'.repeat(100_000) },
      { ...rsa, kid: 'r1', e: 'AQ' },
      { kty: 'EC', crv: 'P-256', x: 'AAAA', y: 'AAAA', kid: 'e1' },
      { ...privateKey.export({ format: 'jwk' }), kid: 'r1' },
    ]
    publish(...odd, ...wrong, ...publicJwks())
    for (const alg of ['RS256', 'ES256', 'EdDSA']) expect((await verdict(await bearer(alg))).status).to.equal(200)
    expect(JSON.parse(auth.log.at(-1) ?? '')).to.include({ keys: signers.length + 1 })
  })

  it('a key set without a usable key refuses every token with 401, because the issuer did answer', async () => {
    const token = await bearer()
    publish()
    expect((await verdict(token)).why).to.equal('key')
    expect(auth.log.at(-1)).to.contain('publishes no usable key')
  })

  it('a token without a kid is verified when exactly one key fits, also after a rotation', async () => {
    const [first, second] = [await newSigner('EdDSA', 'a'), await newSigner('EdDSA', 'b')]
    const { kid: _a, ...firstJwk } = first.publicJwk
    const { kid: _b, ...secondJwk } = second.publicJwk
    const { token } = await createForger(auth.issuer.url)
    const withoutKid = (by: Signer) => `Bearer ${token({ by, header: { kid: undefined } })}`
    publish(firstJwk)
    expect((await verdict(withoutKid(first))).status).to.equal(200)
    publish(secondJwk)
    expect((await verdict(withoutKid(second))).why).to.equal('signature')
    auth.clock.pass(10_000)
    expect((await verdict(withoutKid(second))).status).to.equal(200)
    expect((await verdict(withoutKid(first))).why).to.equal('signature')
  })

  it('the discovery document is read again after a failure, because the keys may have a new address', async () => {
    await auth.identify(await bearer())
    const document = json({ issuer: auth.issuer.url, jwks_uri: `${auth.issuer.url}/moved` })
    const keys = json({ keys: publicJwks() })
    auth.issuer.misbehave((req, res) => {
      if (req.url === DISCOVERY) return document(req, res)
      return req.url === '/moved' ? keys(req, res) : status(404)(req, res)
    })
    auth.clock.pass(9 * MINUTE)
    const unknown = `Bearer ${(await createForger(auth.issuer.url)).token()}`
    await verdict(unknown)
    auth.clock.pass(10_000)
    await verdict(unknown)
    expect(auth.issuer.requests.slice(-2)).to.deep.equal([DISCOVERY, '/moved'])
  })

  it("the log says how far this machine's clock and the issuer's are apart", async () => {
    const keys = JSON.stringify({ keys: publicJwks() })
    const sentAt = (offsetMs: number) => new Date(auth.clock.epochMs() + offsetMs).toUTCString()
    auth.issuer.misbehave(text(keys, { Date: sentAt(-600_000), Age: '595' }), '/jwks')
    await auth.identify(await bearer())
    expect(auth.log.join()).not.to.contain('clock')
    auth.clock.pass(11 * MINUTE)
    auth.issuer.misbehave(text(keys, { Date: sentAt(600_000) }), '/jwks')
    await auth.identify(await bearer())
    expect(JSON.parse(auth.log.at(-1) ?? '').ahead_secs).to.be.within(-601, -599)
  })
})
