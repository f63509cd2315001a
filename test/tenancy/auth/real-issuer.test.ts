import { expect } from 'chai'
import { useOpened } from '../../support/fixture.ts'
import { hang, status } from '../../support/issuer/misbehaviour.ts'
import { newSigner, type Signer } from '../../support/issuer/signer.ts'
import { createForger } from './forger.ts'
import { newSigners, outcomeOf, setUp } from './setup.ts'

const MINUTE = 60_000

describe('tokens of a real issuer', () => {
  let signers: Signer[]
  before(async () => {
    signers = await newSigners()
  })
  const auth = useOpened(() => setUp(signers), { perTest: true })

  const bearer = async (client?: string, alg?: string) => `Bearer ${await auth.issuer.token(client, alg)}`
  const verdict = (authorization: string) => outcomeOf(auth.identify(authorization))

  for (const alg of ['RS256', 'ES256', 'EdDSA'])
    it(`api.md Authentication 2: a token signed with ${alg} verifies, and its claim decides the tenant`, async () => {
      expect(await auth.identify(await bearer('acme', alg))).to.deep.equal({ tenant: 'acme', subject: 'acme' })
      expect(await auth.identify(await bearer('globex', alg))).to.deep.equal({ tenant: 'globex', subject: 'globex' })
    })

  it('P15: 50 tokens at once on a cold start cause one fetch', async () => {
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, i) => bearer(i % 2 ? 'acme' : 'globex')))
    const identities = await Promise.all(tokens.map(async (token) => auth.identify(token)))
    expect(identities.map(({ tenant }) => String(tenant))).to.deep.equal(
      tokens.map((_, i) => (i % 2 ? 'acme' : 'globex')),
    )
    expect(auth.issuer.keyFetches).to.equal(1)
  })

  it('P15: 5,000 unknown kids cause no fetch within 10 seconds of the last one, and one after that', async () => {
    const { token, signers: own } = await createForger(auth.issuer.url)
    const unknown = Array.from({ length: 5_000 }, (_, i) => `Bearer ${token({ by: own.ed, header: { kid: `k${i}` } })}`)
    await auth.identify(await bearer())
    expect(auth.issuer.keyFetches).to.equal(1)
    auth.clock.pass(9_999)
    for (const authorization of unknown) expect((await verdict(authorization)).status).to.equal(401)
    expect(auth.issuer.keyFetches).to.equal(1)
    auth.clock.pass(1)
    const verdicts = await Promise.all(unknown.map(verdict))
    expect(new Set(verdicts.map(({ status: code }) => code))).to.deep.equal(new Set([401]))
    expect(auth.issuer.keyFetches).to.equal(2)
  })

  it('P15: after a rotation the new key is accepted with the first fetch, and after 10 seconds at the latest', async () => {
    const old = await bearer()
    await auth.identify(old)
    const next = await newSigner('RS256', 'r2')
    auth.issuer.rotate([next, ...signers])
    const fresh = await bearer()
    expect((await verdict(fresh)).why).to.equal('key')
    auth.clock.pass(10_000)
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => verdict(fresh)))
    expect(verdicts.every(({ status: code }) => code === 200)).to.equal(true)
    expect((await verdict(old)).status).to.equal(200)
    expect(auth.issuer.keyFetches).to.equal(2)
  })

  it('P15: a new key with an old kid is found in the same way', async () => {
    await auth.identify(await bearer())
    auth.issuer.rotate([await newSigner('RS256', 'r1')])
    auth.clock.pass(10_000)
    expect((await verdict(await bearer())).status).to.equal(200)
  })

  it('a removed key is refused within 10 minutes, and so are tokens that were verified with it', async () => {
    const old = await bearer('acme', 'ES256')
    await auth.identify(old)
    auth.issuer.rotate([await newSigner('ES256', 'e2')])
    auth.clock.pass(10 * MINUTE)
    expect((await verdict(old)).why).to.equal('key')
  })

  it('P15: while the issuer is down for an hour no valid token is refused, whether it is cached or new', async () => {
    const known = await bearer()
    const fresh = await Promise.all(Array.from({ length: 61 }, () => bearer('globex')))
    await auth.identify(known)
    await auth.issuer.down()
    for (const authorization of fresh) {
      expect((await verdict(known)).status).to.equal(200)
      expect((await verdict(authorization)).status).to.equal(200)
      auth.clock.pass(MINUTE)
    }
    await auth.issuer.up()
    auth.clock.pass(MINUTE / 2)
    expect((await verdict(known)).status).to.equal(200)
  })

  it('keys are no longer used when their issuer has been down for over an hour', async () => {
    const known = await bearer()
    await auth.identify(known)
    await auth.issuer.down()
    auth.clock.pass(71 * MINUTE)
    expect((await verdict(known)).status).to.equal(503)
    await auth.issuer.up()
    auth.clock.pass(1_000)
    expect((await verdict(known)).status).to.equal(200)
  })

  it('D3.1: on a cold start without the issuer a token is 503 with Retry-After, and accepted once the issuer answers', async () => {
    const token = await bearer()
    await auth.issuer.down()
    const refusal = await verdict(token)
    expect(refusal).to.include({ status: 503, retryAfterSecs: 1 })
    await auth.issuer.up()
    expect((await verdict(token)).status).to.equal(503)
    auth.clock.pass(1_000)
    expect((await verdict(token)).status).to.equal(200)
  })

  it('D3.1: an unknown kid is 503 while the issuer that may have published it is down', async () => {
    await auth.identify(await bearer())
    auth.issuer.rotate([await newSigner('RS256', 'r2')])
    const fresh = await bearer()
    await auth.issuer.down()
    auth.clock.pass(10_000)
    expect(await verdict(fresh)).to.include({ status: 503, retryAfterSecs: 1 })
  })

  it('500 tokens that wait for an issuer that hangs share one fetch, which ends after 3 seconds', async () => {
    const token = await bearer()
    auth.issuer.misbehave(hang, '/jwks')
    const begun = performance.now()
    const verdicts = await Promise.all(Array.from({ length: 500 }, () => verdict(token)))
    expect(verdicts.every(({ status: code }) => code === 503)).to.equal(true)
    expect(performance.now() - begun).to.be.at.least(2_900)
    expect(auth.issuer.keyFetches).to.equal(1)
  })

  it('an issuer that answers 500 is asked again only after 1, 2, 4, 8, 16, 30 and 30 seconds', async () => {
    const token = await bearer()
    auth.issuer.misbehave(status(500), '/jwks')
    const askedAt: number[] = []
    for (let second = 0; second < 100; second++) {
      const before = auth.issuer.keyFetches
      await Promise.all(Array.from({ length: 10 }, () => verdict(token)))
      if (auth.issuer.keyFetches > before) askedAt.push(second)
      expect(auth.issuer.keyFetches - before).to.be.at.most(1)
      auth.clock.pass(1_000)
    }
    expect(askedAt).to.deep.equal([0, 1, 3, 7, 15, 31, 61, 91])
  })
})
