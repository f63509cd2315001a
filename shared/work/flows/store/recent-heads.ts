import { setTimeout as sleep } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { FlowHead } from './flow-head.ts'

type ReadHead = (tenant: TenantId, name: string) => Promise<FlowHead | undefined>

const MAX_HEADS = 1_000

/**
 * The heads that this process has read in the last `knownMs`, so that not every run reads its flow. Another process may change a head
 * meanwhile, and sends no message about it: each change is acknowledged `knownMs` after it was stored (`forgotten`), when no process knows an earlier head
 * any more. So an acknowledged change is effective in every process, without any message.
 */
export class RecentHeads {
  readonly #knownMs: number
  readonly #read: ReadHead
  readonly #heads = new LRUCache<string, { head: FlowHead; until: number }>({ max: MAX_HEADS })

  constructor(knownMs: number, read: ReadHead) {
    this.#knownMs = knownMs
    this.#read = read
  }

  async get(tenant: TenantId, name: string): Promise<FlowHead | undefined> {
    const key = `${tenant} ${name}`
    const readAt = performance.now()
    const known = this.#heads.get(key)
    if (known && readAt < known.until) return known.head
    const head = await this.#read(tenant, name)
    if (head && this.#knownMs > 0) this.#heads.set(key, { head, until: readAt + this.#knownMs })
    return head
  }

  /** Resolves when no process uses a head from before this call. A timer may be early by a millisecond. */
  async forgotten(): Promise<void> {
    const until = performance.now() + this.#knownMs
    for (let left = this.#knownMs; left > 0; left = until - performance.now()) await sleep(left)
  }
}
