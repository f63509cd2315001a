import { isDeepStrictEqual } from 'node:util'
import type { LRUCache } from 'lru-cache'
import { createCache } from '../../kernel/cache.ts'
import { newId } from '../../kernel/ids.ts'
import type { Log } from '../../kernel/log.ts'
import type { TenantId } from '../../kernel/tenant.ts'
import { isoTime } from '../../kernel/time.ts'
import { currentLink } from '../../kernel/trace.ts'
import type { EventSink } from '../events/port.ts'
import type { Change } from './changes.ts'
import { type TenantConfig, toConfig } from './config.ts'
import { type AuditedChange, type ChangedPart, changedParts } from './config-changes.ts'
import type { TenantConfigStore } from './store/tenant-configs.ts'

/** Tells the other processes at once that a tenant's configuration changed. The poll finds the changes whose notification is lost. */
export type ConfigNotice = {
  send(tenant: TenantId): void
  /** Returns a function that ends the subscription. */
  listen(onNotice: (tenant: TenantId) => void): Promise<() => Promise<void>>
}

/**
 * The tenants' configurations in this process: read once, kept, and read again after a change anywhere. A change is
 * effective in every process within 2 s (D8.5).
 */
export interface LiveConfigs {
  /**
   * A kept configuration is the same object until it changes, and is kept while the store is away. Throws `unavailable` when it must be
   * read and the store does not answer.
   */
  get(tenant: TenantId): Promise<TenantConfig>
  /** Reads the store: the configuration with every change that any process has acknowledged. Throws `unavailable`. */
  stored(tenant: TenantId): Promise<TenantConfig>
  /** The kept configuration, if there is one. */
  peek(tenant: TenantId): TenantConfig | undefined
  /** Stores a change and makes it known. Throws what `change` throws. */
  update(tenant: TenantId, change: Change): Promise<TenantConfig>
  /** Calls `listener` when a kept configuration has changed and will be read again. Returns the function that ends it. */
  onChange(listener: (tenant: TenantId) => void): () => void
  close(): Promise<void>
}

export type LiveConfigOptions = {
  store: TenantConfigStore
  notice: ConfigNotice
  events: EventSink
  log: Log
  pollMs?: number
  checkMs?: number
  maxTenants?: number
}

/** `checkAt` is the time on the clock of `performance.now()` from which on the next use reads the configuration again. */
type Kept = { config: TenantConfig; checkAt: number }

const POLL_MS = 1_000
const MAX_TENANTS = 10_000
/** If a process dies between storing a change and announcing it, the others find the change after this time. */
const CHECK_MS = 60_000
/** More changes than this between two polls: everything is read again. */
const POLL_PAGE = 200

export async function openLiveConfigs(options: LiveConfigOptions): Promise<LiveConfigs> {
  const configs = new PolledConfigs(options)
  await configs.start()
  return configs
}

/**
 * A configuration is read at its first use. It is dropped when the notice names its tenant, when the list of changes does, or when
 * that list cannot be followed; its next use reads it again. A configuration that is used is checked once a minute. It is used until the
 * answer of the store has come, so that runs continue while the store is away.
 */
class PolledConfigs implements LiveConfigs {
  readonly #options: LiveConfigOptions
  readonly #kept: LRUCache<TenantId, Kept>
  readonly #reading = new Map<TenantId, Promise<TenantConfig>>()
  readonly #listeners = new Set<(tenant: TenantId) => void>()
  #lastSeq: number | undefined
  #timer: NodeJS.Timeout | undefined
  #isPolling = false
  #stopListening = async () => {}

  constructor(options: LiveConfigOptions) {
    this.#options = options
    this.#kept = createCache(options.maxTenants ?? MAX_TENANTS)
  }

  async start(): Promise<void> {
    this.#stopListening = await this.#options.notice.listen((tenant) => this.#drop(tenant))
    await this.#poll()
    this.#timer = setInterval(() => void this.#poll(), this.#options.pollMs ?? POLL_MS).unref()
  }

  peek(tenant: TenantId): TenantConfig | undefined {
    const kept = this.#kept.get(tenant)
    if (kept && performance.now() >= kept.checkAt) this.#check(tenant, kept)
    return kept?.config
  }

  async get(tenant: TenantId): Promise<TenantConfig> {
    return this.peek(tenant) ?? this.#reading.get(tenant) ?? this.#read(tenant)
  }

  async stored(tenant: TenantId): Promise<TenantConfig> {
    return toConfig(await this.#options.store.read(tenant))
  }

  async update(tenant: TenantId, change: Change): Promise<TenantConfig> {
    const { store, notice, events, log } = this.#options
    const id = newId('chg')
    let at = ''
    const subject = currentLink()?.subject ?? NOBODY
    let changes: ChangedPart[] = []
    const doc = await store.update(tenant, (before) => {
      const [old, next] = [toConfig(before), change(toConfig(before))]
      changes = changedParts(old, next)
      at = timeAfter(before?.['last_change'] as AuditedChange | undefined)
      return { ...next, ...(changes.length > 0 && { last_change: { id, at, subject, changes } }) }
    })
    this.#drop(tenant)
    notice.send(tenant)
    const changed = changes.map(({ part, name }) => ({ part, name }))
    events.append(tenant, { type: 'config.changed', at, data: { subject, changed } })
    log.info('configuration changed', { tenant, changed })
    return toConfig(doc)
  }

  onChange(listener: (tenant: TenantId) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#stopListening()
  }

  /** The result of a read that was running when the tenant's configuration changed is returned to its callers, but not kept. */
  #read(tenant: TenantId): Promise<TenantConfig> {
    const reading: Promise<TenantConfig> = this.#options.store.read(tenant).then((doc) => {
      const config = toConfig(doc)
      return this.#reading.get(tenant) === reading ? this.#keep(tenant, config) : config
    })
    this.#reading.set(tenant, reading)
    const forget = () => {
      if (this.#reading.get(tenant) === reading) this.#reading.delete(tenant)
    }
    reading.then(forget, forget)
    return reading
  }

  #keep(tenant: TenantId, read: TenantConfig): TenantConfig {
    const before = this.#kept.peek(tenant)?.config
    const config = before && isDeepStrictEqual(before, read) ? before : read
    this.#kept.set(tenant, { config, checkAt: this.#nextCheck() })
    return config
  }

  /** Reads a kept configuration again. It is used meanwhile, and when the store does not answer. */
  #check(tenant: TenantId, kept: Kept): void {
    kept.checkAt = this.#nextCheck()
    this.#read(tenant).catch((cause: unknown) =>
      this.#options.log.debug('the configuration of a tenant could not be checked', { cause }),
    )
  }

  #nextCheck(): number {
    return performance.now() + (this.#options.checkMs ?? CHECK_MS)
  }

  #drop(tenant: TenantId): void {
    this.#kept.delete(tenant)
    this.#reading.delete(tenant)
    for (const listener of this.#listeners) listener(tenant)
  }

  #dropAll(): void {
    for (const tenant of new Set([...this.#kept.keys(), ...this.#reading.keys()])) this.#drop(tenant)
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    try {
      await this.#followChanges()
    } catch (cause) {
      this.#options.log.debug('the list of configuration changes could not be read', { cause })
    } finally {
      this.#isPolling = false
    }
  }

  /** One change is read while nothing happens; the page only when there are more. */
  async #followChanges(): Promise<void> {
    const [newest] = await this.#options.store.changes(1)
    const last = this.#lastSeq
    const seq = newest?.seq ?? 0
    if (last === seq) return
    if (last === undefined) this.#dropAll()
    else {
      const changes = await this.#options.store.changes(POLL_PAGE)
      const fresh = changes.filter((change) => change.seq > last)
      if (fresh.at(-1)?.seq !== last + 1) this.#dropAll() // The list no longer holds all of them.
      for (const { tenant } of fresh) this.#drop(tenant)
    }
    this.#lastSeq = seq
  }
}

/** The subject of a change that no request has made (D3.5). */
const NOBODY = 'anonymous'

/** The time of a change, later than the one before, so that the times give the order of changes. */
const timeAfter = (last: AuditedChange | undefined): string =>
  isoTime(Math.max(Date.now(), last === undefined ? 0 : Date.parse(last.at) + 1))
