import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { startWebhookReceiver } from '../../../support/webhook-receiver.ts'
import { call, callPatiently, prepare } from '../../api.ts'
import type { Attack, AttackPlan, Surroundings, Tenant, Use } from '../attack.ts'
import { useAtOnce } from '../neighbour.ts'

const WEBHOOKS = 20
const RUNS = { short: 10, full: 40 }

/** The places for messages to webhooks. */
export const DEAD_RECEIVERS: AttackPlan = {
  title: 'dead receivers',
  begin: sendToTarpit,
  prepare: receive,
  isShared: true,
}

/** As many webhooks as a tenant may have, at an address that accepts connections and never answers, and many messages for each. */
async function sendToTarpit({ url, headers }: Tenant, { size }: Surroundings): Promise<Attack> {
  const tarpit = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1')
  await once(tarpit, 'listening')
  const hook = `http://127.0.0.1:${(tarpit.address() as AddressInfo).port}/hooks`
  for (let i = 0; i < WEBHOOKS; i++) await putWebhook({ url, headers }, `dead-${i}`, hook)
  for (let i = 0; i < RUNS[size]; i += 10) {
    const run = () => call(url, { method: 'POST', path: '/agent/run', headers, body: { prompt: '/say ok' } })
    await Promise.all(Array.from({ length: 10 }, run))
  }
  return {
    refused: () => 0,
    async end() {
      const remove = (i: number) =>
        callPatiently(url, { method: 'DELETE', path: `/config/webhooks/dead-${i}`, headers })
      await Promise.all(Array.from({ length: WEBHOOKS }, (_, i) => remove(i)))
      tarpit.close()
    },
  }
}

/** Makes runs, and measures how long after its end a run is announced to the tenant's receiver. */
async function receive(other: Tenant): Promise<Use> {
  const { url, headers } = other
  const receiver = await startWebhookReceiver()
  await putWebhook(other, 'own', receiver.url)
  return (rounds) =>
    useAtOnce(async (measured) => {
      for (let round = 0; round < rounds; round++) {
        const made = await prepare(url, { method: 'POST', path: '/agent/run', headers, body: { prompt: '/say ok' } })
        const from = performance.now()
        const id = made.headers.get('x-run-id')
        await receiver.wait(`the end of ${id}`, ({ body }) => body.data['run_id'] === id)
        measured.runMs.push(performance.now() - from)
      }
    })
}

function putWebhook({ url, headers }: Tenant, name: string, address: string) {
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const body = { url: address, events: ['run.ended'], secret }
  return prepare(url, { method: 'PUT', path: `/config/webhooks/${name}`, headers, body })
}
