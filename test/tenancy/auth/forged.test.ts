import { createRequire } from 'node:module'
import { expect } from 'chai'
import { assert, asyncProperty, constantFrom, nat, pre } from 'fast-check'
import { useOpened } from '../../support/fixture.ts'
import { json } from '../../support/issuer/misbehaviour.ts'
import { type ForgedClass, forgedClasses } from './forged-classes.ts'
import { createForger, type Forger } from './forger.ts'
import { outcomeOf, setUp } from './setup.ts'

/** The functions that jsonwebtoken calls. */
const crypto = createRequire(import.meta.url)('node:crypto') as typeof import('node:crypto')
const LETTERS = ['A', 'Q', 'g', 'w', '-', '_', '.', '0', ' ', 'é', '\n']

describe('forged tokens', () => {
  let forger: Forger
  let classes: ForgedClass[]
  const auth = useOpened(() => setUp([]))
  before(async () => {
    forger = await createForger(auth.issuer.url, auth.clock.epochMs())
    auth.issuer.misbehave(json({ keys: forger.published }), '/jwks')
    classes = forgedClasses(forger)
  })

  const withoutTenant = () => JSON.stringify({ ...forger.claims, tenant_id: undefined })
  const verdict = (token: string) => outcomeOf(auth.identify(`Bearer ${token}`))

  it('D3.1: the unchanged tokens that the forgeries are made from are accepted, with every algorithm', async () => {
    const { rsa, ec, ec384, ec512, ed, pinned } = forger.signers
    const good = [
      ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map((alg) =>
        forger.token({ by: rsa, header: { alg } }),
      ),
      ...[ec, ec384, ec512, ed, pinned].map((by) => forger.token({ by })),
      forger.token({ by: ed, header: { kid: undefined } }),
      forger.token({ claims: { aud: ['urn:other', forger.claims['aud']] } }),
      forger.token({ header: { typ: undefined } }),
      forger.token({ header: { typ: 'at+jwt' } }),
    ]
    for (const token of good) expect(await verdict(token), token).to.deep.equal({ status: 200 })
  })

  it('P15: none of more than 60 classes of forged tokens is accepted, each for its own reason', async () => {
    expect(classes.length).to.be.at.least(60)
    const expected = classes.map(([name, why]) => ({ name, status: 401, why }))
    const seen = []
    for (const [name, , token] of classes) {
      const { status, why } = await verdict(token)
      seen.push({ name, status, why })
    }
    expect(seen).to.deep.equal(expected)
  })

  it('no forged header causes a fetch of the address that it names', async () => {
    expect(new Set(auth.issuer.requests)).to.deep.equal(new Set(['/.well-known/openid-configuration', '/jwks']))
    expect(auth.issuer.keyFetches).to.equal(1)
  })

  it('api.md Authentication 3: a token with any one character changed is refused with 401', async () => {
    const good = forger.token({ by: forger.signers.ed })
    await assert(
      asyncProperty(nat(good.length - 1), constantFrom(...LETTERS), async (at, letter) => {
        pre(good[at] !== letter)
        const { status } = await verdict(`${good.slice(0, at)}${letter}${good.slice(at + 1)}`)
        expect(status).to.equal(401)
      }),
      { numRuns: 300 },
    )
  })

  it('a verified token is not verified again', async () => {
    const token = forger.token({ by: forger.signers.ec512, claims: { jti: 'verified once' } })
    let verifications = 0
    const { createVerify } = crypto
    crypto.createVerify = (...args) => {
      verifications++
      return createVerify(...args)
    }
    try {
      for (let i = 0; i < 3; i++) await auth.identify(`Bearer ${token}`)
    } finally {
      crypto.createVerify = createVerify
    }
    expect(verifications).to.equal(1)
  })

  it('api.md Authentication 8: a claim is read from the token itself and never from a prototype', async () => {
    const polluted: Record<string, unknown> = Object.prototype as Record<string, unknown>
    polluted['tenant_id'] = 'globex'
    try {
      expect((await verdict(forger.token({ payload: withoutTenant() }))).why).to.equal('tenant')
    } finally {
      delete polluted['tenant_id']
    }
  })

  it('D2.3: the refusal of a forged signature names neither the failed check nor the key', async () => {
    const { message } = await verdict(forger.token({ by: forger.signers.foreign }))
    expect(message).to.equal('the token could not be verified; get a new one from your identity provider')
  })
})
