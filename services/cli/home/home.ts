import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentEngine, TenantEventName } from '../../../shared/client/client.ts'
import type { Cli } from '../cli.ts'
import { EXIT, explain } from '../exit-codes.ts'
import { askLine } from '../follow/ask-line.ts'
import { FullScreen } from './full-screen.ts'
import { chosenOf, homeLines, type Item, itemsOf, type Known } from './home-view.ts'

/** The state of the screen, with the id and the index of the chosen line. */
type State = { known: Known; notice: string; id: string | undefined; at: number }

/** A command that the person has chosen, or the exit code of the end. */
type Next = { command: readonly string[] } | { code: number }

const TICK_MS = 1_000

/**
 * Shows waiting requests, running work and ended work on the whole terminal, until `q` or Ctrl-C. Opening a line runs the command that a
 * user would type for it, and this command has the terminal until it ends.
 */
export async function openHome(cli: Cli, run: (args: readonly string[]) => Promise<number>): Promise<void> {
  const [client, { url }] = [await cli.engine(), await cli.target()]
  const state: State = { known: { requests: [], runs: [], plans: [] }, notice: '', id: undefined, at: 0 }
  const leaving = new AbortController()
  let draw = () => {}
  void follow(client, { state, url, signal: leaving.signal, onChange: () => draw() })
  try {
    for (;;) {
      const next = await choose(cli, { state, client, url, setDraw: (drawn) => (draw = drawn) })
      if ('code' in next) return cli.exitWith(next.code)
      const code = await run(next.command)
      const [name] = next.command
      const isRead = name === 'chat' || (name === 'approvals' && code === EXIT.ok)
      if (!isRead) await askLine(cli.io, { question: cli.output.style.dim('Enter goes back ') })
    }
  } finally {
    leaving.abort()
  }
}

type Choice = { state: State; client: AgentEngine; url: string; setDraw(draw: () => void): void }

/** Shows the screen until a key ends it. */
async function choose({ io, output }: Cli, { state, client, url, setDraw }: Choice): Promise<Next> {
  const { promise, resolve } = Promise.withResolvers<Next>()
  const clock = () => ({ now: Date.now(), localTime: (time: string) => client.localTime(time) })
  const frame = () => ({ columns: io.stdout.columns, rows: io.stdout.rows, style: output.style })
  const read = () => {
    const items = itemsOf(state.known, clock())
    return { items, chosen: chosenOf(items, state) }
  }
  const draw = () => screen.draw(homeLines({ ...read(), where: url, notice: state.notice }, frame()))
  const move = (by: number) => {
    const { items, chosen } = read()
    state.at = Math.max(0, Math.min(chosen + by, items.length - 1))
    state.id = items[state.at]?.id
    draw()
  }
  const onKey = (key: string) => {
    const { items, chosen } = read()
    const next = nextOf(key, items[chosen])
    if (next) resolve(next)
    else move({ '\u001b[A': -1, k: -1, '\u001b[B': 1, j: 1, '\u001b[5~': -10, '\u001b[6~': 10 }[key] ?? 0)
  }
  const screen = new FullScreen(io, { onKey, onResize: draw, onEnd: (code) => resolve({ code }) })
  setDraw(draw)
  const ticker = setInterval(draw, TICK_MS)
  try {
    draw()
    return await promise
  } finally {
    clearInterval(ticker)
    setDraw(() => {})
    screen.close()
  }
}

function nextOf(key: string, item: Item | undefined): Next | undefined {
  if (key === 'q') return { code: EXIT.ok }
  if (key === 'c') return { command: item?.chat === undefined ? ['chat'] : ['chat', '--', item.chat] }
  return key === '\r' && item ? { command: item.enter } : undefined
}

const EVENTS: readonly TenantEventName[] = [
  ...(['permission.requested', 'permission.resolved', 'run.started', 'run.waiting', 'run.ended'] as const),
  ...(['plan.queued', 'plan.step', 'plan.ended'] as const),
]
/** The pause keeps the number of requests on a busy server well below the limit per minute. */
const PAUSE_MS = 4_000
const IDLE_MS = 30_000
const MOST_RUNS = 50

type Following = { state: State; url: string; signal: AbortSignal; onChange: () => void }

/** Reads the lists, and reads them again after each event, until the signal is aborted. If the server does not answer, it is asked again. */
async function follow(client: AgentEngine, { state, url, signal, onChange }: Following): Promise<void> {
  while (!signal.aborted) {
    const attempt = new AbortController()
    try {
      await readOn(client, AbortSignal.any([signal, attempt.signal]), (known) => {
        Object.assign(state, { known, notice: '' })
        onChange()
      })
    } catch (cause) {
      if (!signal.aborted) state.notice = explain(cause, url).message
      onChange()
    } finally {
      attempt.abort()
    }
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined)
  }
}

/** Never ends but by an error, or when the signal is aborted. */
async function readOn(client: AgentEngine, signal: AbortSignal, show: (known: Known) => void): Promise<never> {
  let news = Promise.withResolvers<void>()
  const listening = (async () => {
    for await (const _ of client.events({ types: EVENTS, signal })) news.resolve()
  })()
  listening.catch(() => undefined) // It is waited for below.
  for (;;) {
    news = Promise.withResolvers()
    show(await readKnown(client, signal))
    await sleep(PAUSE_MS, undefined, { signal })
    await Promise.race([news.promise, listening, sleep(IDLE_MS, undefined, { signal, ref: false })])
  }
}

async function readKnown({ permissions, runs, plans }: AgentEngine, signal: AbortSignal): Promise<Known> {
  const [requests, listed, planned] = await Promise.all([
    permissions.list({ signal }).all(MOST_RUNS),
    runs.list({ limit: MOST_RUNS }, { signal }).all(MOST_RUNS),
    plans.list({ limit: MOST_RUNS }, { signal }).all(MOST_RUNS),
  ])
  return { requests, runs: listed, plans: planned }
}
