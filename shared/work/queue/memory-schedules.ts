import type { TenantId } from '../../kernel/tenant.ts'
import type { JobQueue, Schedules, Timing } from './port.ts'
import { nextTick, scheduleId, tickId } from './schedule-times.ts'

type Deps = {
  queue: Pick<JobQueue, 'add'>
  /** Called when a tick could not be added to the queue. */
  onProblem(message: string, cause: unknown): void
}

type Armed = { tenant: TenantId; name: string; timing: Timing; timer: NodeJS.Timeout | undefined }

/** Node's longest timer is 24.8 days. */
const MAX_TIMER_MS = 2_000_000_000

/**
 * The schedules of the standalone form: timers of this process. A start restores them from the store. Ticks that pass while the process
 * is down are lost.
 */
export class MemorySchedules implements Schedules {
  readonly #deps: Deps
  readonly #armed = new Map<string, Armed>()

  constructor(deps: Deps) {
    this.#deps = deps
  }

  async put(tenant: TenantId, name: string, timing: Timing): Promise<void> {
    const id = scheduleId(tenant, name)
    const known = this.#armed.get(id)
    if (known && isSame(known.timing, timing)) return
    clearTimeout(known?.timer)
    const armed: Armed = { tenant, name, timing, timer: undefined }
    this.#armed.set(id, armed)
    this.#arm(armed, Date.now())
  }

  async remove(tenant: TenantId, name: string): Promise<void> {
    const id = scheduleId(tenant, name)
    clearTimeout(this.#armed.get(id)?.timer)
    this.#armed.delete(id)
  }

  async close(): Promise<void> {
    for (const { timer } of this.#armed.values()) clearTimeout(timer)
    this.#armed.clear()
  }

  /** Waits for the first tick after a time. */
  #arm(armed: Armed, after: number): void {
    const at = nextTick(armed.timing, after)
    if (at !== undefined) this.#wait(armed, at)
  }

  #wait(armed: Armed, at: number): void {
    const waitMs = at - Date.now()
    if (waitMs <= 0) {
      this.#fire(armed, at)
      this.#arm(armed, Math.max(at, Date.now()))
    } else {
      armed.timer = setTimeout(() => this.#wait(armed, at), Math.min(waitMs, MAX_TIMER_MS)).unref()
    }
  }

  #fire({ tenant, name }: Armed, at: number): void {
    const { queue, onProblem } = this.#deps
    queue
      .add({ kind: 'schedule', tenant, id: tickId(tenant, { name, at }) })
      .catch((cause: unknown) => onProblem('a scheduled plan could not be started', cause))
  }
}

const isSame = (one: Timing, other: Timing): boolean => JSON.stringify(one) === JSON.stringify(other)
