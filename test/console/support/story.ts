import type { ConsoleUnderTest } from './console.ts'

/** Texts that would do something where a page took them for more than text, or that hide something. */
export const HOSTILE = [
  '<img src=x onerror=alert(1)>\u202e\u200b\u00ad',
  '<script>alert(2)</script>',
  '[a](javascript:alert(3))',
  '![b](https://attacker.example/pixel.png)',
  '<a href="javascript:alert(4)">c</a>',
  '"><svg onload=alert(5)>\u2066\u061c',
  '{{constructor.constructor("alert(6)")()}}',
  '<iframe srcdoc="<script>alert(7)</script>"></iframe>',
] as const

/** The pages, each with something to wait for once there is something to show. */
export const PAGES: readonly (readonly [path: string, shown: string])[] = [
  ['/', '.columns .home-row'],
  ['/chat', '.sessions li'],
  ['/chat/story', '.exchange .tool'],
  ['/approvals', '.asks li'],
  ['/approvals?tab=decided', 'table'],
  ['/approvals?tab=remembered', 'table'],
  ['/flows', 'table'],
  ['/flows/greet/edit', '[aria-label="Rendered prompts"] pre'],
  ['/flows/greet/run', '[aria-label="Input"] .field'],
  ['/flows/greet/batches', '.empty'],
  ['/flows/greet/evaluate', '.page-head'],
  ['/flows/greet/history', '[aria-label="Changes"]'],
  ['/flows/greet/memory', '.memory'],
  ['/plans', 'table'],
  ['/plans/new', '.new-plan .badge'],
  ['/plans?tab=schedules', 'table'],
  ['/activity', 'table'],
  ['/usage', '.chart .bar'],
  ['/settings', '.settings .card h2'],
  ['/settings?tab=routing', 'table'],
  ['/settings?tab=limits', '.form-grid'],
  ['/settings?tab=webhooks', '.settings .card h2'],
  ['/settings?tab=changes', '.settings li'],
]

/** Fills every page with something, and every text of it that a tenant or a model can choose with `HOSTILE`. */
export async function tellStory({ product }: ConsoleUnderTest): Promise<{ runId: string; planId: string }> {
  const { call, stream } = product
  const hostile = HOSTILE.join('\n\n')
  await call('PUT', '/config/instances/main', { type: 'demo' })
  await call('PUT', '/config/webhooks/hook', {
    url: 'http://127.0.0.1:9/%3Cscript%3E',
    events: ['plan.ended'],
    secret: `whsec_${Buffer.alloc(32).toString('base64')}`,
  })
  const schema = { type: 'object', properties: { name: { type: 'string' } } }
  const flow = { model: 'demo', user_prompt_template: HOSTILE[0], input_schema: schema, output_schema: schema }
  await call('PUT', '/flows/greet', flow)
  await call('POST', '/flows/greet/publish')
  await call('POST', '/flows/greet/memory', { content: 'Be brief.' })
  await call('POST', '/sessions', { session_id: 'story' })
  const say = HOSTILE.map((text) => `/say ${text}`).join('\n')
  const write = `/tool Write ${JSON.stringify({ path: 'notes/<b>.md', content: hostile })}`
  const first = await stream('/sessions/story/messages', {
    prompt: `/think ${HOSTILE[0]}\n${write}\n/tool Read {"path": "notes/<b>.md"}\n${say}`,
  })
  const { id } = (await first.until('permission_request')).data
  await call('POST', `/sessions/story/permissions/${String(id)}`, { allow: true, remember: 'session' })
  await first.all()
  const step = { id: HOSTILE[1], title: HOSTILE[0], prompt: say }
  const plan = await call('POST', '/plans/submit', {
    title: HOSTILE[5],
    steps: [step, { id: 'b', prompt: '/fail timeout', depends_on: [step.id] }],
  })
  const planId = (plan.body as { id: string }).id
  await (await stream(`/plans/${planId}/events`)).all()
  await call('PUT', '/plans/schedules/nightly', { cron: '0 3 * * *', plan: { title: HOSTILE[5], steps: [step] } })
  await call('POST', '/sessions', { session_id: 'waits' })
  const waiting = await stream('/sessions/waits/messages', { prompt: write })
  await waiting.until('permission_request')
  const { runs } = (await call('GET', '/runs?kind=message&status=done')).body as { runs: { run_id: string }[] }
  return { runId: runs[0]?.run_id ?? '', planId }
}
