import type { PlanHandle, PlanProgress, PlanProgressStep, Schema } from '../../../shared/client/client.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import type { Output } from '../output.ts'
import { dollars, duration, timeLeft, tokens } from '../text/figures.ts'
import { LiveRegion } from '../text/live-region.ts'
import { plain, plainJson, plainLine } from '../text/plain.ts'
import { cut, padEnd, widthOf } from '../text/width.ts'

const WIDEST = 100
const WIDEST_NAME = 40

/**
 * Shows a plan until it ends: one line for each step. On a terminal the lines are updated in place, otherwise each is
 * printed when its step ends. After Ctrl-C the plan continues.
 */
export async function followPlan(
  plan: PlanHandle,
  { io, output, isJson }: { io: Io; output: Output; isJson: boolean },
): Promise<ExitCode> {
  const leaving = new AbortController()
  const release = io.onInterrupt(() => leaving.abort())
  const screen = new PlanScreen(output, isJson)
  try {
    let last: PlanProgress | undefined
    for await (last of plan.progress({ signal: leaving.signal })) screen.show(last)
    const status = last?.status
    return status === 'done' ? EXIT.ok : status === 'cancelled' ? EXIT.cancelled : EXIT.failed
  } catch (cause) {
    if (!leaving.signal.aborted) throw cause
    screen.leave()
    output.err(`the plan goes on: ae attach ${plan.id}\n`)
    return EXIT.cancelled
  } finally {
    screen.close()
    release()
  }
}

class PlanScreen {
  readonly #output: Output
  readonly #isJson: boolean
  readonly #live: LiveRegion
  readonly #startedAt = new Map<string, number>()
  readonly #tookMs = new Map<string, number>()
  readonly #printed = new Set<string>()
  #last: PlanProgress | undefined
  readonly #ticker: NodeJS.Timeout

  constructor(output: Output, isJson: boolean) {
    this.#output = output
    this.#isJson = isJson
    this.#live = new LiveRegion((text) => output.err(text))
    this.#ticker = setInterval(() => this.#draw(), 1_000).unref()
  }

  show(progress: PlanProgress): void {
    this.#last = progress
    for (const step of progress.steps) this.#measure(step, progress.plan)
    if (this.#isJson) return this.#json(progress)
    if (!this.#output.isLive) this.#append(progress)
    else this.#draw()
    if (isOver(progress)) this.#end(progress)
  }

  leave(): void {
    this.#live.update([])
  }

  close(): void {
    clearInterval(this.#ticker)
  }

  /** The plan's own times are used; while a step runs, only this machine's clock is available. */
  #measure({ id, status }: PlanProgressStep, plan: Schema<'Plan'>): void {
    const { started_at: start, ended_at: end } = plan.step_runs[id] ?? {}
    if (status === 'running' && !this.#startedAt.has(id))
      this.#startedAt.set(id, start ? Date.parse(start) : Date.now())
    const began = this.#startedAt.get(id)
    if (start && end) this.#tookMs.set(id, Date.parse(end) - Date.parse(start))
    else if (status !== 'running' && began !== undefined && !this.#tookMs.has(id))
      this.#tookMs.set(id, Date.now() - began)
  }

  #json({ done, total, status, steps, plan }: PlanProgress): void {
    this.#output.out(
      `${plainJson(isOver({ status }) ? { event: 'result', plan } : { event: 'progress', done, total, status, steps })}\n`,
    )
  }

  /** Each step once, when it needs nothing more. */
  #append({ steps, total, plan }: PlanProgress): void {
    for (const step of steps) {
      if (step.status === 'pending' || step.status === 'running' || this.#printed.has(step.id)) continue
      this.#printed.add(step.id)
      this.#output.err(`[${this.#printed.size}/${total}] ${this.#stepText(step, plan)}\n`)
    }
  }

  #draw(): void {
    if (!this.#last || !this.#output.isLive || this.#isJson || isOver(this.#last)) return
    this.#live.update(this.#lines(this.#last).slice(0, Math.max(2, this.#output.rows() - 2)))
  }

  #end(progress: PlanProgress): void {
    if (this.#output.isLive) {
      this.#live.update(
        [],
        this.#lines(progress)
          .map((line) => `${line}\n`)
          .join(''),
      )
    }
    const { style } = this.#output
    const { plan, status } = progress
    const symbol = status === 'done' ? style.green(style.symbols.ok) : style.red(style.symbols.bad)
    const { usage } = plan
    const took =
      plan.started_at && plan.ended_at ? [duration(Date.parse(plan.ended_at) - Date.parse(plan.started_at))] : []
    const parts = [
      status,
      `${tokens(usage.input_tokens)} in`,
      `${tokens(usage.output_tokens)} out`,
      dollars(usage.cost_usd),
      ...took,
    ]
    this.#output.err(`${symbol} ${parts.join(style.symbols.sep)}\n`)
    if (status !== 'done')
      this.#output.err(`  ${plan.error === undefined ? '' : `${plainLine(plan.error)}\n  `}ae why ${plan.id}\n`)
    for (const [id, text] of Object.entries(plan.step_outputs ?? {}))
      if (isLeaf(id, plan)) this.#output.out(`${plain(text).trimEnd()}\n`)
  }

  #lines({ done, total, steps, plan }: PlanProgress): string[] {
    const { style } = this.#output
    const title = plainLine(plan.title ?? plan.id)
    const elapsedMs = plan.started_at && !plan.ended_at ? Date.now() - Date.parse(plan.started_at) : 0
    const counts = [`[${done}/${total}]`, timeLeft({ done, total, elapsedMs })].filter(Boolean).join(style.symbols.sep)
    return [
      `${style.cyan(style.symbols.dot)} ${cut(title, this.#width() - 3 - counts.length, style.symbols.cut)} ${counts}`,
      ...steps.map((step) => `  ${this.#stepText(step, plan)}`),
    ]
  }

  #stepText({ id, title, status, error }: PlanProgressStep, plan: Schema<'Plan'>): string {
    const { style } = this.#output
    const symbols = {
      pending: style.dim(style.symbols.sep.trim()),
      running: style.cyan(style.symbols.busy),
      done: style.green(style.symbols.ok),
      failed: style.red(style.symbols.bad),
      skipped: style.yellow('-'),
    }
    const began = this.#startedAt.get(id)
    const tookMs =
      status === 'running' && began !== undefined
        ? Math.floor((Date.now() - began) / 1_000) * 1_000
        : this.#tookMs.get(id)
    const cost = plan.step_runs[id]?.cost_usd
    const figures = [...(tookMs === undefined ? [] : [duration(tookMs)]), ...(cost ? [dollars(cost)] : [])].join(' ')
    const why = status === 'failed' && error !== undefined ? ` ${plainLine(error)}` : ''
    const nameColumns = Math.min(WIDEST_NAME, Math.max(...plan.steps.map((step) => widthOf(nameOf(step)))))
    const name = padEnd(cut(nameOf({ id, title }), nameColumns, style.symbols.cut), nameColumns)
    const text = cut(`${name}  ${figures}${why}`, this.#width() - 8, style.symbols.cut)
    return `${symbols[status]} ${text.trimEnd()}`
  }

  #width(): number {
    return Math.min(this.#output.columns() - 1, WIDEST)
  }
}

const nameOf = ({ id, title }: { id: string; title?: string | undefined }): string =>
  plainLine(title === undefined ? id : `${id} ${title}`)

const isOver = ({ status }: Pick<PlanProgress, 'status'>): boolean => status !== 'queued' && status !== 'running'

/** A step on which no other step depends: its output is the result of the plan. */
const isLeaf = (id: string, { steps }: Schema<'Plan'>): boolean =>
  !steps.some(({ depends_on: needed = [] }) => needed.includes(id))
