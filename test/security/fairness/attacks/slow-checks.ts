import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '../../../support/until.ts'
import { call, prepare } from '../../api.ts'
import type { Attack, AttackPlan, Tenant } from '../attack.ts'
import { useFlows } from '../neighbour.ts'
import { warm } from './hanging.ts'

/** Inputs whose checks take as long as a check may. No model is called for them. */
export const SLOW_CHECKS: AttackPlan = { title: 'slow checks of inputs', begin: checkMuch, prepare: warm(useFlows) }

const CLIENTS = 80
/** Of each text of 800 characters, every character may begin and continue a match. */
const PATTERN = { type: 'object', properties: { text: { type: 'string', pattern: '(\\p{L}{0,500}){2}\\d$' } } }
/** A value of depth n takes 2^n evaluations: the check ends with its thread. */
const NESTED = {
  type: 'object',
  properties: { a: { anyOf: [1, 2].map(() => ({ allOf: [{ $ref: '#' }, false] })) } },
}
const DEEP = JSON.parse(`${'{"a":'.repeat(60)}{}${'}'.repeat(60)}`) as object
const LETTERS = 'abcdefghij'

/** Half of the clients send texts for the pattern, the others nested values. Each comes back at once, after a refusal as late as it is told. */
async function checkMuch({ url, headers }: Tenant): Promise<Attack> {
  await publish({ url, headers }, 'pattern', PATTERN)
  await publish({ url, headers }, 'nested', NESTED)
  const over = new AbortController()
  let refused = 0
  const client = async (_: unknown, at: number) => {
    while (!over.signal.aborted) {
      const [path, input] = at % 2 === 0 ? ['/flows/pattern/run', { text: newText() }] : ['/flows/nested/run', DEEP]
      const body = { provider_instance: 'main', input }
      const reply = await call(url, { method: 'POST', path, headers, body }, over.signal)
      if (reply.status !== 429) continue
      if (reply.text.includes('its share of the values and schemas')) refused++
      await sleep(1_000 * Number(reply.headers.get('retry-after')), undefined, { signal: over.signal })
    }
  }
  const ignoreEnd = (cause: unknown) => {
    if (!over.signal.aborted) throw cause
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, client).map((work) => work.catch(ignoreEnd)))
  return {
    refused: () => refused,
    async end() {
      over.abort()
      await clients
      const body = { provider_instance: 'main', input: { a: 'x' } }
      const check = () => call(url, { method: 'POST', path: '/flows/nested/run', headers, body })
      await until(async () => (await check()).status === 400, { what: 'the checks that still wait to end' })
    },
  }
}

async function publish({ url, headers }: Tenant, name: string, schema: object): Promise<void> {
  const body = { model: 'm', input_schema: schema, output_schema: { type: 'object' } }
  await prepare(url, { method: 'PUT', path: `/flows/${name}`, body, headers })
  // A schema that is compiled in time on an idle machine may need longer on a busy one.
  const isPublished = async () =>
    (await call(url, { method: 'POST', path: `/flows/${name}/publish`, headers })).status === 200
  await until(isPublished, { what: `the flow ${name} to be published`, withinMs: 60_000 })
}

/** No two texts are the same, so that the engine remembers nothing of one that helps with another. */
const newText = (): string => Array.from(randomBytes(800), (byte) => LETTERS[byte % LETTERS.length]).join('')
