import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { AppError } from '../../../shared/kernel/errors.ts'
import { createKeyring } from '../../../shared/tenancy/secrets/keyring.ts'
import { rewrap, type SealContext, seal, unseal } from '../../../shared/tenancy/secrets/seal.ts'

const OWN: SealContext = { tenant: 'acme', kind: 'instance', name: 'main' }
const KEY = 'sk-canary-0123456789'

const codeOf = (act: () => unknown) => {
  try {
    act()
  } catch (error) {
    return error instanceof AppError ? error.code : String(error)
  }
  return 'no error'
}

describe('sealed secrets', () => {
  const old = randomBytes(32)
  const ring = createKeyring(old)

  it('D8.3: a sealed text opens again, and its record holds nothing of it', () => {
    const sealed = seal(KEY, OWN, ring)
    expect(unseal(sealed, OWN, ring)).to.equal(KEY)
    expect(Buffer.from(sealed.text, 'base64').toString('latin1')).not.to.contain(KEY)
    expect(sealed.kid).to.match(/^mk_[0-9a-f]{16}$/)
  })

  it('D8.3: sealing one text twice gives two records that share neither nonce nor ciphertext', () => {
    const [first, second] = [seal(KEY, OWN, ring), seal(KEY, OWN, ring)]
    expect(first.key.slice(0, 16)).not.to.equal(second.key.slice(0, 16))
    expect(first.text.slice(0, 16)).not.to.equal(second.text.slice(0, 16))
  })

  for (const [what, context] of [
    ['another tenant', { ...OWN, tenant: 'other' }],
    ['another name', { ...OWN, name: 'spare' }],
    ['another kind', { ...OWN, kind: 'secret' }],
  ] as const)
    it(`D8.3: a record copied to ${what} does not open`, () => {
      expect(codeOf(() => unseal(seal(KEY, OWN, ring), context, ring))).to.equal('secret_unreadable')
    })

  it('names that run into each other are different contexts', () => {
    const sealed = seal(KEY, { ...OWN, tenant: 'a","b', name: 'c' }, ring)
    expect(codeOf(() => unseal(sealed, { ...OWN, tenant: 'a', name: 'b","c' }, ring))).to.equal('secret_unreadable')
  })

  it('a record with one changed byte does not open, wherever the byte stands', () => {
    const sealed = seal(KEY, OWN, ring)
    for (const part of ['key', 'text'] as const) {
      const bytes = Buffer.from(sealed[part], 'base64')
      for (const at of [0, 12, bytes.length - 1]) {
        const changed = Buffer.from(bytes)
        changed[at] = (changed[at] ?? 0) ^ 1
        const forged = { ...sealed, [part]: changed.toString('base64') }
        expect(
          codeOf(() => unseal(forged, OWN, ring)),
          `${part} ${at}`,
        ).to.equal('secret_unreadable')
      }
      expect(codeOf(() => unseal({ ...sealed, [part]: '' }, OWN, ring))).to.equal('secret_unreadable')
    }
  })

  it('the two parts of a record cannot stand for each other', () => {
    const sealed = seal(KEY, OWN, ring)
    expect(codeOf(() => unseal({ ...sealed, text: sealed.key }, OWN, ring))).to.equal('secret_unreadable')
  })

  it('a rotated keyring opens old records, seals new ones under the new key, and wraps old ones anew', () => {
    const rotated = createKeyring(randomBytes(32), [old])
    const sealed = seal(KEY, OWN, ring)
    expect(unseal(sealed, OWN, rotated)).to.equal(KEY)
    const renewed = rewrap(sealed, OWN, rotated)
    expect(renewed?.kid).to.equal(rotated.primary.id)
    expect(renewed?.text).to.equal(sealed.text)
    expect(renewed && unseal(renewed, OWN, rotated)).to.equal(KEY)
    expect(renewed && codeOf(() => unseal(renewed, OWN, ring))).to.equal('master_key_missing')
    expect(renewed && rewrap(renewed, OWN, rotated)).to.equal(undefined)
  })

  it('a missing master key is named by its id, and a message never holds a key', () => {
    const sealed = seal(KEY, OWN, ring)
    const stranger = createKeyring(randomBytes(32))
    expect(() => unseal(sealed, OWN, stranger)).to.throw(AppError, sealed.kid)
    expect(() => rewrap(sealed, OWN, stranger)).to.throw(AppError, /MASTER_KEY_PREVIOUS/)
  })
})
