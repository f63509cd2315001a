// P24: what a person sees, and sends, is theirs.
import { expect } from 'chai'
import { AUDIENCE, Issuer } from '../support/issuer/issuer.ts'
import { compact, newSigner, type Signer, signatureOf } from '../support/issuer/signer.ts'
import { type ConsoleUnderTest, startConsole } from './support/console.ts'
import { tellOwnStory, visitAsTwo, withTokens } from './support/two-people.ts'

describe('two people of two tenants, one after the other in one tab', function () {
  this.timeout(120_000)
  let signer: Signer
  let issuer: Issuer
  let pages: ConsoleUnderTest

  const tokenOf = (tenant: string) => {
    const exp = Math.floor(Date.now() / 1_000) + 600
    const claims = { iss: issuer.url, aud: AUDIENCE, exp, tenant_id: tenant, sub: `person-of-${tenant}` }
    return compact({ alg: 'RS256', kid: 'r1', typ: 'at+jwt' }, claims, signatureOf('RS256', signer.privateKey))
  }

  before(async () => {
    signer = await newSigner('RS256', 'r1')
    issuer = await Issuer.start([signer])
    pages = await startConsole({ env: { OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE, TENANT_CLAIM: 'tenant_id' } })
    for (const tenant of ['first', 'second']) await tellOwnStory(pages, tenant, tokenOf(tenant))
  })
  after(async () => {
    await pages?.close()
    await issuer?.close()
  })

  it('P24: nothing of the first is shown to the second or sent by them, while answers are held back and when each has failed once', async () => {
    const page = await pages.open('/')
    expect(await visitAsTwo(pages, page, { people: withTokens(tokenOf), trouble: 'held' })).to.deep.equal([])
    expect(page.url()).to.equal(pages.at('/flows/shared/edit'))
    pages.expectNoFaults()
  })
})
