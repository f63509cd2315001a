import type { Schema } from '../../../shared/client/client.ts'
import { subjectOf } from '../follow/call-line.ts'
import { age, countdown, dollars, duration } from '../text/figures.ts'
import { plainLine } from '../text/plain.ts'
import type { Style } from '../text/style.ts'
import { cut, padEnd, padStart, shortId, widthOf } from '../text/width.ts'

/** The requests, runs and plans that the server has listed. */
export type Known = {
  requests: readonly Schema<'PendingPermission'>[]
  runs: readonly Schema<'Run'>[]
  plans: readonly Schema<'PlanSummary'>[]
}

const GROUPS = { request: 'NEEDS YOU', work: 'AT WORK', done: 'DONE' } as const

/** A line that can be chosen. `enter` is the command of its Enter key, and `chat` the session that its chat continues. */
export type Item = {
  group: keyof typeof GROUPS
  id: string
  text: string
  right: string
  enter: readonly string[]
  chat?: string | undefined
}

type Clock = { now: number; localTime(serverTime: string): Date }

const MOST_DONE = 20

/** The lines of the screen: first waiting requests, then running runs and plans, then ended ones. */
export function itemsOf({ requests, runs, plans }: Known, clock: Clock): Item[] {
  const busy = runs.filter(({ ended_at: end }) => end === null)
  const done = runs.filter(({ ended_at: end }) => end !== null)
  return [
    ...requests.map((each) => requestItem(each, clock)),
    ...busy.map((run) => runItem('work', run, clock)),
    ...plans.filter(({ status }) => status === 'running' || status === 'queued').map(planItem),
    ...done.slice(0, MOST_DONE).map((run) => runItem('done', run, clock)),
  ]
}

const requestItem = (request: Schema<'PendingPermission'>, { now, localTime }: Clock): Item => ({
  group: 'request',
  id: request.id,
  text: `${plainLine(request.tool_name)} ${subjectOf(request.input)}`,
  right: `denied in ${countdown(localTime(request.expires_at).getTime() - now)}`,
  enter: ['approvals', 'watch', request.id],
  chat: request.session_id === request.run_id ? undefined : request.session_id,
})

function runItem(group: Item['group'], run: Schema<'Run'>, { now }: Clock): Item {
  const took = duration((run.ended_at === null ? now : Date.parse(run.ended_at)) - Date.parse(run.started_at))
  const state = run.status === 'failed' ? (run.code ?? run.status) : run.status
  const figures =
    group === 'work' ? [state, took] : [state, dollars(run.cost_usd ?? 0), `${age(run.ended_at, now)} ago`]
  return {
    group,
    id: run.run_id,
    text: plainLine(run.title ?? run.flow ?? run.step_id ?? shortId(run.run_id)),
    right: plainLine(figures.join(' ')),
    enter: [group === 'work' ? 'attach' : 'why', run.run_id],
    chat: run.session_id ?? undefined,
  }
}

function planItem({
  id,
  title,
  status,
  step_counts: { done, failed, skipped, pending, running },
}: Schema<'PlanSummary'>): Item {
  const total = done + failed + skipped + pending + running
  const text = plainLine(title ?? shortId(id))
  return { group: 'work', id, text, right: `plan ${status} ${done}/${total}`, enter: ['attach', id] }
}

/** The line that is selected: the same line, or the line now in its place if it is gone. */
export function chosenOf(items: readonly Item[], { id, at }: { id: string | undefined; at: number }): number {
  const found = items.findIndex((item) => item.id === id)
  return found >= 0 ? found : Math.max(0, Math.min(at, items.length - 1))
}

export type Frame = { columns: number; rows: number; style: Style }
export type HomeView = { where: string; items: readonly Item[]; chosen: number; notice: string }

const KEYS = 'up down  choose    enter  open    c  chat    q  quit'
const NOTHING = { request: 'nothing waits for you', work: 'nothing is at work: c begins a chat', done: 'nothing yet' }

/** The whole screen: at most as many lines as the screen has rows, and no line is wider than the screen. */
export function homeLines({ where, items, chosen, notice }: HomeView, { columns, rows, style }: Frame): string[] {
  const width = Math.max(1, columns - 1)
  const body: { line: string; isChosen: boolean }[] = []
  for (const group of Object.keys(GROUPS) as Item['group'][]) {
    const own = items.filter((item) => item.group === group)
    const count = own.length > 0 ? ` (${own.length})` : ''
    body.push(
      { line: '', isChosen: false },
      { line: style.dim(cut(` ${GROUPS[group]}${count}`, width)), isChosen: false },
    )
    if (own.length === 0) body.push({ line: style.dim(cut(`   ${NOTHING[group]}`, width)), isChosen: false })
    for (const item of own) {
      const isChosen = items[chosen] === item
      body.push({ line: itemLine(item, isChosen, { columns: width, rows, style }), isChosen })
    }
  }
  const space = Math.max(1, rows - 3)
  const at = body.findIndex(({ isChosen }) => isChosen)
  const from = Math.max(0, Math.min(at - Math.floor(space / 2), body.length - space))
  const shown = body.slice(from, from + space).map(({ line }) => line)
  const foot = notice === '' ? style.dim(cut(` ${KEYS}`, width)) : style.red(cut(` ${plainLine(notice)}`, width))
  const head = style.bold(cut(` agent-engine${style.symbols.sep}${plainLine(where)}`, width))
  return [head, ...shown, ...Array<string>(Math.max(0, space - shown.length)).fill(''), '', foot].slice(-rows)
}

function itemLine({ text, right }: Item, isChosen: boolean, { columns, style }: Frame): string {
  const mark = isChosen ? ` ${style.symbols.prompt} ` : '   '
  const figures = cut(right, Math.floor(columns / 2))
  const left = cut(mark + text, Math.max(0, columns - widthOf(figures) - 2))
  const line = cut(padEnd(left, columns - widthOf(figures)) + padStart(figures, widthOf(figures)), columns)
  return isChosen ? style.bold(line) : line
}
