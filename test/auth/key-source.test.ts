import { expect } from 'chai'
import type { KeySet } from '../../shared/auth/key-set.ts'
import { KeySource } from '../../shared/auth/key-source.ts'
import { createLog } from '../../shared/log.ts'
import { HandClock } from './setup.ts'

const MINUTE = 60_000

const keySet = (fingerprint: string): KeySet => ({ fingerprint, size: 1, find: () => undefined })

/** A source whose every fetch is answered by hand. */
function open() {
  const clock = new HandClock()
  const fetches: PromiseWithResolvers<KeySet>[] = []
  const read = () => {
    const fetch = Promise.withResolvers<KeySet>()
    fetches.push(fetch)
    return fetch.promise
  }
  const log = createLog({ level: 'error', write: () => {} })
  return { clock, fetches, keys: new KeySource({ read, monotonicMs: clock.monotonicMs, log }) }
}

/** A source that has its first key set. */
async function openWith(first: KeySet) {
  const opened = open()
  const current = opened.keys.current()
  opened.fetches[0]?.resolve(first)
  await current
  return opened
}

describe('key source', () => {
  it('for 5 minutes the keys are used as they are', async () => {
    const first = keySet('1')
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(5 * MINUTE - 1)
    expect(await keys.current()).to.equal(first)
    expect(fetches).to.have.length(1)
  })

  it('from then on they are fetched anew while they go on being used, once at a time', async () => {
    const [first, second] = [keySet('1'), keySet('2')]
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(5 * MINUTE)
    expect(await keys.current()).to.equal(first)
    expect(await keys.current()).to.equal(first)
    expect(fetches).to.have.length(2)
    const newer = keys.newerThan(first)
    fetches[1]?.resolve(second)
    expect(await newer).to.equal(second)
    expect(await keys.current()).to.equal(second)
  })

  it('reliability.md IdP key rotation: over 10 minutes old they are not used before a new fetch has ended', async () => {
    const [first, second] = [keySet('1'), keySet('2')]
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(10 * MINUTE)
    const current = Promise.all([keys.current(), keys.current()])
    fetches[1]?.resolve(second)
    expect(await current).to.deep.equal([second, second])
    expect(fetches).to.have.length(2)
  })

  it('T_jwks: once a fetch has failed the old keys are used without waiting for the next one', async () => {
    const first = keySet('1')
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(10 * MINUTE)
    const current = keys.current()
    fetches[1]?.reject(new Error('down'))
    expect(await current).to.equal(first)
    expect(keys.isCutOff).to.equal(true)
    clock.pass(1_000)
    expect(await keys.current()).to.equal(first)
    expect(fetches, 'the next fetch is under way').to.have.length(3)
  })

  it('keys that are the same as before are the same object, so that what was verified with them stays known', async () => {
    const first = keySet('same')
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(10 * MINUTE)
    const current = keys.current()
    fetches[1]?.resolve(keySet('same'))
    expect(await current).to.equal(first)
    clock.pass(5 * MINUTE - 1)
    await keys.current()
    expect(fetches, 'they count as new').to.have.length(2)
  })

  it('D3.1: a token that no key verifies makes no fetch within 10 seconds of the last, failed or not', async () => {
    const first = keySet('1')
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(10_000)
    const newer = keys.newerThan(first)
    fetches[1]?.reject(new Error('down'))
    expect(await newer).to.equal(first)
    clock.pass(9_999)
    expect(await keys.newerThan(first)).to.equal(first)
    expect(fetches).to.have.length(2)
  })
})
