import type { Inbox } from '../../../../shared/cluster/commands/inbox.ts'
import { JOURNAL_LIMITS, Journal } from '../../../../shared/cluster/journal/journal.ts'
import { Player } from './player.ts'
import { readScript } from './script.ts'

/** Large enough for everything in transit to a gateway (4 MiB). The product's limits are too small for events as small and fast as these. */
const LONG_JOURNAL = { ...JOURNAL_LIMITS, maxEvents: 128 * 1024, maxBytes: 16 * 1024 * 1024 }
const MAX_JOURNAL_BYTES = 64 * 1024 * 1024

/** A worker's inbox without an engine: it plays scripts into the product's journals. A run ends when its reader leaves. */
export function createSyntheticInbox(): Inbox & { liveRuns(): number } {
  const journals = new Map<string, Journal>()
  const used = { bytes: 0 }
  const budget = {
    add: (bytes: number) => void (used.bytes += bytes),
    isExceeded: () => used.bytes > MAX_JOURNAL_BYTES,
  }
  const player = new Player()
  return {
    startRun(_tenant, runId, { prompt }) {
      const script = readScript(prompt)
      const isLong = script.mode === 'flood' && script.hasLongJournal
      const stop = new AbortController()
      const journal = new Journal(budget, isLong ? LONG_JOURNAL : JOURNAL_LIMITS, () => {
        if (journal.readerCount > 0) return
        stop.abort()
        journals.delete(runId)
        journal.drop()
      })
      journals.set(runId, journal)
      player.play(script, journal, stop.signal)
    },
    followRun(_tenant, runId, after) {
      const journal = journals.get(runId)
      if (!journal) throw unsupported()
      return journal.follow(after)
    },
    acceptRun() {},
    liveRuns: () => journals.size,
    createSession: refuse,
    getSession: refuse,
    listSessions: refuse,
    listMessages: refuse,
    renameSession: refuse,
    deleteSession: refuse,
    sendMessage: refuse,
    listRemembered: refuse,
    forgetRemembered: refuse,
    listRuns: refuse,
    listTenants: refuse,
    getRun: refuse,
    steerRun: refuse,
    estimateRun: refuse,
    branchOf: refuse,
    listFiles: refuse,
    readFile: refuse,
    cancelRun: refuse,
  }
}

const unsupported = () => new Error('the bench only starts runs')

function refuse(): never {
  throw unsupported()
}
