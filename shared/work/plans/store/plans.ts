import { randomUUID } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { createCache } from '../../../kernel/cache.ts'
import { startOfPage, toPage } from '../../../kernel/cursor.ts'
import { AppError } from '../../../kernel/errors.ts'
import type { PlanStep } from '../../../kernel/plan-step.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import { MAX_DOCUMENT_BYTES } from '../../../platform/store/document.ts'
import type { Collection, Store, Stored } from '../../../platform/store/port.ts'
import { OVERTAKEN, untilFirst } from '../../../platform/store/replace.ts'
import type { PlanHead, PlanLimits, PlanPage, PlanQuery, PlanRecord, Plans, PlanTransition } from '../port.ts'
import { BEGINS, begunBy } from '../transitions.ts'
import { ActivePlans } from './active-plans.ts'
import { PLAN_STEPS, PLANS, type StepsPlace, sizeOf, stepsDoc, toDoc, toHead } from './documents.ts'
import { isShortOutput, mapFound, StepOutputs } from './step-outputs.ts'

export type PlansOptions = { now?: () => Date; limits?: PlanLimits }

const NO_LIMITS: PlanLimits = { maxPlans: Infinity, maxBytes: Infinity }

type Found = { plan: PlanRecord; version: number; place: StepsPlace }

/** A creation that has not been completed for this long never will be. */
const CREATION_MS = 600_000
/** Characters of remembered plans, about. Small: what is not here is read from the store. */
const MAX_REMEMBERED_CHARS = 4 * 1024 * 1024
const MAX_USED = 10_000
/**
 * How long an ended plan is remembered, because it is usually read at once. The time is short, so that a plan that is
 * deleted elsewhere is soon forgotten here.
 */
const ENDED_MS = 10_000
/** How long a created plan is remembered, because its client usually follows it at once. */
const CREATED_MS = 1_000
/** The longest JSON of steps that are a part of the record. Each change of the plan writes them again. */
const SHORT_STEPS_BYTES = 4 * 1024

export class StoredPlans implements Plans {
  readonly #plans: Collection
  readonly #steps: Collection
  readonly #outputs: StepOutputs
  readonly #active: ActivePlans
  readonly #now: () => Date
  /** Plans that have not ended, in the state that this process read or wrote last. A write detects if one has changed. */
  readonly #remembered = new LRUCache<string, Found>({
    maxSize: MAX_REMEMBERED_CHARS,
    sizeCalculation: ({ plan }) => sizeOf(plan.steps),
  })

  /** All steps that are still in use here, so that the steps of a running plan, whose record is read every second, are read only once. */
  readonly #used = createCache<string, WeakRef<readonly PlanStep[]>>(MAX_USED)

  /** The plans that this process has just ended. They never change. */
  readonly #ended = new LRUCache<string, PlanRecord>({
    maxSize: MAX_REMEMBERED_CHARS,
    ttl: ENDED_MS,
    sizeCalculation: ({ steps }) => sizeOf(steps),
  })

  readonly #created = new LRUCache<string, PlanRecord>({
    maxSize: MAX_REMEMBERED_CHARS,
    ttl: CREATED_MS,
    sizeCalculation: ({ steps }) => sizeOf(steps),
  })

  constructor(store: Store, { now = () => new Date(), limits = NO_LIMITS }: PlansOptions = {}) {
    this.#plans = store.collection(PLANS)
    this.#steps = store.collection(PLAN_STEPS)
    this.#outputs = new StepOutputs(store, now)
    this.#active = new ActivePlans(store, limits)
    this.#now = now
  }

  /** Throws `invalid_request` (413) for steps above the store's limit. */
  async create(tenant: TenantId, plan: PlanRecord): Promise<boolean> {
    const { plan_id, steps } = plan
    const created_ms = Date.parse(plan.created_at)
    await this.#active.assertRoom(tenant, promptChars(steps))
    const bytes = jsonBytes(steps)
    const entry = { plan_id, owner: tenant, created_ms, bytes }
    const isEntered = await this.#active.enter(entry) // Before the plan is stored, so that a sweep finds every plan.
    let place: StepsPlace = { own_steps: steps }
    try {
      if (bytes > SHORT_STEPS_BYTES) place = await this.#insertSteps(tenant, steps, created_ms)
    } catch (cause) {
      if (isEntered) await this.#active.remove(plan_id).catch(() => {}) // If this fails, a sweep removes the entry.
      throw cause
    }
    const isNew = await this.#plans.insert(tenant, toDoc(plan, place))
    if (!isNew) {
      if ('steps_id' in place) await this.#steps.delete(tenant, place)
      return false
    }
    // The entry belonged to another creation of this plan, which may have been refused and removed since.
    if (!isEntered) await this.#active.restore(entry)
    this.#remember(tenant, { plan, version: 1, place })
    this.#created.set(keyOf(tenant, plan_id), plan)
    return true
  }

  async takeBack(tenant: TenantId, planId: string): Promise<void> {
    const found = await this.#plans.get(tenant, { plan_id: planId })
    if (found) {
      const { head, place } = toHead(found.doc)
      if (head.status !== 'queued') return
      if (!(await this.#plans.delete(tenant, { plan_id: planId }, found.version))) return
      if ('steps_id' in place) await this.#steps.delete(tenant, place)
    }
    await this.#active.remove(planId)
  }

  created(tenant: TenantId, planId: string): PlanRecord | undefined {
    return this.#created.get(keyOf(tenant, planId))
  }

  takeCreated(tenant: TenantId, planId: string): PlanRecord | undefined {
    const created = this.created(tenant, planId)
    this.#created.delete(keyOf(tenant, planId))
    return created
  }

  async get(tenant: TenantId, planId: string): Promise<PlanRecord | undefined> {
    return this.#ended.get(keyOf(tenant, planId)) ?? (await this.#find(tenant, planId))?.plan
  }

  async heads(tenant: TenantId, planIds: readonly string[]): Promise<ReadonlyMap<string, PlanHead>> {
    const read = async (plan_id: string) => (await this.#plans.get(tenant, { plan_id }))?.doc
    return mapFound(planIds, read, (doc) => toHead(doc).head)
  }

  async list(tenant: TenantId, { status, limit, cursor }: PlanQuery): Promise<PlanPage> {
    const found = await this.#plans.page(tenant, {
      where: status === undefined ? {} : { status },
      after: startOfPage(cursor, ['number', 'string']),
      limit: limit + 1,
    })
    const heads = found.map(({ doc }) => toHead(doc).head)
    const { page: plans, next_cursor } = toPage(heads, limit, (head) => [Date.parse(head.created_at), head.plan_id])
    return { plans, next_cursor }
  }

  async begin(
    tenant: TenantId,
    planId: string,
    by: { executor: number; at: string },
    mayWrite: () => boolean = () => true,
  ): Promise<PlanRecord | undefined> {
    if (!mayWrite()) return undefined
    const claim = { key: { plan_id: planId }, where: BEGINS, set: begunBy(by) }
    const stored = await this.#plans.update(tenant, claim, { durability: 'weak' })
    this.#created.delete(keyOf(tenant, planId))
    return stored && (await this.#foundIn(tenant, stored)).plan
  }

  async change(
    tenant: TenantId,
    planId: string,
    transition: PlanTransition,
    mayWrite: () => boolean = () => true,
  ): Promise<PlanRecord | undefined> {
    const remembered = this.#remembered.get(keyOf(tenant, planId))
    const changed = remembered && (await this.#tryChange(tenant, remembered, { transition, mayWrite }))
    if (typeof changed === 'object') return changed
    return untilFirst(async () => {
      const found = await this.#find(tenant, planId)
      const result = found ? await this.#tryChange(tenant, found, { transition, mayWrite }) : 'refused'
      if (result === 'same') return found?.plan
      return result === 'refused' ? undefined : result
    })
  }

  isRecordedWithEnd(tenant: TenantId, planId: string, output: string): boolean {
    const found = this.#remembered.peek(keyOf(tenant, planId))
    // Earlier versions cannot read an output in the record. But they cannot take over a plan whose steps are in its record, so there it is safe.
    return found !== undefined && 'own_steps' in found.place && isShortOutput(output, found.plan.states)
  }

  async saveOutput(tenant: TenantId, planId: string, stepId: string, output: string): Promise<void> {
    await this.#outputs.save(tenant, { plan_id: planId, step_id: stepId }, output)
  }

  async outputs(tenant: TenantId, planId: string, stepIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#outputs.read(tenant, planId, stepIds)
  }

  async active(after: string | undefined): Promise<readonly { tenant: TenantId; planId: string }[]> {
    const entries = await this.#active.page(after)
    return entries.map(({ plan_id, owner }) => ({ tenant: owner, planId: plan_id }))
  }

  async retire(tenant: TenantId, planId: string): Promise<void> {
    const [plan, entry] = await Promise.all([this.#plans.get(tenant, { plan_id: planId }), this.#active.get(planId)])
    if (!entry) return
    const { owner, created_ms } = entry
    const isOld = created_ms < this.#now().getTime() - CREATION_MS
    const isOver = plan ? toHead(plan.doc).head.ended_at !== null : isOld
    if (owner === tenant && isOver) await this.#active.remove(planId)
  }

  async #find(tenant: TenantId, planId: string): Promise<Found | undefined> {
    const stored = await this.#plans.get(tenant, { plan_id: planId })
    return stored && this.#foundIn(tenant, stored)
  }

  async #foundIn(tenant: TenantId, stored: Stored): Promise<Found> {
    const { head, place } = toHead(stored.doc)
    const key = keyOf(tenant, head.plan_id)
    const known = this.#remembered.peek(key)?.plan.steps ?? this.#used.get(key)?.deref()
    const steps = known ?? (await this.#stepsIn(tenant, place))
    const found: Found = { plan: { ...head, steps }, version: stored.version, place }
    this.#remember(tenant, found)
    return found
  }

  async #stepsIn(tenant: TenantId, place: StepsPlace): Promise<readonly PlanStep[]> {
    if ('own_steps' in place) return place.own_steps
    const stored = await this.#steps.get(tenant, place)
    if (!stored) throw new Error(`the steps ${place.steps_id} of a plan are missing`)
    return stored.doc['steps'] as readonly PlanStep[]
  }

  /** `same`: there is nothing to change. `refused`: the transition does not apply. */
  async #tryChange(
    tenant: TenantId,
    { plan, version, place }: Found,
    { transition, mayWrite }: Change,
  ): Promise<PlanRecord | 'same' | 'refused' | typeof OVERTAKEN> {
    const next = transition(plan)
    if (next === plan) return 'same'
    if (!next || !mayWrite()) return 'refused'
    const isReplaced = await this.#plans.replaceIfVersion(tenant, { doc: toDoc(next, place), version })
    if (!isReplaced) return OVERTAKEN
    this.#remember(tenant, { plan: next, version: version + 1, place })
    this.#created.delete(keyOf(tenant, next.plan_id))
    if (next.ended_at === null) return next
    this.#ended.set(keyOf(tenant, next.plan_id), next)
    this.#active.leave(next.plan_id)
    return next
  }

  async #insertSteps(tenant: TenantId, steps: readonly PlanStep[], createdMs: number): Promise<StepsPlace> {
    const steps_id = randomUUID()
    try {
      await this.#steps.insert(tenant, stepsDoc(steps_id, steps, createdMs), { durability: 'ordered' })
      return { steps_id }
    } catch (cause) {
      if (!(cause instanceof AppError) || cause.status !== 413) throw cause
      const message = `the steps are longer than ${MAX_DOCUMENT_BYTES} bytes: shorten them, or make several plans`
      throw new AppError('invalid_request', message, { status: 413, param: '/steps' })
    }
  }

  #remember(tenant: TenantId, found: Found): void {
    const key = keyOf(tenant, found.plan.plan_id)
    if (found.plan.ended_at === null) this.#remembered.set(key, found)
    else this.#remembered.delete(key)
    this.#used.set(key, new WeakRef(found.plan.steps))
  }
}

type Change = { transition: PlanTransition; mayWrite: () => boolean }

const keyOf = (tenant: TenantId, planId: string): string => `${tenant} ${planId}`

/** The length of the steps as JSON. Each is rendered by itself: the text of all would be megabytes of garbage. */
const jsonBytes = (steps: readonly PlanStep[]): number =>
  steps.reduce((sum, step) => sum + Buffer.byteLength(JSON.stringify(step)) + 1, 1)

const promptChars = (steps: readonly PlanStep[]): number => steps.reduce((sum, { prompt }) => sum + prompt.length, 0)
