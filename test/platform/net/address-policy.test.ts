import { promisify } from 'node:util'
import { expect } from 'chai'
import {
  type Address,
  type AddressPolicy,
  checkUrl,
  createConnectionGuard,
  guardedLookup,
  isAllowed,
  literalOf,
} from '../../../shared/platform/net/address-policy.ts'

const CLOSED: AddressPolicy = { allowPrivate: false }
const OPEN: AddressPolicy = { allowPrivate: true }
const PRIVATE: Address = { address: '10.1.2.3', family: 4 }
const PUBLIC: Address[] = [
  { address: '93.184.216.34', family: 4 },
  { address: '2606:4700::1', family: 6 },
]
const METADATA = '169.254.169.254'

const refusalOf =
  (url: string, policy: AddressPolicy = CLOSED) =>
  () =>
    checkUrl(url, policy)

describe('the check of a URL before its name is looked up', () => {
  it('lets a web address pass', () => {
    for (const url of ['http://example.com/a?b', 'https://example.com:8443/', 'http://8.8.8.8/'])
      expect(checkUrl(url, CLOSED).href).to.equal(url)
  })

  it('refuses other schemes, texts that are no URL, and what is longer than 8,192 characters', () => {
    for (const url of ['file:///etc/passwd', 'ftp://example.com/', 'example.com', ''])
      expect(refusalOf(url), url).to.throw('not a valid http or https URL')
    const long = `http://example.com/${'x'.repeat(8_192)}`
    expect(refusalOf(long)).to.throw('longer than 8192 characters')
    expect(refusalOf(long.slice(0, 8_192))).to.not.throw()
  })

  it('refuses a user name and a password, also where private addresses are allowed', () => {
    for (const url of ['http://user@example.com/', 'http://:secret@example.com/'])
      for (const policy of [CLOSED, OPEN]) expect(refusalOf(url, policy), url).to.throw('user name or password')
  })

  it('refuses an address in place of a name that may not be reached, and metadata services always', () => {
    for (const url of ['http://127.0.0.1/', 'http://[::1]/', 'http://0x7f.1/']) {
      expect(refusalOf(url), url).to.throw('may not be reached').with.property('code', 'egress_refused')
      expect(refusalOf(url, OPEN), url).to.not.throw()
    }
    expect(refusalOf(`http://${METADATA}/`, OPEN)).to.throw('may not be reached')
    expect([isAllowed(METADATA, OPEN), isAllowed('10.0.0.1', OPEN), isAllowed('10.0.0.1', CLOSED)]).to.deep.equal([
      ...[false, true, false],
    ])
  })

  it('tells an address from a name', () => {
    expect(['[::1]', '10.0.0.1', 'example.com', ''].map(literalOf)).to.deep.equal([
      ...['::1', '10.0.0.1', undefined, undefined],
    ])
  })
})

describe('the lookup of a guarded connection', () => {
  const lookUp = (policy: AddressPolicy) =>
    promisify(guardedLookup(policy)) as (host: string, options: object) => Promise<unknown>

  it('returns all allowed addresses of a name, or the first one', async () => {
    const policy = { ...CLOSED, resolve: async () => [PRIVATE, ...PUBLIC] }
    expect(await lookUp(policy)('x.test', { all: true })).to.deep.equal(PUBLIC)
    expect(await lookUp(policy)('x.test', {})).to.deep.equal(PUBLIC[0]?.address)
  })

  it('fails for a name that leads to no allowed address', async () => {
    const failure = await lookUp({ ...CLOSED, resolve: async () => [PRIVATE] })('x.test', {}).catch(
      (cause: unknown) => cause,
    )
    expect(failure).to.include({ code: 'egress_refused' })
  })

  it('is that of a client which makes its connections itself, with the same policy', async () => {
    const guard = createConnectionGuard({ ...CLOSED, resolve: async () => PUBLIC })
    expect([guard.isAllowed('10.0.0.1'), guard.isAllowed('8.8.8.8')]).to.deep.equal([false, true])
    expect(() => guard.checkUrl('http://127.0.0.1/')).to.throw('may not be reached')
  })
})
