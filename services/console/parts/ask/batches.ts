import type { Ask } from '../../api/pending.ts'

/** More are not compared at a glance. */
const MOST_EQUAL = 8

/** The waiting requests in batches: requests of the same tool and agent form a batch, at the position of the first one. */
export function batchesOf(asks: readonly Ask[]): Ask[][] {
  const batches: Ask[][] = []
  const open = new Map<string, Ask[]>()
  for (const ask of asks) {
    const batch = open.get(batchKey(ask))
    if (batch && batch.length < MOST_EQUAL) {
      batch.push(ask)
      continue
    }
    const begun = [ask]
    batches.push(begun)
    open.set(batchKey(ask), begun)
  }
  return batches
}

/** Whether two requests have the same tool and agent. */
export const batchKey = ({ session_id, run_id, tool_name }: Ask): string => [session_id, run_id, tool_name].join(' ')
