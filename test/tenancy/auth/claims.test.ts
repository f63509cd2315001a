import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { readClaims } from '../../../shared/tenancy/auth/claims.ts'

const NOW_SECS = 1_800_000_000
const ADMIN_RULES = { issuer: 'https://i', audience: 'a', tenantClaim: 'tenant_id', adminScope: 'admin' }
const GOOD = { iss: 'https://i', aud: 'a', exp: NOW_SECS + 60, sub: 'u1', tenant_id: 'acme' }

function read(changed: Record<string, unknown>, tenantClaim = 'tenant_id') {
  const rules = { issuer: 'https://i', audience: 'a', tenantClaim }
  return readClaims(Object.assign(Object.create(null), GOOD, changed), rules, NOW_SECS * 1000)
}

function refusalOf(changed: Record<string, unknown>, tenantClaim?: string): AppError {
  try {
    read(changed, tenantClaim)
  } catch (error) {
    if (error instanceof AppError) return error
  }
  throw new Error('the claims were accepted')
}

const subjectOf = (sub: unknown) => read({ sub }).identity.subject

describe('claims', () => {
  it('D3.1: the two clocks may differ by up to 60 seconds', () => {
    expect(read({ exp: NOW_SECS - 59 }).expiresMs).to.equal((NOW_SECS - 59) * 1000)
    expect(refusalOf({ exp: NOW_SECS - 60 }).cause).to.equal('expired')
    expect(read({ nbf: NOW_SECS + 60 }).identity.tenant).to.equal('acme')
    expect(refusalOf({ nbf: NOW_SECS + 60.5 }).cause).to.equal('not_yet')
    expect(read({ exp: NOW_SECS - 59.999 }).expiresMs).to.be.lessThan(NOW_SECS * 1000)
    expect(read({ iat: NOW_SECS + 3_600 }).identity.tenant).to.equal('acme')
  })

  it('D3.1: exp is required, and exp, nbf and iat must be finite numbers', () => {
    for (const exp of [undefined, null, String(NOW_SECS + 60), Number.NaN, Number.POSITIVE_INFINITY, [NOW_SECS]])
      expect(refusalOf({ exp }).cause, String(exp)).to.equal('times')
    for (const time of [null, String(NOW_SECS), Number.NaN, Number.NEGATIVE_INFINITY]) {
      expect(refusalOf({ nbf: time }).cause, String(time)).to.equal('times')
      expect(refusalOf({ iat: time }).cause, String(time)).to.equal('times')
    }
    expect(read({ nbf: 0, iat: 0 }).identity.tenant).to.equal('acme')
  })

  it('D3.1: the issuer must be equal, and the audience equal or in the list', () => {
    expect(read({ aud: ['b', 'a'] }).identity.tenant).to.equal('acme')
    for (const aud of [[], ['b'], 'ab', ['ab'], undefined, { a: 'a' }])
      expect(refusalOf({ aud }).cause, String(aud)).to.equal('audience')
    for (const iss of ['https://i/', 'https://I', ['https://i'], undefined])
      expect(refusalOf({ iss }).cause, String(iss)).to.equal('issuer')
  })

  it('D2.3: the first problem in the order issuer, audience, times, tenant is reported', () => {
    const all = { iss: 'b', aud: 'b', exp: 0, tenant_id: '' }
    expect(refusalOf(all).cause).to.equal('issuer')
    expect(refusalOf({ ...all, iss: 'https://i' }).cause).to.equal('audience')
    expect(refusalOf({ ...all, iss: 'https://i', aud: 'a' }).cause).to.equal('expired')
    expect(refusalOf({ exp: NOW_SECS + 60, tenant_id: '' }).cause).to.equal('tenant')
  })

  it('ADMIN_SCOPE is looked for in scope and scp, as a whole', () => {
    const isAdmin = (claims: object) =>
      readClaims({ ...GOOD, ...claims }, ADMIN_RULES, NOW_SECS * 1000).identity.isAdmin
    for (const claims of [{ scope: 'openid  admin' }, { scp: 'admin' }, { scp: ['a b', 7, 'admin'] }])
      expect(isAdmin(claims), JSON.stringify(claims)).to.equal(true)
    for (const scope of [undefined, null, '', 'Admin', 'admin2 -admin', 7, { admin: true }, [['admin']], ['a admin']])
      expect(isAdmin({ scope, scp: scope }), JSON.stringify(scope)).to.equal(undefined)
    expect(read({ scope: 'admin undefined' }).identity).to.deep.equal({ tenant: 'acme', subject: 'u1' })
  })

  it('D18a: SCOPE_CLAIM lists what the token may be used for; without the claim, or the setting, that is everything', () => {
    const scopesIn = (claims: object, scopeClaim: string | undefined = 'ae_scopes') => {
      const { identity } = readClaims({ ...GOOD, ...claims }, { ...ADMIN_RULES, scopeClaim }, NOW_SECS * 1000)
      return identity.scopes && [...identity.scopes]
    }
    expect(scopesIn({ ae_scopes: 'run read openid' })).to.deep.equal(['read', 'run'])
    expect(scopesIn({ ae_scopes: ['approve', 7] })).to.deep.equal(['approve'])
    for (const nothing of ['', [], null, 7, { read: true }, 'READ'])
      expect(scopesIn({ ae_scopes: nothing })).to.deep.equal([])
    expect(scopesIn({ scope: 'read' })).to.equal(undefined)
    expect(readClaims({ ...GOOD, ae_scopes: '' }, ADMIN_RULES, NOW_SECS * 1000).identity.scopes).to.equal(undefined)
  })

  it('TENANT_CLAIM is the literal name of one claim, whatever dots and slashes it holds', () => {
    for (const name of ['org.tenant', 'https://acme.example/tenant', 'constructor', '__proto__'])
      expect(read(JSON.parse(`{"${name}":"globex"}`), name).identity.tenant).to.equal('globex')
    expect(refusalOf({ org: { tenant: 'globex' } }, 'org.tenant').cause).to.equal('tenant')
    expect(refusalOf({}, 'constructor').cause).to.equal('tenant')
  })

  it('D3.2: a tenant is a string of 1 to 128 characters of its alphabet', () => {
    for (const tenant of ['a', 'A.b_c:d-9', 'x'.repeat(128)])
      expect(read({ tenant_id: tenant }).identity.tenant).to.equal(tenant)
    for (const tenant of ['', 'x'.repeat(129), 'a b', 7, ['acme']])
      expect(refusalOf({ tenant_id: tenant }).cause).to.equal('tenant')
  })

  it('D3.5: the subject is the sub, or anonymous when there is none that a store can keep', () => {
    expect(subjectOf('auth0|1')).to.equal('auth0|1')
    expect(subjectOf('x'.repeat(1_024))).to.have.length(1_024)
    for (const sub of [undefined, null, '', 7, ['u1'], '\ud800', 'x'.repeat(1_025)])
      expect(subjectOf(sub)).to.equal('anonymous')
  })

  it('D2.3: the refusal says what the holder can do, with the code of RFC 6750', () => {
    const cases = [
      [{ exp: 0 }, 'the token has expired; get a new one from your identity provider'],
      [{ aud: 'b' }, 'the token is for another audience; request one for this service'],
      [
        { tenant_id: '' },
        'the token names no tenant; ask the administrator of your identity provider for the tenant claim',
      ],
      [{ iss: 'b' }, 'the token could not be verified; get a new one from your identity provider'],
    ] as const
    for (const [changed, message] of cases)
      expect(refusalOf(changed)).to.include({ status: 401, kind: 'authentication', code: 'invalid_token', message })
  })
})
