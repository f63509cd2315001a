import { createHmac, sign as signBytes } from 'node:crypto'
import type { RefusalReason } from '../../../shared/tenancy/auth/refusals.ts'
import { encode, signatureOf } from '../../support/issuer/signer.ts'
import type { Forger, Parts } from './forger.ts'

/** Name, expected reason of the refusal, and the token. */
export type ForgedClass = readonly [name: string, why: RefusalReason, token: string]

/** The classes of forged tokens. Each token is valid except for the one change that its name describes. */
export function forgedClasses(forger: Forger): ForgedClass[] {
  return [
    ...malformed(forger),
    ...headers(forger),
    ...keys(forger),
    ...signatures(forger),
    ...claims(forger),
    ...tenants(forger),
  ]
}

function malformed({ token, signers }: Forger): ForgedClass[] {
  const good = token()
  const [header = '', payload = '', signature = ''] = good.split('.')
  const raw = (head: unknown) => `${encode(head)}.${payload}.${signature}`
  const latin1 = Buffer.from('{"alg":"RS256","kid":"r1","x":"\xe9"}', 'latin1')
  return [
    ['no token after Bearer', 'malformed', ''],
    ['no dots', 'malformed', 'x'.repeat(100)],
    ['dots alone', 'malformed', '..'],
    ['two parts', 'malformed', `${header}.${payload}`],
    ['four parts', 'malformed', `${good}.${signature}`],
    ['five parts, an encrypted token', 'malformed', `${header}.${payload}.${signature}.${payload}.${signature}`],
    ['no header', 'malformed', `.${payload}.${signature}`],
    ['no payload', 'malformed', `${header}..${signature}`],
    ['no signature', 'malformed', `${header}.${payload}.`],
    ['padding', 'malformed', `${good}==`],
    ['base64 with + and /', 'malformed', `${header}.${payload}.+/${signature.slice(2)}`],
    ['a second spelling of the signature', 'malformed', token({ by: signers.ed }).replace(/.$/, nextLetter)],
    ['a blank inside', 'malformed', `${header}.${payload} .${signature}`],
    ['a second token behind a comma', 'malformed', `${good},${good}`],
    ['a header that is no JSON', 'malformed', raw('{alg:RS256}')],
    ['a header that is an array', 'malformed', raw([{ alg: 'RS256' }])],
    ['a header that is a string', 'malformed', raw('"RS256"')],
    ['a header that is null', 'malformed', raw('null')],
    ['a header that is no UTF-8', 'malformed', raw(latin1)],
    ['a kid that is a number', 'malformed', token({ header: { kid: 1 } })],
    ['a kid that is a list', 'malformed', token({ header: { kid: ['r1'] } })],
    ['a payload that is no JSON', 'malformed', token({ by: signers.ed, payload: '{iss' })],
    ['a payload that is an array', 'malformed', token({ payload: [] })],
    ['a payload that is a string', 'malformed', token({ payload: '"acme"' })],
    ['a payload that is no UTF-8', 'malformed', token({ payload: latin1 })],
    ['over 8 KiB, with a good signature', 'too_long', token({ claims: { pad: 'x'.repeat(8_192) } })],
  ]
}

/** The last base64 character of a 64-byte signature has four unused bits. */
const nextLetter = (letter: string) => String.fromCharCode(letter.charCodeAt(0) + 1)

function headers({ token, signers }: Forger): ForgedClass[] {
  const pem = signers.rsa.publicKey.export({ format: 'pem', type: 'spki' })
  return [
    ['alg none', 'algorithm', token(named('none'))],
    ['alg nOnE', 'algorithm', token(named('nOnE'))],
    ['no alg', 'algorithm', token(named(undefined))],
    ['alg is a number', 'algorithm', token(named(256))],
    ['alg is a list', 'algorithm', token(named(['RS256']))],
    ['alg in small letters', 'algorithm', token(named('rs256'))],
    ['alg with a line feed', 'algorithm', token(named('RS256\n'))],
    ['alg is a property of every object', 'algorithm', token(named('constructor'))],
    [
      'alg is __proto__',
      'algorithm',
      token({ header: JSON.parse('{"alg":"__proto__"}'), sign: () => Buffer.from('s') }),
    ],
    ['SHA-1', 'algorithm', token(named('RS1'))],
    ['the curve of Bitcoin', 'algorithm', token(named('ES256K'))],
    ['EdDSA by its new name, which D3.1 does not list', 'algorithm', token({ by: signers.ed, ...named('Ed25519') })],
    ['an encryption algorithm', 'algorithm', token(named('RSA-OAEP'))],
    ['HS256 with the public key as the secret', 'algorithm', token(hmac('HS256', pem))],
    ['HS256 with the modulus as the secret', 'algorithm', token(hmac('HS256', String(signers.rsa.publicJwk.n)))],
    ['HS512 with an empty secret', 'algorithm', token(hmac('HS512', ''))],
    ['an extension that has to be understood', 'critical', token({ header: { crit: ['exp'], exp: 1 } })],
    ['an unencoded payload', 'critical', token({ header: { crit: ['b64'], b64: false } })],
    ['an empty crit', 'critical', token({ header: { crit: [] } })],
    ['a logout token', 'type', token({ header: { typ: 'logout+jwt' } })],
    ['a proof of possession', 'type', token({ header: { typ: 'dpop+jwt' } })],
    ['a typ that is a number', 'type', token({ header: { typ: 1 } })],
  ]
}

/** Tokens with another algorithm and no valid signature. */
const named = (name: unknown): Parts => ({ header: { alg: name }, sign: () => Buffer.from('signature') })

const hmac = (name: string, secret: string | Buffer): Parts => ({
  header: { alg: name },
  sign: (signed) =>
    createHmac(`sha${name.slice(2)}`, secret)
      .update(signed)
      .digest(),
})

function keys({ token, signers }: Forger): ForgedClass[] {
  const { rsa, ec, ed, pinned, encryption, wrapping, short, foreign } = signers
  const strange = { by: foreign }
  const own = (header: Record<string, unknown>): Parts => ({ by: foreign, header: { kid: 'r1', ...header } })
  return [
    ['a foreign key', 'key', token(strange)],
    ["a foreign key under the issuer's kid", 'signature', token(own({}))],
    ['a foreign key in the header (jwk)', 'signature', token(own({ jwk: foreign.publicJwk }))],
    [
      'a foreign key in the header, under its own kid',
      'key',
      token({ ...strange, header: { jwk: foreign.publicJwk } }),
    ],
    ['an address of a foreign key (jku)', 'signature', token(own({ jku: 'http://127.0.0.1:9/jwks' }))],
    ['a certificate of a foreign key (x5c)', 'signature', token(own({ x5c: ['MIIB'] }))],
    ['an address of a certificate (x5u)', 'signature', token(own({ x5u: 'http://127.0.0.1:9/crt' }))],
    ['no kid where several keys would fit', 'key', token({ header: { kid: undefined } })],
    ['a kid that is a path', 'key', token({ header: { kid: '../../dev/null' } })],
    ['a kid that is __proto__', 'key', token({ header: { kid: '__proto__' } })],
    ['a kid that is empty', 'key', token({ header: { kid: '' } })],
    ['RS256 with the kid of an elliptic key', 'key', token({ header: { kid: ec.kid } })],
    ['ES256 with the kid of an RSA key', 'key', token({ by: ec, header: { kid: rsa.kid } })],
    ['EdDSA with the kid of an elliptic key', 'key', token({ by: ed, header: { kid: ec.kid } })],
    ['ES384 with a key of P-256', 'key', token({ by: ec, header: { alg: 'ES384' } })],
    ['PS256 with a key that is for RS256', 'key', token({ by: pinned, header: { alg: 'PS256' } })],
    ['a key that is for encryption', 'key', token({ by: encryption })],
    ['a key whose operations do not hold verify', 'key', token({ by: wrapping })],
    ['an RSA key of 1,024 bits', 'key', token({ by: short })],
  ]
}

function signatures({ token, signers }: Forger): ForgedClass[] {
  const { rsa, ec, ed } = signers
  const right = (alg: string, by = rsa) => signatureOf(alg, by.privateKey)
  const changed = (parts: Parts, change: (signature: Buffer) => Buffer): string =>
    token({ ...parts, sign: (signed) => change(Buffer.from(right(parts.by?.alg ?? 'RS256', parts.by)(signed))) })
  const [header, payload, signature] = token().split('.')
  const other = encode({ iss: 'x' })
  const emptySalt: Parts = {
    header: { alg: 'PS256' },
    sign: (signed) => signBytes('sha256', signed, { key: rsa.privateKey, padding: 6, saltLength: 0 }),
  }
  const der: Parts = { by: ec, sign: (signed) => signBytes('sha256', signed, ec.privateKey) }
  return [
    ['one bit of the signature flipped', 'signature', changed({}, flipBit)],
    ['one bit of an EdDSA signature flipped', 'signature', changed({ by: ed }, flipBit)],
    ['another payload under the signature', 'signature', `${header}.${other}.${signature}`],
    [
      'another header under the signature',
      'signature',
      `${encode({ alg: 'RS256', kid: 'r1' })}.${payload}.${signature}`,
    ],
    [
      'the signature of another token',
      'signature',
      `${token({ claims: { sub: 'u2' } }).replace(/[^.]*$/, '')}${signature}`,
    ],
    ['a signature cut short', 'signature', changed({}, (bytes) => bytes.subarray(0, -1))],
    ['a signature made longer', 'signature', changed({ by: ec }, (bytes) => Buffer.concat([bytes, Buffer.alloc(1)]))],
    ['an EdDSA signature cut short', 'signature', changed({ by: ed }, (bytes) => bytes.subarray(0, 32))],
    ['an ES256 signature in DER', 'signature', token(der)],
    ['an ES256 signature of zeros', 'signature', changed({ by: ec }, (bytes) => Buffer.alloc(bytes.length))],
    ['an RSA signature of zeros', 'signature', changed({}, (bytes) => Buffer.alloc(bytes.length))],
    ['an EdDSA signature with the group order added', 'signature', changed({ by: ed }, addGroupOrder)],
    ['RS256 with the hash of RS512', 'signature', token({ sign: right('RS512') })],
    ['RS256 with the padding of PS256', 'signature', token({ sign: right('PS256') })],
    ['PS256 with the padding of RS256', 'signature', token({ header: { alg: 'PS256' }, sign: right('RS256') })],
    ['PS256 with an empty salt', 'signature', token(emptySalt)],
  ]
}

function flipBit(signature: Buffer): Buffer {
  const flipped = Buffer.from(signature)
  flipped[10] = (flipped[10] ?? 0) ^ 1
  return flipped
}

/** S + L verifies in libraries that do not check that S is reduced (RFC 8032, section 5.1.7). */
function addGroupOrder(signature: Buffer): Buffer {
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  const s = BigInt(`0x${Buffer.from(signature.subarray(32).toReversed()).toString('hex')}`)
  const sum = Buffer.from((s + order).toString(16).padStart(64, '0'), 'hex')
  return Buffer.concat([signature.subarray(0, 32), sum.toReversed()])
}

function claims(forger: Forger): ForgedClass[] {
  const { token, claims: good, signers } = forger
  const seconds = Number(good['iat'])
  const row = rowsOf(forger)
  const infinite = JSON.stringify(good).replace(/}$/, ',"exp":1e999}')
  return [
    row('no iss', 'issuer', { iss: undefined }),
    row('another iss', 'issuer', { iss: 'https://issuer.example' }),
    row('an iss with a slash more', 'issuer', { iss: `${String(good['iss'])}/` }),
    row('an iss that is a list', 'issuer', { iss: [good['iss']] }),
    row('no aud', 'audience', { aud: undefined }),
    row('another aud', 'audience', { aud: 'urn:other' }),
    row('an aud that only begins like ours', 'audience', { aud: `${String(good['aud'])}:more` }),
    row('an empty list of aud', 'audience', { aud: [] }),
    row('an aud in a list in a list', 'audience', { aud: [[good['aud']]] }),
    row('an aud that is an object', 'audience', { aud: { [String(good['aud'])]: true } }),
    row('no exp', 'times', { exp: undefined }),
    row('exp is null', 'times', { exp: null }),
    row('exp is a string', 'times', { exp: String(seconds + 3_600) }),
    ['exp is infinite', 'times', token({ payload: infinite })],
    row('expired over a minute ago', 'expired', { exp: seconds - 61 }),
    row('expired before 1970', 'expired', { exp: -1 }),
    row('not valid for over a minute yet', 'not_yet', { nbf: seconds + 120 }),
    row('nbf is a string', 'times', { nbf: '0' }),
    row('nbf is null', 'times', { nbf: null }),
    row('iat is an object', 'times', { iat: {} }),
    ['an EdDSA token without exp', 'times', token({ by: signers.ed, claims: { exp: undefined } })],
    ['an EdDSA token for another aud', 'audience', token({ by: signers.ed, claims: { aud: 'urn:other' } })],
    ['an EdDSA token that has expired', 'expired', token({ by: signers.ed, claims: { exp: seconds - 61 } })],
  ]
}

function tenants(forger: Forger): ForgedClass[] {
  const row = rowsOf(forger)
  const { tenant_id: _tenant, ...none } = forger.claims
  const inherited = JSON.stringify(none).replace(/}$/, ',"__proto__":{"tenant_id":"acme"}}')
  return [
    row('no tenant', 'tenant', { tenant_id: undefined }),
    row('an empty tenant', 'tenant', { tenant_id: '' }),
    row('a tenant that is a query', 'tenant', { tenant_id: { $gt: '' } }),
    row('a tenant that is a list', 'tenant', { tenant_id: ['acme'] }),
    row('a tenant that is a number', 'tenant', { tenant_id: 1 }),
    row('a tenant that is a path', 'tenant', { tenant_id: '../globex' }),
    row('a tenant with a line feed', 'tenant', { tenant_id: 'acme\n' }),
    row('a tenant with a letter that only looks like ASCII', 'tenant', { tenant_id: '\u0430cme' }),
    row('a tenant of 129 characters', 'tenant', { tenant_id: 'a'.repeat(129) }),
    ['a tenant that is inherited', 'tenant', forger.token({ payload: inherited })],
  ]
}

const rowsOf =
  ({ token }: Forger) =>
  (name: string, why: RefusalReason, changed: Record<string, unknown>): ForgedClass => [
    name,
    why,
    token({ claims: changed }),
  ]
