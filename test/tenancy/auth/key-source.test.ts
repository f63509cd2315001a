import { expect } from 'chai'
import type { KeySet } from '../../../shared/tenancy/auth/key-set.ts'
import { KeySource } from '../../../shared/tenancy/auth/key-source.ts'
import { SILENT_LOG } from '../../support/silent-log.ts'
import { HandClock } from './setup.ts'

const MINUTE = 60_000

const keySet = (fingerprint: string): KeySet => ({ fingerprint, size: 1, find: () => undefined })

/** A source whose fetches the test answers. */
function open() {
  const clock = new HandClock()
  const fetches: PromiseWithResolvers<KeySet>[] = []
  const read = () => {
    const fetch = Promise.withResolvers<KeySet>()
    fetches.push(fetch)
    return fetch.promise
  }
  const log = SILENT_LOG
  return { clock, fetches, keys: new KeySource({ read, monotonicMs: clock.monotonicMs, log }) }
}

/** A source that already has its first key set. */
async function openWith(first: KeySet) {
  const opened = open()
  const current = opened.keys.current()
  opened.fetches[0]?.resolve(first)
  await current
  return opened
}

describe('key source', () => {
  it('for 5 minutes the keys are used without a fetch', async () => {
    const first = keySet('1')
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(5 * MINUTE - 1)
    expect(await keys.current()).to.equal(first)
    expect(fetches).to.have.length(1)
  })

  it('after 5 minutes they are fetched again in the background, one fetch at a time', async () => {
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

  it('after 10 minutes they are not used before a new fetch has ended', async () => {
    const [first, second] = [keySet('1'), keySet('2')]
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(10 * MINUTE)
    const current = Promise.all([keys.current(), keys.current()])
    fetches[1]?.resolve(second)
    expect(await current).to.deep.equal([second, second])
    expect(fetches).to.have.length(2)
  })

  it('after a failed fetch the old keys are used without waiting for the next one', async () => {
    const first = keySet('1')
    const { clock, fetches, keys } = await openWith(first)
    clock.pass(10 * MINUTE)
    const current = keys.current()
    fetches[1]?.reject(new Error('down'))
    expect(await current).to.equal(first)
    expect(keys.isIssuerAway).to.equal(true)
    clock.pass(1_000)
    expect(await keys.current()).to.equal(first)
    expect(fetches, 'the next fetch is under way').to.have.length(3)
  })

  it('unchanged keys stay the same object, so that tokens verified with them stay cached', async () => {
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

  it('D3.1: a token that no key verifies causes no fetch within 10 seconds of the last one, failed or not', async () => {
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
