import { randomBytes } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { signatureHeaders } from '../../shared/tenancy/webhooks/signature.ts'
import { call, type Trial } from './trial.ts'

const PACKAGE = 'svix@2.5.0'

const PROGRAM = `import { Webhook } from 'svix'
const [secret, headers, body] = process.argv.slice(2)
const webhook = new Webhook(secret)
const verify = (text) => { try { webhook.verify(text, JSON.parse(headers)); return 'verified' } catch (cause) { return cause.name } }
console.log(verify(body), verify(body + ' '))
`

/** The program's two lines: for a message of ours, then for a changed one. */
export const SVIX_PRINTS = 'verified WebhookVerificationError'

/** Verifies a signature of ours with the package `svix`, as a receiver of webhooks does. While a secret is replaced a message has two. */
export async function trySvix({ folder }: Trial): Promise<string> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'verify.mjs'), PROGRAM)
  await call(folder, ['npm', 'install', '--no-save', '--no-audit', '--no-fund', PACKAGE])
  const [old, secret] = [newSecret(), newSecret()]
  const body = '{"type":"run.ended"}'
  const headers = signatureHeaders({ id: 'msg_1', sentAt: new Date(), body }, [old, secret])
  return call(folder, ['node', 'verify.mjs', secret, JSON.stringify(headers), body])
}

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`
