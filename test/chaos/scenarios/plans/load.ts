import { setTimeout as sleep } from 'node:timers/promises'
import type { Plan } from '../../../../shared/kernel/plan-step.ts'
import type { PlanView } from '../../../../shared/work/plans/view.ts'
import type { Random } from '../../../harness/seed.ts'
import { ask } from '../../ask.ts'
import { randomPlan } from './form.ts'

/** A submitted plan, as it was seen last. */
export type SeenPlan = {
  name: string
  plan: Plan
  /** `undefined`: no submit was answered. */
  view: PlanView | undefined
  /** Times of this process, whose clock no fault shifts: the first submit, and the look that saw the end. */
  from: number
  to?: number
  /** Changes of a state that must not happen. */
  problems: string[]
}

type Headers = Readonly<Record<string, string>>
type LoadOptions = { name: string; random: Random; headers?: Headers }

const LOOK_EVERY_MS = 200
/** Longer than plans may take after a fault. */
const GIVEN_UP_MS = 60_000

/** Clients that submit one plan after the other, each with a key, and read it until it has ended. */
export class PlanLoad {
  readonly plans: SeenPlan[] = []
  /** Answers to submits that are neither 202 nor those of a process that is down. */
  readonly refusals: string[] = []
  readonly #urlOf: (random: Random) => string
  readonly #name: string
  readonly #random: Random
  readonly #headers: Headers

  /** `urlOf` chooses the gateway of each request. */
  constructor(urlOf: (random: Random) => string, { name, random, headers = {} }: LoadOptions) {
    this.#urlOf = urlOf
    this.#name = name
    this.#random = random
    this.#headers = headers
  }

  /** Resolves when every client's last plan has ended, or after a minute more. */
  async run(clients: number, signal: AbortSignal): Promise<void> {
    const client = async (random: Random) => {
      while (!signal.aborted) await this.#one(random)
    }
    await Promise.all(Array.from({ length: clients }, (_, n) => client(this.#random.fork(`client ${n}`))))
  }

  async #one(random: Random): Promise<void> {
    const name = `${this.#name}-${this.plans.length}`
    const seen: SeenPlan = { name, plan: randomPlan(name, random), view: undefined, from: Date.now(), problems: [] }
    this.plans.push(seen)
    for (const deadline = Date.now() + GIVEN_UP_MS; Date.now() < deadline; await sleep(LOOK_EVERY_MS)) {
      const view = await (seen.view ? this.#read(seen.view.id, random) : this.#submit(seen, random))
      if (!view) continue
      seen.problems.push(...changesBetween(seen, view))
      seen.view = view
      if (view.ended_at === null) continue
      seen.to = Date.now()
      return
    }
  }

  async #submit({ name, plan }: SeenPlan, random: Random): Promise<PlanView | undefined> {
    const headers = { ...this.#headers, 'idempotency-key': name }
    const { status, body } = await ask(this.#urlOf(random), { path: '/plans/submit', body: plan, headers })
    if (status === 202) return body as PlanView
    if (status !== 0) this.refusals.push(`${name}: ${status} ${JSON.stringify(body)}`)
    return undefined
  }

  async #read(id: string, random: Random): Promise<PlanView | undefined> {
    const { status, body } = await ask(this.#urlOf(random), { path: `/plans/${id}`, headers: this.#headers })
    return status === 200 ? (body as PlanView) : undefined
  }
}

const FINAL = new Set(['done', 'failed', 'skipped'])

/** The changes since the last look that must not be: a step's end is final. One that was cut off may begin again (D7.3, D34). */
export function changesBetween({ view, plan, name }: SeenPlan, next: PlanView): string[] {
  if (!view) return []
  const found = view.id === next.id ? [] : [`${name}: ${view.id} became ${next.id}`]
  return plan.steps.reduce((all, { id }) => {
    const [from = 'pending', to = 'pending'] = [view.step_statuses[id], next.step_statuses[id]]
    return FINAL.has(from) && to !== from ? [...all, `${name} ${id}: ${from} became ${to}`] : all
  }, found)
}
