import type { QueuedRunSource } from './run-source.ts'

/** Joins the sources of queued runs, whose ids do not tell which source knows them: each is asked in turn. */
export function joinRunSources(...sources: readonly QueuedRunSource[]): QueuedRunSource {
  return {
    takeCreated(tenant, runId) {
      for (const source of sources) {
        const created = source.takeCreated?.(tenant, runId)
        if (created) return created
      }
      return undefined
    },
    async find(tenant, runId) {
      for (const source of sources) {
        const found = await source.find(tenant, runId)
        if (found) return found
      }
      return undefined
    },
    async cancelWaiting(tenant, runId, lost) {
      for (const source of sources) if (await source.cancelWaiting?.(tenant, runId, lost)) return true
      return false
    },
  }
}
