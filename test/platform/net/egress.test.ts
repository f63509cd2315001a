import { expect } from 'chai'
import type { Address } from '../../../shared/platform/net/address-policy.ts'
import { isPublicAddress } from '../../../shared/platform/net/public-address.ts'
import { closeAll, failureOf, listen, openEgress, request } from './egress-setup.ts'
import { SPELLINGS } from './egress-spellings.ts'

const LOOPBACK: Address[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
]
/** A global unicast address that is not assigned. */
const PUBLIC: Address = { address: '2e00::1', family: 6 }
/** The first and the last address of each reserved range. */
const RESERVED = `
  0.0.0.0 0.255.255.255  10.0.0.0 10.255.255.255  100.64.0.0 100.127.255.255  127.0.0.0 127.255.255.255
  169.254.0.0 169.254.255.255  172.16.0.0 172.31.255.255  192.0.0.0 192.0.0.255  192.0.2.0 192.0.2.255
  192.88.99.0 192.88.99.255  192.168.0.0 192.168.255.255  198.18.0.0 198.19.255.255  198.51.100.0 198.51.100.255
  203.0.113.0 203.0.113.255  224.0.0.0 255.255.255.255
  :: 1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff  2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff
  2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff  2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff  4000:: 7fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  8000:: ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff  1fff::1 2001:1ff::1 fd00::1`

/** The addresses before and after each reserved range, and some of well-known services. */
const NEIGHBOURS = `
  1.0.0.0 1.0.0.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
  172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255 192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255
  192.169.0.0 198.17.255.255 198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 8.8.8.8
  2000:: 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2001:200:: 2001:200::1 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff 2001:db9::
  2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2003:: 2003::1 3ffe::1 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 3fff:1000::
  3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 2606:4700:4700::1111 2a00:1450::1`

const mixedAnswer = async () => [...LOOPBACK, PUBLIC, ...LOOPBACK]

describe('egress: the addresses that may be reached', () => {
  afterEach(closeAll)

  it(`P14: none of ${SPELLINGS.length} spellings of a private address opens a connection`, async () => {
    expect(SPELLINGS.length).to.be.at.least(80)
    const { port, connections } = await listen()
    const { request: send } = openEgress({ allowPrivate: false, resolve: async () => LOOPBACK })
    const open: string[] = []
    for (const spelling of SPELLINGS) {
      const failure = await failureOf(send(spelling.replace('PORT', String(port)), request()))
      if (failure.code !== 'egress_refused') open.push(`${spelling}: ${failure.code}`)
    }
    expect(open).to.deep.equal([])
    expect(connections()).to.equal(0)
  })

  it('P14: none of the spellings opens a connection through fetch', async () => {
    const { port, connections } = await listen()
    const { fetch } = openEgress({ allowPrivate: false, resolve: async () => LOOPBACK })
    for (const spelling of SPELLINGS) {
      const failure = await failureOf(fetch(spelling.replace('PORT', String(port))))
      expect(failure.code, spelling).to.equal('egress_refused')
    }
    expect(connections()).to.equal(0)
  })

  it('D1.3: with ALLOW_PRIVATE_URLS the same address is reached, so the listener of these tests does count connections', async () => {
    const { port, connections } = await listen()
    await failureOf(openEgress().request(`http://127.0.0.1:${port}/`, request()))
    expect(connections()).to.equal(1)
  })

  it("localhost is refused because of the address that the system's resolver returns", async () => {
    const { port, connections } = await listen()
    const failure = await failureOf(openEgress({ allowPrivate: false }).request(`http://localhost:${port}/`, request()))
    expect([failure.code, connections()]).to.deep.equal(['egress_refused', 0])
  })

  it('a name that does not exist is refused in the words for one of a private address, unless those are allowed', async () => {
    const resolve = async (name: string) => {
      if (name === 'internal.example') return LOOPBACK
      throw Object.assign(new Error('unknown'), { code: name === 'later.example' ? 'EAI_AGAIN' : 'ENOTFOUND' })
    }
    const told = async (name: string, allowPrivate: boolean) => {
      const { request: send } = openEgress({ allowPrivate, resolve })
      const { code, message } = await failureOf(send(`http://${name}/`, request()))
      return [code, message.replaceAll(name, 'NAME')]
    }
    const internal = await told('internal.example', false)
    expect(internal[0]).to.equal('egress_refused')
    expect(await told('nobody.example', false)).to.deep.equal(internal)
    expect((await told('later.example', false))[0], 'the resolver may know it in a moment').to.equal(
      'egress_unreachable',
    )
    expect((await told('nobody.example', true))[0]).to.equal('egress_unreachable')
  })

  it('P14: a name whose address changes between two lookups is looked up once, and only the first answer is used', async () => {
    const { port, connections } = await listen()
    let lookups = 0
    const resolve = async () => (lookups++ === 0 ? [PUBLIC] : LOOPBACK)
    const { request: send } = openEgress({ allowPrivate: false, resolve, connectTimeoutMs: 100 })
    const failure = await failureOf(send(`http://rebind.example:${port}/`, request({ timeoutMs: 300 })))
    expect(failure.code).to.be.oneOf(['egress_timeout', 'egress_unreachable'])
    expect([lookups, connections()]).to.deep.equal([1, 0])
  })

  it('P14: of public and private addresses for one name, only the public ones are connected to', async () => {
    const { port, connections } = await listen()
    const { request: send } = openEgress({ allowPrivate: false, resolve: mixedAnswer, connectTimeoutMs: 100 })
    const failure = await failureOf(send(`http://mixed.example:${port}/`, request({ timeoutMs: 300 })))
    expect(failure.code).to.be.oneOf(['egress_timeout', 'egress_unreachable'])
    expect(connections()).to.equal(0)
  })

  it('P14: every reserved range is refused from its first to its last address, and its neighbours are allowed', () => {
    expect(RESERVED.trim().split(/\s+/).filter(isPublicAddress)).to.deep.equal([])
    expect(['', '1.2.3', 'example.com', '::ffff:8.8.8.8', 'fe80::1%eth0'].filter(isPublicAddress)).to.deep.equal([])
    const neighbours = NEIGHBOURS.trim().split(/\s+/)
    expect(neighbours.filter((address) => !isPublicAddress(address))).to.deep.equal([])
  })

  it('ports of other protocols are refused when private addresses are', async () => {
    const { request: send } = openEgress({ allowPrivate: false, resolve: async () => [PUBLIC] })
    for (const port of [22, 25, 79, 81, 110, 143, 442, 444, 587, 1_023]) {
      expect((await failureOf(send(`https://example.com:${port}/`, request()))).message).to.include(`Port ${port}`)
    }
  })

  it('the ports of the web and those from 1024 on are allowed', async () => {
    const resolve = async () => [PUBLIC]
    const { request: send } = openEgress({ allowPrivate: false, resolve, connectTimeoutMs: 20 })
    const attempts = ['', ':80', ':443', ':1024'].map((port) => failureOf(send(`http://x.example${port}/`, request())))
    for (const { code } of await Promise.all(attempts))
      expect(code).to.be.oneOf(['egress_timeout', 'egress_unreachable'])
  })

  it('no message contains the address that a name resolved to, or the password of the URL', async () => {
    const { port } = await listen()
    const { request: send } = openEgress({
      allowPrivate: false,
      resolve: async () => [{ address: '10.1.2.3', family: 4 }],
    })
    const blocked = await failureOf(send(`http://intern.example:${port}/`, request()))
    const withUser = await failureOf(send('http://user:hunter2@example.com/', request()))
    const named = openEgress({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] })
    const broken = await failureOf(named.request(`http://model.example:${port}/`, request()))
    for (const { message } of [blocked, withUser, broken]) {
      expect(message).not.to.match(/10\.1\.2\.3|127\.0\.0\.1|hunter2/)
    }
    expect(broken.code).to.equal('egress_unreachable')
  })
})
