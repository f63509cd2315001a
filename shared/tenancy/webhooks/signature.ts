import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'
const MIN_BYTES = 24
const MAX_BYTES = 64

/** Whether the text is a secret of the Standard Webhooks specification: `whsec_` and 24 to 64 bytes in base64. */
export function isWebhookSecret(secret: string): boolean {
  if (!secret.startsWith(PREFIX)) return false
  const text = secret.slice(PREFIX.length)
  const bytes = keyOf(secret)
  if (withoutPadding(bytes.toString('base64')) !== withoutPadding(text)) return false
  return bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES
}

const withoutPadding = (base64: string): string => base64.replaceAll('=', '')

export type SignedMessage = { id: string; sentAt: Date; body: string }

/**
 * The headers of a message by the Standard Webhooks specification. While a secret is being replaced there are two, and a signature
 * with each.
 */
export function signatureHeaders(
  { id, sentAt, body }: SignedMessage,
  secrets: readonly string[],
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const timestamp = String(Math.floor(sentAt.getTime() / 1000))
  const sign = (secret: string) =>
    `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': secrets.map(sign).join(' ') }
}

const keyOf = (secret: string): Buffer => Buffer.from(secret.slice(PREFIX.length), 'base64')
