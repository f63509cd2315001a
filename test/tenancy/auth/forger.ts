import type { JWK } from 'jose'
import { AUDIENCE } from '../../support/issuer/issuer.ts'
import { compact, newSigner, type Sign, type Signer, signatureOf } from '../../support/issuer/signer.ts'

/** Makes tokens like an issuer, with any part replaced. */
export type Forger = {
  claims: Record<string, unknown>
  signers: Record<
    'rsa' | 'ec' | 'ec384' | 'ec512' | 'ed' | 'pinned' | 'encryption' | 'wrapping' | 'short' | 'foreign',
    Signer
  >
  /** The published keys of all signers except `foreign`. The keys `rsa` and `ec` name no algorithm. */
  published: JWK[]
  /** A token by one of the signers, valid except for the given changes. `undefined` removes a claim or a header field. */
  token: (parts?: Parts) => string
}

export type Parts = {
  by?: Signer
  header?: Record<string, unknown>
  claims?: Record<string, unknown>
  /** Replaces the claims, unencoded. */
  payload?: unknown
  /** Replaces the signature. */
  sign?: Sign
}

/** The tokens are valid for an hour from `nowMs`, a time in ms since 1970. */
export async function createForger(issuer: string, nowMs = Date.now()): Promise<Forger> {
  const signers = {
    rsa: await newSigner('RS256', 'r1'),
    ec: await newSigner('ES256', 'e1'),
    ec384: await newSigner('ES384', 'e2'),
    ec512: await newSigner('ES512', 'e3'),
    ed: await newSigner('EdDSA', 'd1'),
    pinned: await newSigner('RS256', 'pinned'),
    encryption: await newSigner('RS256', 'encryption'),
    wrapping: await newSigner('RS256', 'wrapping'),
    short: await newSigner('RS256', 'short', 1_024),
    foreign: await newSigner('RS256', 'foreign'),
  }
  const seconds = Math.floor(nowMs / 1000)
  const claims = { iss: issuer, aud: AUDIENCE, sub: 'u1', iat: seconds, exp: seconds + 3_600, tenant_id: 'acme' }
  return {
    claims,
    signers,
    published: publish(signers),
    token: ({ by = signers.rsa, header, claims: other, payload, sign }: Parts = {}) => {
      const head = { alg: by.alg, typ: 'JWT', kid: by.kid, ...header }
      const signIt = sign ?? signatureOf(head.alg, by.privateKey)
      return compact(head, payload ?? { ...claims, ...other }, signIt)
    },
  }
}

function publish({ rsa, ec, ec384, ec512, ed, pinned, encryption, wrapping, short }: Forger['signers']): JWK[] {
  const { alg: _rsa, ...anyRsa } = rsa.publicJwk
  const { alg: _ec, ...anyEc } = ec.publicJwk
  const { use: _use, ...noUse } = wrapping.publicJwk
  return [
    anyRsa,
    anyEc,
    ec384.publicJwk,
    ec512.publicJwk,
    ed.publicJwk,
    pinned.publicJwk,
    { ...encryption.publicJwk, use: 'enc' },
    { ...noUse, key_ops: ['wrapKey'] },
    short.publicJwk,
  ]
}
