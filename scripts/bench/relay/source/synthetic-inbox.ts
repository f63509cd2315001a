import { JOURNAL_LIMITS, Journal } from '../../../../shared/broker/journal/journal.ts'
import type { Inbox } from '../../../../shared/broker/port.ts'
import { Player } from './player.ts'
import { readScript } from './script.ts'

/** Keeps all that may be on its way to a gateway (4 MiB), which a product's journal does not for events as small and fast as these. */
const LONG_JOURNAL = { ...JOURNAL_LIMITS, maxEvents: 128 * 1024, maxBytes: 16 * 1024 * 1024 }
const MAX_JOURNAL_BYTES = 64 * 1024 * 1024

/** A worker without an engine: its runs are scripts, in journals as a worker has them. A run ends with its reader. */
export function createSyntheticInbox(): Inbox & { liveRuns(): number } {
  const journals = new Map<string, Journal>()
  const budget = { bytes: 0, maxBytes: MAX_JOURNAL_BYTES }
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
      if (!journal) throw unused()
      return journal.follow(after)
    },
    liveRuns: () => journals.size,
    createSession: refuse,
    getSession: refuse,
    deleteSession: refuse,
    sendMessage: refuse,
    listRuns: refuse,
    getRun: refuse,
    cancelRun: refuse,
  }
}

const unused = () => new Error('the bench only starts runs')

function refuse(): never {
  throw unused()
}
