import type { JsonObject } from '../../../kernel/events.ts'
import type { TenantId } from '../../../kernel/tenant.ts'
import type { Collection, Store } from '../../../platform/store/port.ts'
import { OVERTAKEN, untilFirst } from '../../../platform/store/replace.ts'
import type { StepState } from '../port.ts'
import { outputDoc, PLAN_OUTPUTS } from './documents.ts'

/** The longest output in a plan's record, and the most of all of them together: each change of the plan writes them again. */
const SHORT_CHARS = 1024
const ALL_SHORT_CHARS = 8 * 1024
const READ_AT_ONCE = 20

export function isShortOutput(output: string, states: readonly StepState[]): boolean {
  const recorded = states.reduce((chars, state) => chars + (state.output?.length ?? 0), 0)
  return output.length <= SHORT_CHARS && recorded + output.length <= ALL_SHORT_CHARS
}

/** The outputs of steps that are stored separately from their plans. */
export class StepOutputs {
  readonly #outputs: Collection
  readonly #now: () => Date

  constructor(store: Store, now: () => Date) {
    this.#outputs = store.collection(PLAN_OUTPUTS)
    this.#now = now
  }

  /** Saves an output; a repetition replaces it. */
  async save(tenant: TenantId, key: { plan_id: string; step_id: string }, output: string): Promise<void> {
    const doc = outputDoc(key, output, this.#now())
    const options = { durability: 'ordered' } as const
    await untilFirst(async () => {
      if (await this.#outputs.insert(tenant, doc, options)) return undefined
      const found = await this.#outputs.get(tenant, key)
      if (!found) return OVERTAKEN
      const { version } = found
      return (await this.#outputs.replaceIfVersion(tenant, { doc, version }, options)) ? undefined : OVERTAKEN
    })
  }

  async read(tenant: TenantId, planId: string, stepIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const read = async (id: string) => (await this.#outputs.get(tenant, { plan_id: planId, step_id: id }))?.doc
    return mapFound(stepIds, read, (doc) => String(doc['output']))
  }
}

/** Reads the documents of some ids, a few at a time, and leaves out those that do not exist. */
export async function mapFound<T>(
  ids: readonly string[],
  read: (id: string) => Promise<JsonObject | undefined>,
  valueOf: (doc: JsonObject) => T,
): Promise<ReadonlyMap<string, T>> {
  const values = new Map<string, T>()
  for (let i = 0; i < ids.length; i += READ_AT_ONCE) {
    const some = ids.slice(i, i + READ_AT_ONCE)
    const docs = await Promise.all(some.map(read))
    for (const [j, id] of some.entries()) if (docs[j]) values.set(id, valueOf(docs[j]))
  }
  return values
}
