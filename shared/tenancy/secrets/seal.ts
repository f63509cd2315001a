import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { AppError } from '../../kernel/errors.ts'
import { KEPT_KEY_FILE } from './kept-key.ts'
import type { Keyring } from './keyring.ts'

/** The owner of a sealed record. It is authenticated with the ciphertext: a record copied elsewhere does not open. */
export type SealContext = { tenant: string; kind: 'secret' | 'instance' | 'webhook'; name: string }

/**
 * A secret as it is stored (D8.3): the text under a random data key of its own, and that key wrapped under the master key `kid`.
 * All but `v` and `kid` are base64.
 */
export type Sealed = {
  v: 1
  kid: string
  /** Nonce, ciphertext and tag of the wrapped data key. */
  key: string
  /** Nonce, ciphertext and tag of the text. */
  text: string
}

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32

export function seal(text: string, context: SealContext, { primary }: Keyring): Sealed {
  const dataKey = randomBytes(KEY_BYTES)
  return {
    v: 1,
    kid: primary.id,
    key: encrypt(dataKey, primary.key, aadOf(context, 'key')),
    text: encrypt(Buffer.from(text), createSecretKey(dataKey), aadOf(context, 'text')),
  }
}

/** Throws `unavailable` when the master key is not in the keyring, or the record is not the one that was sealed for `context`. */
export function unseal(sealed: Sealed, context: SealContext, keyring: Keyring): string {
  const dataKey = unwrap(sealed, context, keyring)
  return decrypt(sealed.text, { key: createSecretKey(dataKey), aad: aadOf(context, 'text'), context }).toString()
}

/** The same record under the primary master key; `undefined` when it already is. Throws like `unseal`. */
export function rewrap(sealed: Sealed, context: SealContext, keyring: Keyring): Sealed | undefined {
  const { primary } = keyring
  if (sealed.kid === primary.id) return undefined
  const dataKey = unwrap(sealed, context, keyring)
  return { ...sealed, kid: primary.id, key: encrypt(dataKey, primary.key, aadOf(context, 'key')) }
}

function unwrap(sealed: Sealed, context: SealContext, keyring: Keyring): Buffer {
  const master = keyring.find(sealed.kid)
  if (!master) throw sealed.kid === keyring.replacedId ? replacedKey(context) : missingMasterKey(sealed.kid, context)
  return decrypt(sealed.key, { key: master.key, aad: aadOf(context, 'key'), context })
}

/** JSON, so that the names cannot run into each other. */
const aadOf = ({ tenant, kind, name }: SealContext, part: 'key' | 'text'): Buffer =>
  Buffer.from(JSON.stringify([1, tenant, kind, name, part]))

function encrypt(plain: Buffer, key: KeyObject, aad: Buffer): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(aad)
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64')
}

type Opening = { key: KeyObject; aad: Buffer; context: SealContext }

function decrypt(encoded: string, { key, aad, context }: Opening): Buffer {
  const bytes = Buffer.from(encoded, 'base64')
  const end = bytes.length - TAG_BYTES
  if (end < NONCE_BYTES) throw unreadable(context)
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(aad).setAuthTag(bytes.subarray(end))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, end)), decipher.final()])
  } catch (cause) {
    throw unreadable(context, cause)
  }
}

const missingMasterKey = (kid: string, { kind, name }: SealContext) =>
  new AppError(
    'unavailable',
    `the key of ${kind} ${name} is sealed under master key ${kid}, which this server does not have: add it to MASTER_KEY_PREVIOUS, or store the key again`,
    { code: 'master_key_missing' },
  )

const replacedKey = ({ kind, name }: SealContext) =>
  new AppError(
    'unavailable',
    `the key of ${kind} ${name} is sealed under the key in ${KEPT_KEY_FILE} of DATA_DIR, which MASTER_KEY has replaced: set MASTER_KEY_PREVIOUS to the content of this file, or store the key again`,
    { code: 'master_key_missing' },
  )

const unreadable = ({ kind, name }: SealContext, cause?: unknown) =>
  new AppError('unavailable', `the stored key of ${kind} ${name} cannot be decrypted: store it again`, {
    code: 'secret_unreadable',
    cause,
  })
