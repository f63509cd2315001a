import { expect } from 'chai'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import type { KeySet } from '../../../shared/tenancy/auth/key-set.ts'
import { VerifiedTokens } from '../../../shared/tenancy/auth/oidc.ts'
import { HandClock } from './setup.ts'

const keySet = (): KeySet => ({ fingerprint: '', size: 0, find: () => undefined })
const identity = { tenant: DEFAULT_TENANT, subject: 'u1' }

describe('verified tokens', () => {
  const clock = new HandClock()
  const expiresIn = (ms: number) => ({ identity, expiresMs: clock.epochMs() + ms })

  it('a token is cached until it expires', () => {
    const keys = keySet()
    const tokens = new VerifiedTokens(clock)
    tokens.add('t', keys, expiresIn(5_000))
    clock.pass(4_999)
    expect(tokens.get('t', keys)).to.equal(identity)
    clock.pass(1)
    expect(tokens.get('t', keys)).to.equal(undefined)
  })

  it('a token is cached for 10 minutes at most', () => {
    const keys = keySet()
    const tokens = new VerifiedTokens(clock)
    tokens.add('t', keys, expiresIn(86_400_000))
    clock.pass(599_999)
    expect(tokens.get('t', keys)).to.equal(identity)
    clock.pass(1)
    expect(tokens.get('t', keys)).to.equal(undefined)
  })

  it('an expired token that is still within the accepted clock skew is verified each time', () => {
    const keys = keySet()
    const tokens = new VerifiedTokens(clock)
    tokens.add('t', keys, expiresIn(-1))
    expect(tokens.get('t', keys)).to.equal(undefined)
  })

  it('a new key set empties the cache', () => {
    const [before, after] = [keySet(), keySet()]
    const tokens = new VerifiedTokens(clock)
    tokens.add('t', before, expiresIn(60_000))
    expect(tokens.get('t', after)).to.equal(undefined)
    tokens.add('other', after, expiresIn(60_000))
    expect(tokens.get('t', after)).to.equal(undefined)
    expect(tokens.get('other', after)).to.equal(identity)
  })

  it('the 10,000 most recently used tokens are cached', () => {
    const keys = keySet()
    const tokens = new VerifiedTokens(clock)
    for (let i = 0; i <= 10_000; i++) tokens.add(`t${i}`, keys, expiresIn(60_000))
    expect(tokens.get('t0', keys)).to.equal(undefined)
    expect(tokens.get('t1', keys)).to.equal(identity)
  })
})
