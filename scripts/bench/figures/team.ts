import type { Bench } from '../bench.ts'
import type { Figure, Measured } from '../figure.ts'
import type { Running } from '../processes.ts'
import { median } from '../statistics.ts'

const AGENTS = 8
const AGENT_MS = 1_000
const WARM_UP_MS = 10

/** Time from a call of Team with eight agents, whose models take a second each, to its result. */
export const team: Figure = {
  name: 'team',
  title: `a Team of ${AGENTS} to one agent's time`,
  goal: { atMost: 1.25 },
  unit: 'x',
  measure,
}

async function measure(bench: Bench): Promise<Measured> {
  const ours = await bench.ours()
  await toolMs(ours, teamOf(WARM_UP_MS), bench.signal)
  const times = { team: [] as number[], agent: [] as number[] }
  for (let round = 0; round < bench.pick(5, 3); round += 1) {
    times.agent.push(await toolMs(ours, agentOf(AGENT_MS), bench.signal))
    times.team.push(await toolMs(ours, teamOf(AGENT_MS), bench.signal))
  }
  const shown = (ms: number) => `${ms.toFixed(0)} ms`
  const detail = `Team ${shown(median(times.team))}, ${shown(Math.max(...times.team))} at most; Agent ${shown(median(times.agent))}`
  return { value: median(times.team) / AGENT_MS, detail }
}

const taskOf = (ms: number, n: number) => ({ description: `task ${n}`, prompt: `/wait ${ms}\n/say done ${n}` })
const agentOf = (ms: number): string => `/tool Agent ${JSON.stringify(taskOf(ms, 0))}`
const teamOf = (ms: number): string =>
  `/tool Team ${JSON.stringify({ agents: Array.from({ length: AGENTS }, (_, n) => taskOf(ms, n)) })}`

/** Time from the `tool_use` event of a prompt with one tool call to its `tool_result`. Throws when the tool failed. */
async function toolMs({ port, dialect }: Running, prompt: string, signal: AbortSignal): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}${dialect.runPath}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: dialect.body(prompt),
    signal,
  })
  const seenAt = new Map<string, number>()
  let text = ''
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString('latin1')
    for (const event of ['tool_use', 'tool_result'])
      if (!seenAt.has(event) && text.includes(`\nevent: ${event}\n`)) seenAt.set(event, performance.now())
  }
  const [from, to] = [seenAt.get('tool_use'), seenAt.get('tool_result')]
  if (from !== undefined && to !== undefined && text.includes('"is_error":false')) return to - from
  throw new Error(`the tool returned no result: ${text.slice(-200)}`)
}
