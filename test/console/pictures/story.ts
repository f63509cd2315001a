import { EXAMPLES } from '../../../services/console/pages/flows/first-flow.ts'
import { openStandaloneStore } from '../../../services/wiring/open-store.ts'
import { DEFAULT_TENANT } from '../../../shared/kernel/tenant.ts'
import { loadConfig } from '../../../shared/platform/config/config.ts'
import { groupSettings } from '../../../shared/platform/config/groups.ts'
import { durationClass } from '../../../shared/tenancy/usage/durations.ts'
import type { Received } from '../../support/model-server/received.ts'
import type { Answer } from '../../support/model-server/script.ts'
import type { Product } from '../../support/product.ts'
import { until } from '../../support/until.ts'

const NOTES = `# Release 2.4

- Exports run in the background, and tell you when they are done.
- Invoices show the tax of each country.
- Sign-in by passkey.
`

/** What the model says to each text that the story has; the file's tool is called first. */
const SAYS: readonly (readonly [asked: RegExp, answer: Answer])[] = [
  [/refused/, { steps: [{ error: { status: 401 } }] }],
  [/release notes/, { steps: [{ text: 'I write the notes of the three changes.' }, write('notes/2.4.md', NOTES)] }],
  [/price list/, { steps: [write('prices.md', '| plan | price |\n|---|---|\n| Team | 29 |\n| Business | 79 |\n')] }],
  [
    /churn/,
    'Churn rose to **3.1 %** in March, from 2.4 %.\n\n| Plan | February | March |\n|---|---|---|\n| Team | 2.9 % | 4.2 % |\n| Business | 1.1 % | 1.0 % |\n\nNearly all of it is the *Team* plan, in the week after the export was slow.',
  ],
]

function write(path: string, content: string) {
  return { tool: 'Write', input: { path, content } }
}

function answerTo({ prompt, lastAsked, results }: Received): Answer {
  if (results.length > 0) return 'The file is written. Shall I send it to the team?'
  const asked = prompt || lastAsked
  return SAYS.find(([pattern]) => pattern.test(asked))?.[1] ?? 'Done. The numbers agree with those of the ledger.'
}

/** A day at work: chats, a request that waits, a failure, a flow of two versions, a plan, a schedule, and settings. */
export async function tellDay(product: Product) {
  const { stream, model } = product
  const call: Product['call'] = async (method, path, ...rest) => {
    const reply = await product.call(method, path, ...rest)
    if (reply.status >= 400) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`)
    return reply
  }
  model.models = ['large-4', 'small-4', 'embed-2']
  model.otherwise(answerTo)
  const provider = { type: 'openai-compatible', url: model.url, key: 'sk-of-the-story' }
  const prices = { 'large-4': { input: 3, output: 15 }, 'small-4': { input: 0.3, output: 1.5 } }
  await call('PUT', '/config/instances/main', { ...provider, prices })
  await call('POST', '/config/instances/main/probe', { model: 'large-4' })
  await call('PUT', '/config/engine', { routing: { main: { instance: 'main', model: 'large-4' } } })
  await call('PUT', '/config/limits', { usd_per_day: 25, tokens_per_day: 5_000_000 })
  await call('PUT', '/config/webhooks/on-call', {
    url: 'https://hooks.example.com/agents',
    events: ['permission.requested', 'run.ended'],
    secret: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  })
  const say = async (session: string, prompt: string, isAllowed?: boolean) => {
    await call('POST', '/sessions', { session_id: session })
    const run = await stream(`/sessions/${session}/messages`, { prompt })
    if (isAllowed === undefined) return { run, askId: '' }
    const askId = String((await run.until('permission_request')).data['id'])
    if (isAllowed) await call('POST', `/sessions/${session}/permissions/${askId}`, { allow: true })
    return { run, askId }
  }
  for (const [session, prompt, isAllowed] of [
    ['churn', 'Why did churn rise in March?'],
    ['refused', 'What has the provider refused today?'],
    ['release', 'Write the release notes of 2.4, as a file', true],
  ] as const)
    await (await say(session, prompt, isAllowed)).run.all()
  const planId = await tellWork({ call, stream })
  const { askId } = await say('prices', 'Put the new price list into a file', false)
  return { ...(await runsOf(call)), planId, askId }
}

async function runsOf(call: Product['call']): Promise<{ runId: string; failedId: string }> {
  const newest = async (query: string) => {
    const { runs } = (await call('GET', `/runs?${query}`)).body as { runs: { run_id: string; title?: string }[] }
    return (runs.find(({ title = '' }) => title.includes('release')) ?? runs[0])?.run_id ?? ''
  }
  return { runId: await newest('kind=message&status=done'), failedId: await newest('status=failed') }
}

/** A flow with runs and a draft, a plan that has ended, and a schedule. */
async function tellWork({ call, stream }: Pick<Product, 'call' | 'stream'>): Promise<string> {
  const { definition } = EXAMPLES.find(({ id }) => id === 'triage') ?? { definition: {} }
  const draft = { ...definition, model: 'demo' }
  await call('PUT', '/config/instances/demo', { type: 'demo' })
  await call('PUT', '/flows/triage', draft)
  await call('POST', '/flows/triage/publish')
  for (const message of ['The export has been broken since this morning.', 'Can we pay by invoice?'])
    await call('POST', '/flows/triage/run', { input: { message }, provider_instance: 'demo', model: 'demo' })
  const items = Array.from({ length: 40 }, (_, n) => ({ input: { message: n % 20 === 7 ? n : `Message ${n}` } }))
  const batch = await call('POST', '/flows/triage/batch', { items, provider_instance: 'demo' })
  const { batch_id } = batch.body as { batch_id: string }
  const ended = async () => ((await call('GET', `/batches/${batch_id}`)).body as { ended_at: string | null }).ended_at
  await until(ended, { what: 'the batch to end' })
  await call('PUT', '/flows/triage?keep_published=true', {
    ...draft,
    system_prompt_template: 'Choose the team, then the urgency.',
  })
  const step = (id: string, title: string, ...depends_on: string[]) => ({ id, title, prompt: title, depends_on })
  const steps = [
    step('ledger', 'Read the ledger'),
    step('bank', 'Read the statements of the bank'),
    step('compare', 'Compare them', 'ledger', 'bank'),
    step('report', 'Write the report', 'compare'),
  ]
  const plan = { title: 'Close the month', steps }
  const { id } = (await call('POST', '/plans/submit', plan)).body as { id: string }
  await (await stream(`/plans/${id}/events`)).all()
  await call('PUT', '/plans/schedules/close-the-month', { cron: '0 6 1 * *', timezone: 'Europe/Berlin', plan })
  return id
}

const DAY_MS = 86_400_000

/** The usage of the days before. */
export async function fillMonth(dataDir: string): Promise<void> {
  const config = loadConfig({ DATA_DIR: dataDir }, 'standalone')
  const { usage, close } = await openStandaloneStore(groupSettings(config).store)
  for (let day = 1; day <= 30; day++) {
    const start = `${new Date(Date.now() - day * DAY_MS).toISOString().slice(0, 10)}T00:00:00.000Z`
    const sums = (share: number) => {
      const runs = Math.round((140 + 60 * Math.sin(day)) * share)
      const tokens = { input_tokens: runs * 9_000, cache_read_tokens: runs * 5_000, cache_write_tokens: 0 }
      const durations = new Map([[durationClass(4_000 + 500 * (day % 5)), runs]])
      return {
        runs,
        failed: day % 6,
        invalid: 0,
        ...tokens,
        output_tokens: runs * 700,
        cost_usd: runs * 0.06,
        durations,
      }
    }
    const shares = { model: { 'large-4': 0.3, 'small-4': 0.7 }, kind: { message: 0.6, flow: 0.4 } }
    for (const by of ['model', 'kind'] as const) {
      const rows = new Map(Object.entries(shares[by]).map(([key, share]) => [key, sums(share)]))
      await usage.add(DEFAULT_TENANT, { by, bucket: 'day', start, rows, process: 'story', number: day })
    }
  }
  await close()
}
