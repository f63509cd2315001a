import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Answered, Asked } from '../../../ask.ts'
import { paced } from '../../../prompts.ts'
import { FLOW_PATH, INSTANCE } from '../../flows/setup.ts'
import type { StepOrder } from '../../plans/form.ts'

/** How the hostile tenant reaches the cluster. */
export type Attacker = {
  /** Sends a request and reads its answer. Never throws. */
  ask(asked: Asked): Promise<Answered>
  /** Sends a request that is given up at the end of the attack; an answer that comes earlier is read, unless it is `unread`. */
  hold(request: { path: string; body: unknown; isUnread?: boolean }): void
  /** The address of a server that accepts connections and never answers. */
  tarpit: string
}

/** Begins an attack. What is returned undoes what would stay. */
type BeginAttack = (attacker: Attacker) => Promise<(() => Promise<unknown>) | undefined>

/** Longer than an attack is kept up. */
const LONG_MS = 8_000
/** The proxies in front of Redis are in this process, which must not be late because of a burst. */
const APART_MS = 20
const PATTERN_FLOW = '/flows/pattern'

/** The attacks of the hostile tenant, each on one shared resource. They are smaller than those of P20, because faults and other attacks happen at the same time. */
export const ATTACKS: readonly BeginAttack[] = [
  holding(130, () => ({ path: '/agent/run', body: { prompt: `/sleep ${LONG_MS}` } })),
  takeSessions,
  fillConversation,
  holding(60, () => ({ path: `${FLOW_PATH}/run`, body: flowCall({ token: randomUUID(), ms: LONG_MS }) })),
  hangPlans,
  scheduleLongPlans,
  announceToTarpit,
  holding(4, () => ({ path: '/agent/run', body: stalledBody() })),
  holding(3, () => ({ path: '/agent/run', body: { prompt: LARGE_ANSWER }, isUnread: true })),
  holding(3, () => ({ path: '/agent/run', body: { prompt: LARGE_ANSWER } })),
  uploadToTarpit,
  holding(8, () => ({ path: `${PATTERN_FLOW}/run`, body: flowCall({ text: 'a'.repeat(800) }) })),
]

/** Stores the flow whose input is expensive to check. */
export async function preparePatternFlow({ ask }: Attacker): Promise<void> {
  const text = { type: 'string', pattern: '(\\p{L}{0,500}){2}\\d$' }
  const flow = { model: 'm', input_schema: { type: 'object', properties: { text } }, output_schema: { type: 'object' } }
  await ask({ method: 'PUT', path: PATTERN_FLOW, body: flow })
  await ask({ method: 'POST', path: `${PATTERN_FLOW}/publish` })
}

const LARGE_ANSWER = paced({ count: 20, everyMs: 10, words: 100 })
const flowCall = (input: object) => ({ input, provider_instance: INSTANCE })
const timesOf = (count: number) => Array.from({ length: count }, (_, n) => n)

function holding(count: number, requestOf: () => Parameters<Attacker['hold']>[0]): BeginAttack {
  return async ({ hold }) => {
    for (const _ of timesOf(count)) {
      hold(requestOf())
      await sleep(APART_MS)
    }
    return undefined
  }
}

async function takeSessions({ ask }: Attacker) {
  const created = await Promise.all(timesOf(60).map(() => ask({ path: '/sessions', body: {} })))
  const ids = created.flatMap(({ status, body }) => (status === 201 ? (body as { session_id: string }).session_id : []))
  return () => Promise.all(ids.map((id) => ask({ method: 'DELETE', path: `/sessions/${id}` })))
}

async function fillConversation({ ask }: Attacker) {
  const { status, body } = await ask({ path: '/sessions', body: {} })
  if (status !== 201) return undefined
  const path = `/sessions/${(body as { session_id: string }).session_id}`
  const prompt = `/say ok\n${'x'.repeat(90_000)}`
  for (const _ of timesOf(10)) await ask({ path: `${path}/messages`, body: { prompt } })
  return () => ask({ method: 'DELETE', path })
}

const hangingStep = (chars = 0) => {
  const order: StepOrder = { token: `hostile-${randomUUID()}`, ms: LONG_MS, writes: false }
  return { id: 'only', prompt: `${JSON.stringify(order)}\n${'x'.repeat(chars)}` }
}

async function hangPlans({ ask }: Attacker) {
  await Promise.all(timesOf(16).map(() => ask({ path: '/plans/submit', body: { steps: [hangingStep()] } })))
  return undefined
}

async function scheduleLongPlans({ ask }: Attacker) {
  const paths = timesOf(4).map((n) => `/plans/schedules/often-${n}`)
  const body = () => ({ every_secs: 10, plan: { steps: [hangingStep(90_000)] } })
  await Promise.all(paths.map((path) => ask({ method: 'PUT', path, body: body() })))
  return () => Promise.all(paths.map((path) => ask({ method: 'DELETE', path })))
}

async function announceToTarpit({ ask, tarpit }: Attacker) {
  const paths = timesOf(5).map((n) => `/config/webhooks/dead-${n}`)
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const body = { url: `${tarpit}/hooks`, events: ['run.ended'], secret }
  await Promise.all(paths.map((path) => ask({ method: 'PUT', path, body })))
  await Promise.all(timesOf(8).map(() => ask({ path: '/agent/run', body: { prompt: '/say ok' } })))
  return () => Promise.all(paths.map((path) => ask({ method: 'DELETE', path })))
}

/** The first megabyte of a JSON text that does not go on. */
function stalledBody(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.enqueue(Buffer.alloc(1_000_000, ' ')) })
}

async function uploadToTarpit({ ask, hold, tarpit }: Attacker) {
  const instance = { type: 'openai-compatible', url: tarpit, key: 'k' }
  await ask({ method: 'PUT', path: '/config/instances/tarpit', body: instance })
  for (const _ of timesOf(4)) {
    const form = new FormData()
    form.append('provider_instance', 'tarpit')
    form.append('model', 'whisper')
    form.append('file', new Blob([Buffer.alloc(5_000_000)]), 'a.wav')
    hold({ path: '/audio/transcriptions', body: form })
  }
  return undefined
}
