import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { until } from './until.ts'

export type ReceivedMessage = {
  id: string
  headers: IncomingHttpHeaders
  raw: string
  body: { type: string; timestamp: string; data: Record<string, unknown> }
}

/** A receiver of webhooks. It answers with `answers` in their order, and 204 when there are no more. */
export type WebhookReceiver = {
  url: string
  readonly messages: readonly ReceivedMessage[]
  answers: { status: number; headers?: Record<string, string> }[]
  /** Waits for a message, also one that has arrived already. */
  wait(what: string, isWanted: (message: ReceivedMessage) => boolean): Promise<ReceivedMessage>
  close(): Promise<void>
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const messages: ReceivedMessage[] = []
  const receiver: WebhookReceiver = {
    url: '',
    messages,
    answers: [],
    async wait(what, isWanted) {
      await until(async () => messages.some(isWanted), { what, lastSeen: () => messages })
      return messages.find(isWanted) as ReceivedMessage
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
  const server = createServer((req, res) => {
    const handle = async () => {
      const raw = await text(req)
      messages.push({ id: String(req.headers['webhook-id']), headers: req.headers, raw, body: JSON.parse(raw) })
      const { status, headers } = receiver.answers.shift() ?? { status: 204 }
      res.writeHead(status, headers).end()
    }
    handle().catch((cause: unknown) => res.destroy(cause as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`
  return receiver
}

/** The signature of the Standard Webhooks specification, as its own package makes it. */
export const signatureOf = ({ id, headers, raw }: ReceivedMessage, secret: string): string =>
  new Webhook(secret).sign(id, new Date(Number(headers['webhook-timestamp']) * 1_000), raw)
