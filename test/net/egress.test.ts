import { expect } from 'chai'
import type { Address } from '../../shared/net/egress-address.ts'
import { isPublicAddress } from '../../shared/net/public-address.ts'
import { closeAll, door, failureOf, guard, request } from './egress-setup.ts'
import { SPELLINGS } from './egress-spellings.ts'

const LOOPBACK: Address[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]
/** Global unicast that belongs to nobody. */
const PUBLIC: Address = { address: '2e00::1', family: 6 }
const mixedAnswer = async () => [...LOOPBACK, PUBLIC, ...LOOPBACK]

describe('egress: who may be reached', () => {
  afterEach(closeAll)

  it(`P14: none of ${SPELLINGS.length} spellings of a private address makes a connection`, async () => {
    expect(SPELLINGS.length).to.be.at.least(80)
    const { port, connections } = await guard()
    const { request: send } = door({ allowPrivate: false, resolve: async () => LOOPBACK })
    const open: string[] = []
    for (const spelling of SPELLINGS) {
      const failure = await failureOf(send(spelling.replace('PORT', String(port)), request()))
      if (failure.code !== 'egress_refused') open.push(`${spelling}: ${failure.code}`)
    }
    expect(open).to.deep.equal([])
    expect(connections()).to.equal(0)
  })

  it('P14: none of the spellings passes through fetch either', async () => {
    const { port, connections } = await guard()
    const { fetch } = door({ allowPrivate: false, resolve: async () => LOOPBACK })
    for (const spelling of SPELLINGS) {
      const failure = await failureOf(fetch(spelling.replace('PORT', String(port))))
      expect(failure.code, spelling).to.equal('egress_refused')
    }
    expect(connections()).to.equal(0)
  })

  it('the guarded listener does count: with ALLOW_PRIVATE_URLS the same address is reached (D1.3)', async () => {
    const { port, connections } = await guard()
    await failureOf(door().request(`http://127.0.0.1:${port}/`, request()))
    expect(connections()).to.equal(1)
  })

  it("localhost is refused by the system's own resolver's answer", async () => {
    const { port, connections } = await guard()
    const failure = await failureOf(door({ allowPrivate: false }).request(`http://localhost:${port}/`, request()))
    expect([failure.code, connections()]).to.deep.equal(['egress_refused', 0])
  })

  it('P14: a name that changes its answer between two lookups is looked up once, and only that answer counts', async () => {
    const { port, connections } = await guard()
    let lookups = 0
    const resolve = async () => (lookups++ === 0 ? [PUBLIC] : LOOPBACK)
    const { request: send } = door({ allowPrivate: false, resolve, connectTimeoutMs: 100 })
    const failure = await failureOf(send(`http://rebind.example:${port}/`, request({ timeoutMs: 300 })))
    expect(failure.code).to.be.oneOf(['egress_timeout', 'egress_unreachable'])
    expect([lookups, connections()]).to.deep.equal([1, 0])
  })

  it('P14: of mixed answers only the public ones are connected to', async () => {
    const { port, connections } = await guard()
    const resolve = mixedAnswer
    const { request: send } = door({ allowPrivate: false, resolve, connectTimeoutMs: 100 })
    const failure = await failureOf(send(`http://mixed.example:${port}/`, request({ timeoutMs: 300 })))
    expect(failure.code).to.be.oneOf(['egress_timeout', 'egress_unreachable'])
    expect(connections()).to.equal(0)
  })

  it('rule 10: every reserved range is closed at both ends, and its neighbours are open', () => {
    const closed = [
      '0.0.0.0',
      '100.64.0.0',
      '100.127.255.255',
      '172.16.0.0',
      '172.31.255.255',
      '224.0.0.0',
      '1.2.3',
      '',
    ]
    const open = [
      '1.0.0.1',
      '100.63.255.255',
      '100.128.0.0',
      '172.15.255.255',
      '172.32.0.0',
      '223.255.255.255',
      '8.8.8.8',
    ]
    const closed6 = ['::', '1fff::1', '2001:1ff::1', '2002::', '4000::', 'fd00::1', 'fe80::1%eth0', '::ffff:8.8.8.8']
    const open6 = ['2001:200::1', '2606:4700:4700::1111', '2003::1', '3ffe::1', '2a00:1450::1']
    expect([...closed, ...closed6].filter(isPublicAddress)).to.deep.equal([])
    expect([...open, ...open6].filter((address) => !isPublicAddress(address))).to.deep.equal([])
  })

  it('ports of other protocols are closed where private addresses are', async () => {
    const { request: send } = door({ allowPrivate: false, resolve: async () => [PUBLIC] })
    for (const port of [22, 25, 110, 143, 587]) {
      expect((await failureOf(send(`https://example.com:${port}/`, request()))).message).to.include(`Port ${port}`)
    }
  })

  it('no message holds the address that a name resolved to, nor a password of the URL', async () => {
    const { port } = await guard()
    const { request: send } = door({ allowPrivate: false, resolve: async () => [{ address: '10.1.2.3', family: 4 }] })
    const blocked = await failureOf(send(`http://intern.example:${port}/`, request()))
    const withUser = await failureOf(send('http://user:hunter2@example.com/', request()))
    const named = door({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    const broken = await failureOf(named.request(`http://model.example:${port}/`, request()))
    for (const { message } of [blocked, withUser, broken]) {
      expect(message).not.to.match(/10\.1\.2\.3|127\.0\.0\.1|hunter2/)
    }
    expect(broken.code).to.equal('egress_unreachable')
  })
})
