import { expect } from 'chai'
import { readClaims } from '../../shared/auth/claims.ts'
import { AppError } from '../../shared/errors.ts'

const NOW_SECS = 1_800_000_000
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
  it('D3.1: the two clocks may be 60 seconds apart, and no more', () => {
    expect(read({ exp: NOW_SECS - 59 }).expiresMs).to.equal((NOW_SECS - 59) * 1000)
    expect(refusalOf({ exp: NOW_SECS - 60 }).cause).to.equal('expired')
    expect(read({ nbf: NOW_SECS + 60 }).identity.tenant).to.equal('acme')
    expect(refusalOf({ nbf: NOW_SECS + 60.5 }).cause).to.equal('not_yet')
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
  })

  it('D3.5: the subject is the sub, or anonymous where there is none that can be kept', () => {
    expect(subjectOf('auth0|1')).to.equal('auth0|1')
    for (const sub of [undefined, null, '', 7, ['u1'], '\ud800', 'x'.repeat(1_025)])
      expect(subjectOf(sub)).to.equal('anonymous')
  })

  it('D2.3: a refused token says what its holder can do about it, with the code of RFC 6750', () => {
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
